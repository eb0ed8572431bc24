"""The agent on a rig: delivered once per version, called as root, answering with one JSON object."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from rigctl.errors import CommandFailed, RigBusy
from rigctl.fleet.bundle import build_bundle
from rigctl.model.reading import no_number

if TYPE_CHECKING:
    from rigctl.fleet.commands import Commands, Reply

CACHE_DIR = "/var/cache/rigctl"
_MODE = 0o644
_SHORT_S = 30
_UPLOAD_S = 120
_LAST_LINES = 10
_NO_PYTHON = 127


class AgentSilent(CommandFailed):
    """The agent did not answer in its time, or says that its rig did not, over a connection that stands."""


class RemoteAgent:
    """The agent of one rig, over its connection."""

    def __init__(self, conn: Commands) -> None:
        self._conn = conn
        self._bundle = build_bundle()
        self.path = f"{CACHE_DIR}/agent-{self._bundle.sha256[:16]}.pyz"

    def deliver(self) -> bool:
        """Bring the agent to the rig where it is missing or damaged; return whether bytes were sent.

        Raises:
            CommandFailed: it cannot be written there, or arrived damaged.
            RigError: as the connection's `run`.
        """
        if self._is_there():
            return False
        # Root owns folder and file: what root runs, nobody else may write.
        made = self._conn.run(["install", "-d", "-m", "0755", CACHE_DIR], timeout_s=_SHORT_S, root=True)
        if made.exit_status != 0:
            raise CommandFailed(
                f"{self._conn.name}: cannot create {CACHE_DIR}: {_last_words(made)}", "check space and mounts of /var"
            )
        self._conn.put(self._bundle.data, self.path, _MODE, root=True, timeout_s=_UPLOAD_S)
        if not self._is_there():
            raise CommandFailed(
                f"{self._conn.name}: {self.path} arrived damaged", f"check the disk of /var on {self._conn.name}"
            )
        return True

    def call(self, *args: str, timeout_s: float, stdin: bytes = b"") -> dict[str, Any]:
        """Run one command of the agent and return what it answered.

        Raises:
            AgentSilent: it did not answer in time, or systemd on the rig did not.
            RigBusy: somebody uses the rig, and the command would put it to work.
            CommandFailed: the agent says an error, with its own remedy, or nothing that can be read.
            RigError: as the connection's `run`.
        """
        # -I: neither the environment nor a folder on the rig decides which modules root imports.
        words = ["python3", "-I", self.path, *args]
        reply = self._conn.run(words, timeout_s=timeout_s, stdin=stdin, root=True)
        answer = _answer(reply)
        if answer is None:
            raise self._unreadable(args, reply)
        if reply.exit_status != 0 or "error" in answer:
            said = answer.get("error") or f"exit status {reply.exit_status}"
            if answer.get("busy"):
                raise RigBusy(f"{self._conn.name}: {said}", str(answer.get("hint") or ""), users=str(said))
            failed = AgentSilent if answer.get("again") else CommandFailed
            raise failed(f"{self._conn.name}: {said}", str(answer.get("hint") or self._by_hand(args)))
        return answer

    def _is_there(self) -> bool:
        """Whether the file is there, is root's, and has the very bytes."""
        path = shlex.quote(self.path)
        reply = self._conn.run(
            f"[ -O {path} ] && sha256sum {path}",
            timeout_s=_SHORT_S,
            root=True,
        )
        return reply.exit_status == 0 and reply.stdout.split()[:1] == [self._bundle.sha256.encode()]

    def _unreadable(self, args: tuple[str, ...], reply: Reply) -> CommandFailed:
        name = self._conn.name
        if reply.timed_out:
            return AgentSilent(f"{name}: agent {args[0]}: no answer within {reply.limit_s:g} s", self._by_hand(args))
        if reply.exit_status == _NO_PYTHON:
            return CommandFailed(f"{name}: python3 is not installed", "run there: apt-get install python3-minimal")
        return CommandFailed(
            f"{name}: agent {args[0]}: exit status {reply.exit_status}: {_last_words(reply)}", self._by_hand(args)
        )

    def _by_hand(self, args: tuple[str, ...]) -> str:
        return f"run there: sudo python3 -I {self.path} {shlex.join(args)}"


def _answer(reply: Reply) -> dict[str, Any] | None:
    """Read the one JSON object; None where there is none."""
    try:
        answer = json.loads(reply.stdout, parse_constant=no_number)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _last_words(reply: Reply) -> str:
    """Return the last ten lines of standard error, of standard output where that is empty."""
    said = (reply.stderr.strip() or reply.stdout.strip()).decode(errors="replace")
    return " | ".join(line.strip() for line in said.splitlines()[-_LAST_LINES:]) or "no word"
