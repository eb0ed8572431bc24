"""The fixture that starts the server; `conftest_sshd` holds what tests import."""

from .conftest_sshd import sshd

__all__ = ["sshd"]
