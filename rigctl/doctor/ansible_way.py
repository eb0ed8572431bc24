"""Ansible's way in, proved by Ansible itself: its own ssh, its own words for sudo, as provisioning will use them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rigctl.inventory.ansible_view import DEFAULT_INVENTORY, ansible_program
from rigctl.provision.become import become_settings
from rigctl.provision.settings import ansible_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import SecretStr

_TIMEOUT_S = 180
"""Time-outs of several jump hosts, one after another, are met before it."""
_ANSWER = re.compile(
    r"^(?P<rig>\S+) \| (?P<word>[A-Z]+)!? "
    r"(?:=> (?P<data>\{$.*?^\})|\| rc=(?P<status>-?\d+) >>$(?P<text>.*?)(?=^\S+ \| [A-Z]{6,}|\Z))",
    re.MULTILINE | re.DOTALL,
)
"""What Ansible's `minimal` output says of one rig."""


@dataclass(frozen=True)
class AnsibleReply:
    """What Ansible said of one rig."""

    reached: bool
    is_root: bool
    said: str
    """Its reason, one line; empty where it became root."""


def ask_ansible(
    inventory: Path | None, names: Sequence[str], become_password: SecretStr | None = None
) -> dict[str, AnsibleReply]:
    """Let Ansible become root on these rigs; all at once, nothing is changed there.

    `become_password` is for those whose inventory has none.

    Raises:
        UsageError: Ansible is not installed, or its configuration cannot be read.
    """
    path = (DEFAULT_INVENTORY if inventory is None else inventory).absolute()
    command = [ansible_program("ansible"), "-i", str(path), ",".join(names)]
    command += ["--become", "-m", "ansible.builtin.raw", "-a", "id -u"]
    with _own_sockets() as sockets, become_settings(become_password) as become:
        environment = {
            **os.environ,
            **ansible_environment(),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(sockets),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.minimal",
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
            "ANSIBLE_LOG_PATH": "/dev/null",
            **become,
        }
        try:
            # Without a terminal of its own ssh can ask nobody, so that it says what it lacks.
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
                env=environment,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            said = f"Ansible did not answer within {_TIMEOUT_S} s"
            return {name: AnsibleReply(reached=False, is_root=False, said=said) for name in names}
    answers = read_answers(done.stdout)
    silent = AnsibleReply(reached=False, is_root=False, said=_last_line(done.stderr) or "Ansible said nothing")
    return {name: answers.get(name, silent) for name in names}


def read_answers(text: str) -> dict[str, AnsibleReply]:
    """Read Ansible's `minimal` output, rig by rig."""
    return {found["rig"]: _reply(found) for found in _ANSWER.finditer(text)}


def _reply(found: re.Match[str]) -> AnsibleReply:
    if found["data"] is not None:
        data = json.loads(found["data"])
        said = " ".join(str(data.get("msg") or data.get("module_stderr") or "no reason given").split())
        said = said.removeprefix("Task failed: ").removeprefix("Failed to connect to the host via ssh: ")
        return AnsibleReply(reached=found["word"] != "UNREACHABLE", is_root=False, said=said[:300])
    lines = found["text"].split()
    if found["status"] == "0" and "0" in lines:
        return AnsibleReply(reached=True, is_root=True, said="")
    return AnsibleReply(reached=True, is_root=False, said=_last_line(found["text"]) or f"exit status {found['status']}")


def _last_line(text: str) -> str:
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


@contextmanager
def _own_sockets() -> Iterator[Path]:
    """A folder for ssh's shared connections: one that stands already would prove nothing, and ours end here."""
    with tempfile.TemporaryDirectory(prefix="rigctl-ways-") as folder:
        try:
            yield Path(folder)
        finally:
            program = shutil.which("ssh")
            for socket in Path(folder).iterdir() if program else ():
                words = [str(program), "-o", f"ControlPath={socket}", "-O", "exit", "rig"]
                subprocess.run(words, capture_output=True, check=False, timeout=10)
