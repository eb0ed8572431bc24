"""Where the agent keeps its things on a rig, and what a run may be called."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from .errors import AgentError

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Places:
    """The agent's folders; tests put others here."""

    spool_root: Path = Path("/var/lib/rigctl/runs")
    """Readings of each run, until the controller has fetched and acknowledged them; survives a reboot."""
    run_root: Path = Path("/run/rigctl")
    """Heartbeats and other things that must not survive a reboot."""
    upgrade_lock: Path = Path("/var/lib/gpu-rig/upgrade.json")
    """Says which upgrade has the rig out of use (rigctl/upgrade/on_rig/held.py)."""

    def spool(self, run_id: str) -> Path:
        """Folder of one run's readings."""
        return self.spool_root / checked(run_id)

    def plan(self, run_id: str) -> Path:
        """The plan of a run, as it was asked for; hidden, so it is no reading."""
        return self.spool(run_id) / ".plan.json"

    def heartbeat(self, run_id: str) -> Path:
        """CLOCK_MONOTONIC of the controller's last word, seconds."""
        return self.run_root / f"{checked(run_id)}.heartbeat"

    def stop_reason(self, run_id: str) -> Path:
        """Why somebody asked the run to stop."""
        return self.run_root / f"{checked(run_id)}.stop"

    def end_step(self, run_id: str) -> Path:
        """Which step the controller wants ended, and why: its verdict is certain."""
        return self.run_root / f"{checked(run_id)}.end_step.json"

    def before(self, run_id: str) -> Path:
        """The rig's settings as the run found them."""
        return self.run_root / f"{checked(run_id)}.before.json"

    def scripts(self, run_id: str) -> Path:
        """Folder of the programs that the agent carries, taken out of it for the Python that runs them."""
        return self.run_root / f"{checked(run_id)}.scripts"

    @property
    def start_lock(self) -> Path:
        """Held while a run is being started; names that run."""
        return self.run_root / "start.lock"

    def forget(self, run_id: str) -> None:
        """Remove everything of a run that is not a reading. Raises OSError."""
        for path in (self.heartbeat(run_id), self.stop_reason(run_id), self.end_step(run_id), self.before(run_id)):
            path.unlink(missing_ok=True)
        scripts = self.scripts(run_id)
        if scripts.exists():
            shutil.rmtree(scripts)


def checked(run_id: str) -> str:
    """Return `run_id` if it can name a file and a unit; AgentError otherwise."""
    if not _RUN_ID.fullmatch(run_id):
        raise AgentError(f"not a run id: {run_id!r}", "letters, digits, dot, dash and underscore, at most 64")
    return run_id


def unit_name(run_id: str) -> str:
    """The systemd unit that carries a run out."""
    return f"rigctl-{checked(run_id)}.service"


def write_atomically(path: Path, text: str) -> None:
    """Replace a small file so that a reader sees the old or the new text, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
