"""Whatever hands work to a rig, as the inventory names it: Slurm, commands of the site's own, or nothing."""

from __future__ import annotations

import re
import shlex
import subprocess
from typing import TYPE_CHECKING, Protocol

from rigctl.errors import CommandFailed
from rigctl.model.upgrade import CommandDrain, SlurmDrain
from rigctl.upgrade.port import StepFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.fleet.commands import Commands
    from rigctl.model.upgrade import DrainSpec
    from rigctl.upgrade.port import Drain

LIMIT_S = 60
"""What a scheduler's command is given, seconds: a controller that is gone makes `scontrol` wait."""
_DRAINING = ("DRAIN", "DRAINING", "DRAINED")
_FIELD = re.compile(r"(\w+)=(.*?)(?=\s+\w+=|\s*$)")
_STAMP = re.compile(r" \[[^\[\]]*@[^\[\]]*\]$")
"""What Slurm adds to a reason: who set it, and when."""


class Shell(Protocol):
    """Where a scheduler's commands run."""

    def __call__(self, words: Sequence[str]) -> tuple[int, str, str]:
        """Exit status, output, complaints."""


def here(words: Sequence[str]) -> tuple[int, str, str]:
    """Run it on the controller."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except FileNotFoundError:
        return 127, "", f"{words[0]} is not installed on this machine"
    except subprocess.TimeoutExpired:
        return 124, "", f"{words[0]} did not answer within {LIMIT_S} s"
    return done.returncode, done.stdout, done.stderr


def on(connection: Commands) -> Shell:
    """Run it on the rig, as root: Slurm lets nobody else drain."""

    def there(words: Sequence[str]) -> tuple[int, str, str]:
        reply = connection.run(shlex.join(words), timeout_s=LIMIT_S, root=True)
        return reply.exit_status, reply.stdout.decode(errors="replace"), reply.stderr.decode(errors="replace")

    return there


def drain_of(spec: DrainSpec, rig: str, shell: Shell) -> Drain:
    """Return what the inventory's `rig_drain` names; `shell` runs its commands."""
    if isinstance(spec, SlurmDrain):
        return Slurm(spec.node or rig, shell)
    if isinstance(spec, CommandDrain):
        return Commanded(spec, rig, shell)
    return Nothing()


class Slurm:
    """Slurm: a node is drained with a reason, and only a drain with that reason is lifted."""

    def __init__(self, node: str, shell: Shell) -> None:
        self._node = node
        self._shell = shell

    def drain(self, reason: str) -> str:
        """Drain the node; jobs that run go on."""
        drained, stands = self._state()
        if drained:
            return "" if stands == reason else stands or "drained by others without a reason"
        self._must("scontrol", "update", f"NodeName={self._node}", "State=DRAIN", f"Reason={reason}")
        drained, stands = self._state()
        if not drained or stands != reason:
            raise StepFailed(f"Slurm did not drain {self._node}: its reason is {stands or 'empty'}", self._remedy())
        return ""

    def jobs(self) -> tuple[str, ...]:
        """Jobs that run on the node or are ending there."""
        rows = self._must(
            "squeue", "--noheader", f"--nodelist={self._node}", "--format=%i|%u|%T|%M",
            "--states=RUNNING,COMPLETING,SUSPENDED,STOPPED",
        )  # fmt: skip
        words = [row.split("|") for row in rows.splitlines() if row.strip()]
        return tuple(f"job {number} of {user} ({state.lower()}, {time})" for number, user, state, time in words)

    def resume(self, reason: str) -> bool:
        """Give the node back where the drain is ours."""
        drained, stands = self._state()
        if not drained or stands != reason:
            return False
        self._must("scontrol", "update", f"NodeName={self._node}", "State=RESUME")
        return True

    def _state(self) -> tuple[bool, str]:
        """Whether the node is drained, and its reason as it was given."""
        text = self._must("scontrol", "--oneliner", "show", "node", self._node)
        fields = dict(_FIELD.findall(text.strip()))
        if "State" not in fields:
            raise StepFailed(f"Slurm says nothing of the state of {self._node}: {text[:200]}", self._remedy())
        words = re.split(r"[+*]", fields["State"].strip().upper())
        return any(word in _DRAINING for word in words), _STAMP.sub("", fields.get("Reason", "").strip())

    def _must(self, *words: str) -> str:
        code, out, said = self._shell(words)
        if code:
            last = (said or out).strip().splitlines()[-1:] or [f"exit status {code}"]
            raise CommandFailed(f"{self._node}: {words[0]}: {last[0].strip()}", self._remedy())
        return out

    def _remedy(self) -> str:
        return f"look at `scontrol ping` and `scontrol show node {self._node}`; see rig_drain in the inventory"


class Commanded:
    """A pair of commands of the site's own. They are told the rig; only a drain that they made here is taken back."""

    def __init__(self, spec: CommandDrain, rig: str, shell: Shell) -> None:
        self._spec = spec
        self._rig = rig
        self._shell = shell

    def drain(self, reason: str) -> str:  # noqa: ARG002 - a command has no place for it
        """Call the first one."""
        self._must(self._spec.drain)
        return ""

    def jobs(self) -> tuple[str, ...]:
        """What the command for jobs prints, a line each; nothing where there is no such command."""
        if not self._spec.jobs:
            return ()
        return tuple(line.strip() for line in self._must(self._spec.jobs).splitlines() if line.strip())

    def resume(self, reason: str) -> bool:  # noqa: ARG002 - as above
        """Call the second one."""
        self._must(self._spec.resume)
        return True

    def _must(self, words: tuple[str, ...]) -> str:
        code, out, said = self._shell((*words, self._rig))
        if code:
            last = (said or out).strip().splitlines()[-1:] or [f"exit status {code}"]
            raise CommandFailed(f"{self._rig}: {words[0]}: {last[0].strip()}", "see rig_drain in the inventory")
        return out


class Nothing:
    """Nobody hands work to the rig: whoever is on it is waited for, that is all."""

    def drain(self, reason: str) -> str:  # noqa: ARG002 - there is nobody to tell it
        """Do nothing."""
        return ""

    def jobs(self) -> tuple[str, ...]:
        """None."""
        return ()

    def resume(self, reason: str) -> bool:  # noqa: ARG002 - as above
        """Do nothing."""
        return False
