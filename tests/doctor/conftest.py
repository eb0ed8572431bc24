"""The server of the SSH tests, here too."""

from tests.fleet.conftest_sshd import sshd

__all__ = ["sshd"]
