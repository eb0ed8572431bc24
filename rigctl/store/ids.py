"""Run ids, such as `2026-11-30T2300Z-7f3a`, and finding a run by its id."""

from __future__ import annotations

import difflib
import json
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from rigctl.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

RUN_ID = re.compile(r"\d{4}-\d{2}-\d{2}T\d{4}Z-[0-9a-f]{4}")
LATEST = "latest"
_MINUTE = len("2026-11-30T2300Z")
_SHOWN = 3


def new_run_id(now: datetime) -> str:
    """Return an id for a run that starts at `now` (UTC): the minute, and four random hex digits."""
    return f"{now:%Y-%m-%dT%H%MZ}-{secrets.token_hex(2)}"


def list_runs(root: Path) -> list[str]:
    """Return the ids of the runs under `root`, oldest first; none where there is no such folder."""
    if not root.is_dir():
        return []
    return sorted(p.name for p in root.iterdir() if RUN_ID.fullmatch(p.name) and (p / "run.json").is_file())


def find_run(root: Path, name: str, kind: str | None) -> Path:
    """Return the directory of the run `name`: an id under `root`, a path, or `latest` (of `kind` where given).

    Raises:
        UsageError: there is no such run; the hint names the nearest and the last ones.
    """
    if name == LATEST:
        return _latest(root, kind)
    for candidate in (root / name, Path(name)):
        if name and (candidate / "run.json").is_file():
            return candidate
    raise UsageError(f"there is no run {name!r} under {root}", _hint(root, name))


def _latest(root: Path, kind: str | None) -> Path:
    runs = list_runs(root)
    while runs:
        minute = runs[-1][:_MINUTE]
        # Ids of one minute are in random order: there, run.json's own clock decides.
        same_minute = [run for run in runs if run[:_MINUTE] == minute]
        started = {run: _kind_and_start(root / run) for run in same_minute}
        wanted = [run for run in same_minute if kind is None or started[run][0] == kind]
        if wanted:
            return root / max(wanted, key=lambda run: (started[run][1], run))
        runs = runs[: -len(same_minute)]
    what = f"run of kind {kind}" if kind else "run"
    raise UsageError(f"there is no {what} under {root}", _hint(root, ""))


def _kind_and_start(folder: Path) -> tuple[str, str]:
    """Read just enough of a run to order it; a damaged one sorts last and is complained of when it is opened."""
    try:
        data = json.loads((folder / "run.json").read_bytes())
    except (OSError, ValueError):
        return "", ""
    return (str(data.get("kind")), str(data.get("started_at"))) if isinstance(data, dict) else ("", "")


def _hint(root: Path, name: str) -> str:
    runs = list_runs(root)
    if not runs:
        return "start one with `rigctl accept`, or say where runs are with --runs DIR"
    near = difflib.get_close_matches(name, runs, n=_SHOWN, cutoff=0.7) if name else []
    last = [run for run in reversed(runs) if run not in near][:_SHOWN]
    parts = [f"nearest: {', '.join(near)}"] if near else []
    parts += [f"last runs: {', '.join(last)}"] if last else []
    return "; ".join(parts) + "; or `latest`"
