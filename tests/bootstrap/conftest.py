"""The server of the SSH tests, here as a jump host."""

from tests.fleet.conftest_sshd import sshd

__all__ = ["sshd"]
