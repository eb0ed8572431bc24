"""Take the driver away again that the role nvidia_driver has brought, and everything that came with it.

Runs on the rig as root with the system's Python (3.10 or newer, standard library only) and prints one JSON object.
Its one argument are wishes as JSON: check (only say what would be removed).
"""

import json
import sys
from pathlib import Path
from typing import Any

from apt_answers import is_driver, read_installed, read_simulation, run

BROUGHT = Path("/var/lib/gpu-rig/nvidia_driver.json")
TIMEOUT_S = 1800
PURGE = (
    "env", "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_MODE=l", "apt-get", "-q",
    "-o", "DPkg::Lock::Timeout=600", "--allow-change-held-packages",
)  # fmt: skip


def to_remove(brought: list[str], installed: dict[str, str]) -> list[str]:
    """The driver packages of any branch, and what the role's transactions brought beside them."""
    return sorted(name for name in installed if is_driver(name) or name in brought)


def needed_by_others(names: list[str]) -> tuple[list[str], str]:
    """Other packages that would go too; apt's words where it cannot remove these."""
    rc, text = run(*PURGE, "-s", "purge", *names)
    gone = [name for name, _ in read_simulation(text)["remove"]]
    return sorted(set(gone) - set(names)), " ".join(text.split())[-300:] if rc else ""


def remove(*, check: bool) -> dict[str, Any]:
    """Purge the packages: which, which stay because others need them, and why it could not be done."""
    brought = json.loads(BROUGHT.read_text(encoding="utf-8"))["packages"] if BROUGHT.is_file() else []
    status = run("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\n")[1]
    names = to_remove(brought, read_installed(status))
    others, said = needed_by_others(names) if names else ([], "")
    kept: list[str] = []
    if others:
        # Something that came later, such as the CUDA toolkit, needs a part of it: that part stays.
        kept = [name for name in names if not is_driver(name)]
        names = [name for name in names if is_driver(name)]
        others, said = needed_by_others(names) if names else ([], "")
    if others or said:
        return {"removed": [], "kept": kept, "refusal": said or f"{', '.join(others)} would be removed too"}
    if names and not check:
        rc, text = run(*PURGE, "-y", "purge", *names, timeout_s=TIMEOUT_S)
        said = " ".join(text.split())[-300:] if rc else ""
    if not (said or check or kept):
        BROUGHT.unlink(missing_ok=True)
        run("rmdir", "--ignore-fail-on-non-empty", str(BROUGHT.parent))
    return {"removed": names, "kept": kept, "refusal": said}


if __name__ == "__main__":
    json.dump(remove(check=json.loads(sys.argv[1])["check"]), sys.stdout)
