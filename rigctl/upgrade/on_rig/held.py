"""Who holds a rig for an upgrade: one file, which survives a restart."""

import json
import os
import time
from pathlib import Path
from typing import Any

LOCK = Path("/var/lib/gpu-rig/upgrade.json")


def lock(run_id: str, by: str, *, ignore: bool, path: Path = LOCK) -> dict[str, Any]:
    """Take the rig; `holder` is empty, or says who has it since when. Whoever has it already is given it again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mine = json.dumps({"run": run_id, "by": by, "since_s": time.time()})
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(mine + "\n", encoding="utf-8")
    try:
        if ignore:
            part.replace(path)
            return {"holder": ""}
        try:
            os.link(part, path)  # fails where it exists: two cannot have it
        except FileExistsError:
            return {"holder": _holder(run_id, path)}
        return {"holder": ""}
    finally:
        part.unlink(missing_ok=True)


def unlock(run_id: str, path: Path = LOCK) -> dict[str, Any]:
    """Let go of it; nothing where another run has it."""
    held = read(path)
    if held is not None and held["run"] == run_id:
        path.unlink()
    return {}


def read(path: Path = LOCK) -> dict[str, Any] | None:
    """Who has it; None where nobody does. A file that cannot be read is somebody's."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        held: dict[str, Any] = json.loads(text)
        return {"run": str(held["run"]), "by": str(held["by"]), "since_s": float(held["since_s"])}
    except (ValueError, KeyError, TypeError):
        return {"run": "", "by": f"somebody ({path} cannot be read)", "since_s": path.stat().st_mtime}


def _holder(run_id: str, path: Path) -> str:
    held = read(path)
    if held is None or held["run"] == run_id:
        return ""
    since = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(held["since_s"]))
    return f"{held['by']}, run {held['run']}, since {since}"
