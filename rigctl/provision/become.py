"""Sudo's password on its way to Ansible: never an argument, a variable of the environment, or a file on a disk."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from rigctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import SecretStr


@contextlib.contextmanager
def become_settings(password: SecretStr | None) -> Iterator[dict[str, str]]:
    """Environment variables that let Ansible read the password while the block runs; none where there is none.

    Not by ansible-runner's `passwords`: it answers whatever on the terminal looks like a prompt, a line of a
    task's output too. A file in memory is read by Ansible alone and is gone with its descriptor.

    Raises:
        UsageError: this system has no files in memory (it is not Linux).
    """
    if password is None:
        yield {}
        return
    if not hasattr(os, "memfd_create"):
        raise UsageError(
            "--ask-become-pass needs Linux on the controller", "put ansible_become_password into a vaulted file"
        )
    descriptor = os.memfd_create("become", os.MFD_CLOEXEC)
    try:
        # Ansible would run a password file that may be executed.
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, password.get_secret_value().encode())
        place = f"/proc/{os.getpid()}/fd/{descriptor}"
        # A configured question of Ansible's own would wait for a terminal that nobody sees.
        yield {"ANSIBLE_BECOME_PASSWORD_FILE": place, "ANSIBLE_BECOME_ASK_PASS": "False"}
    finally:
        os.close(descriptor)
