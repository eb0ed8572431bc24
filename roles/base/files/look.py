"""Wait for a machine's first boot to finish and look at what has to be right before packages are installed.

Runs on the machine as root with the system's Python (3.10 or newer, standard library only), changes nothing, and prints
one JSON object. Its one argument are the role's wishes as JSON: now_s (the controller's clock), first_boot_timeout_s,
mirrors, blocks (paths).
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CLOCKS = ("chrony", "ntpsec", "ntp", "openntpd", "systemd-timesyncd")
"""Units that keep the time; the first that runs does, and no second one is set up."""
FINISHED = (0, 2)
"""cloud-init's exit status when it has finished; 2: with warnings of its own."""
OURS = "gpu-rig"
"""Stands in the marker of what these roles write; what another role writes it also keeps."""


def run(*argv: str, timeout_s: float = 60) -> tuple[int, str]:
    """Exit status and output of a command, in the C locale; 127 where it does not exist, 124 where it hangs."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout_s, env={**os.environ, "LC_ALL": "C"}, check=False
        )
    except FileNotFoundError:
        return 127, ""
    except subprocess.TimeoutExpired:
        return 124, f"{argv[0]} did not finish within {timeout_s:.0f} s"
    return done.returncode, (done.stdout + done.stderr).strip()


def first_boot(timeout_s: float) -> str:
    """Why cloud-init has not finished; empty where it has, or where there is none."""
    rc, text = run("cloud-init", "status", "--wait", timeout_s=timeout_s)
    return "" if rc in (*FINISHED, 127) else " ".join(text.split())[-300:] or f"exit status {rc}"


def unfinished_packages(root: Path) -> bool:
    """Whether an installation was interrupted: dpkg then refuses every other one."""
    journal = list((root / "var/lib/dpkg/updates").glob("[0-9]*"))
    return bool(journal or run("dpkg", f"--admindir={root / 'var/lib/dpkg'}", "--audit")[1])


def timekeeper() -> str:
    """What keeps the time: a unit's name, `host` in a container, or empty for nothing."""
    if run("systemd-detect-virt", "--container", "--quiet")[0] == 0:
        return "host"
    return next((unit for unit in CLOCKS if run("systemctl", "--quiet", "is-active", unit)[0] == 0), "")


def mirror_changes(root: Path, mirrors: list[dict[str, str]]) -> list[dict[str, str]]:
    """Where apt's sources still name an archive for which a mirror is wished."""
    parts = root / "etc/apt/sources.list.d"
    files = [root / "etc/apt/sources.list", *sorted(parts.glob("*.list")), *sorted(parts.glob("*.sources"))]
    texts = {path: path.read_text(encoding="utf-8") for path in files if path.is_file()}
    return [
        {"path": f"/{path.relative_to(root)}", **mirror}
        for path, text in texts.items()
        for mirror in mirrors
        if mirror["from"] in text and OURS not in text
    ]


def marked(root: Path, paths: list[str]) -> list[str]:
    """The files among `paths` that hold a block of this role."""
    places = {path: root / path.lstrip("/") for path in paths}
    mark = f"BEGIN {OURS} base"
    return [path for path, place in places.items() if place.is_file() and mark in place.read_text(encoding="utf-8")]


def look(wishes: dict[str, Any], root: Path = Path("/")) -> dict[str, Any]:
    """All of it, the clock first: the wait for the first boot takes its time."""
    return {
        "clock_ahead_s": round(time.time() - wishes["now_s"]),
        "first_boot": first_boot(wishes["first_boot_timeout_s"]),
        "unfinished_packages": unfinished_packages(root),
        "timekeeper": timekeeper(),
        "mirror_changes": mirror_changes(root, wishes["mirrors"]),
        "blocks": marked(root, wishes["blocks"]),
    }


if __name__ == "__main__":
    json.dump(look(json.loads(sys.argv[1])), sys.stdout)
