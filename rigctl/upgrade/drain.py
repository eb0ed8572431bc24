"""Whatever hands work to a rig, as the inventory names it: Slurm, commands of the site's own, or nothing."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rigctl.errors import CommandFailed
from rigctl.model.upgrade import CommandDrain, SlurmDrain
from rigctl.upgrade.port import StepFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rigctl.fleet.commands import Commands
    from rigctl.model.upgrade import DrainSpec
    from rigctl.upgrade.port import Drain

LIMIT_S = 60
"""What a scheduler's command is given, seconds: a controller that is gone makes `scontrol` wait."""
BACK_S, LOOK_S = 60.0, 1.0
"""How long Slurm may take until it has a node back that it was told to resume, and how often it is asked, seconds."""
_DRAINED = frozenset(("DRAIN", "DRAINING", "DRAINED"))
_BROKEN = frozenset(("DOWN", "ERROR", "FAIL", "FAILING", "NOT_RESPONDING", "UNKNOWN"))
_AWAY = _DRAINED | _BROKEN
_SILENT = frozenset(("NOT_RESPONDING",))
_STATE = re.compile(r"(?:^|\s)State=(\S+)")
_REASON = re.compile(r"\sReason=(.*?)(?: \[[^\[\]]+@\d{4}-\d\d-\d\dT[\d:]+\](?:\s.*)?)?$")
"""The reason as it was given; then Slurm's own word of who set it and when; then, perhaps, a comment and more."""


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


@dataclass(frozen=True)
class _Node:
    """What Slurm says of a node."""

    words: frozenset[str]
    """Its state and what is added to it, such as `IDLE`, `DRAIN`, `NOT_RESPONDING`."""
    reason: str
    """As it was given."""

    @property
    def drained(self) -> bool:
        return bool(self.words & _DRAINED)

    @property
    def broken(self) -> str:
        """The word for a node that takes no work and was not drained, but would by itself as soon as it is well."""
        return "" if self.drained else next(iter(sorted(self.words & _BROKEN)), "")


class Slurm:
    """Slurm: a node is drained with a reason, and only a drain with that reason is lifted."""

    def __init__(self, node: str, shell: Shell, wait: Callable[[float], object] = time.sleep) -> None:
        self._node = node
        self._shell = shell
        self._wait = wait

    def look(self) -> str:
        """Ask for the node."""
        node = self._seen()
        if node.broken:
            # Slurm takes a node that is only down back by itself, in the middle of an upgrade too.
            raise StepFailed(
                f"Slurm has {self._node} as {node.broken.lower()}: {node.reason or 'it gives no reason'}",
                f"bring it back, or drain it: scontrol update NodeName={self._node} State=DRAIN Reason=…",
            )
        return (node.reason or "no reason given") if node.drained else ""

    def drain(self, reason: str) -> str:
        """Drain the node; jobs that run go on."""
        others = self.look()
        if others:
            return "" if others == reason else others
        self._must("scontrol", "update", f"NodeName={self._node}", "State=DRAIN", f"Reason={reason}")
        node = self._seen()
        if not node.drained or node.reason != reason:
            raise StepFailed(
                f"Slurm did not drain {self._node}: its reason is {node.reason or 'empty'}", self._remedy()
            )
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
        """Give the node back where the drain is ours, once Slurm hears of it again; and wait until Slurm has it."""
        node = self._seen()
        if not node.drained or node.reason != reason:
            return False
        self._wait_without(_SILENT, node)  # resumed while it is silent, it would be neither drained nor of any use
        self._must("scontrol", "update", f"NodeName={self._node}", "State=RESUME")
        self._wait_without(_AWAY, self._seen())
        return True

    def _wait_without(self, words: frozenset[str], node: _Node) -> None:
        """Wait until none of these words is said of the node. Raises StepFailed."""
        for _ in range(int(BACK_S / LOOK_S)):
            if not node.words & words:
                return
            self._wait(LOOK_S)
            node = self._seen()
        said = f"{'+'.join(sorted(node.words))}, {node.reason or 'no reason given'}"
        raise StepFailed(
            f"Slurm does not have {self._node} back: {said}",
            f"look at `systemctl status slurmd` on the rig and at `scontrol show node {self._node}`",
        )

    def _seen(self) -> _Node:
        text = self._must("scontrol", "--oneliner", "show", "node", self._node).strip()
        # The first one counts: people may have written such words into the reason or the comment behind it.
        state, reason = _STATE.search(text), _REASON.search(text)
        if state is None:
            raise StepFailed(f"Slurm says nothing of the state of {self._node}: {text[:200]}", self._remedy())
        word = state.group(1).upper()
        words = {part for part in re.split(r"[+*~#!%$@^-]", word) if part}
        words |= {"NOT_RESPONDING"} if "*" in word else set()
        return _Node(frozenset(words), reason.group(1).strip() if reason is not None else "")

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

    def look(self) -> str:
        """Ask for the jobs, where that can be asked, and whether the commands are there; who drained, nobody knows."""
        for words in (self._spec.drain, self._spec.resume):
            code, _, _ = self._shell(("sh", "-c", 'command -v "$1" >/dev/null', "sh", words[0]))
            if code:
                where = "the rig" if self._spec.where == "rig" else "this machine"
                raise StepFailed(f"{words[0]} is not there on {where}", "see rig_drain in the inventory")
        self.jobs()
        return ""

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

    def look(self) -> str:
        """Nobody is there to be asked."""
        return ""

    def drain(self, reason: str) -> str:  # noqa: ARG002 - there is nobody to tell it
        """Do nothing."""
        return ""

    def jobs(self) -> tuple[str, ...]:
        """None."""
        return ()

    def resume(self, reason: str) -> bool:  # noqa: ARG002 - as above
        """Do nothing."""
        return False
