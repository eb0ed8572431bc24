"""Sudo's password on its way to Ansible: never an argument, a variable of the environment, or bytes on a disk."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import SecretStr

_TRY_AGAIN_S = 0.05


@contextlib.contextmanager
def become_settings(password: SecretStr | None) -> Iterator[dict[str, str]]:
    """Environment variables that let one Ansible read the password, once, while the block runs.

    Not by ansible-runner's `passwords`: it answers whatever on the terminal looks like a prompt, a line of a
    task's output too. A named pipe in a folder of our own holds nothing: the password goes from us to its first
    reader. Without a password there is nothing to set.
    """
    if password is None:
        yield {}
        return
    ended = threading.Event()
    with tempfile.TemporaryDirectory(prefix="rigctl-become-") as folder:
        pipe = Path(folder) / "password"
        os.mkfifo(pipe, 0o600)
        writer = threading.Thread(target=_hand_over, args=(pipe, password, ended), name="become", daemon=True)
        writer.start()
        try:
            # A configured question of Ansible's own would wait for a terminal that nobody sees.
            yield {"ANSIBLE_BECOME_PASSWORD_FILE": str(pipe), "ANSIBLE_BECOME_ASK_PASS": "False"}
        finally:
            ended.set()
            writer.join()


def _hand_over(pipe: Path, password: SecretStr, ended: threading.Event) -> None:
    """Write the password to whoever opens the pipe first; nobody may ever do."""
    while not ended.wait(_TRY_AGAIN_S):
        try:
            # Without a reader this fails at once instead of waiting for one for ever.
            descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            continue
        with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as stream:
            stream.write(password.get_secret_value().encode())
        return
