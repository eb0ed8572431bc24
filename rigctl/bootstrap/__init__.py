"""From a password login to a trusted key login: one rig, once."""

from rigctl.bootstrap.box import Box
from rigctl.bootstrap.keys import PublicKey, find_public_key
from rigctl.bootstrap.steps import Bootstrap, Bootstrapped, Options

__all__ = ["Bootstrap", "Bootstrapped", "Box", "Options", "PublicKey", "find_public_key"]
