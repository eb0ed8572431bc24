"""Look at a rig's Python, driver and PyTorch environment; runs there, changes nothing, prints one JSON object.

Arguments: the Python to build the environment with, and the environment's folder.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def python_version(python: str, *code: str) -> str:
    """Major and minor version of a Python; empty where it does not run or cannot do what `code` does."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", "; ".join([*code, VERSION])], capture_output=True, text=True, timeout=30, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def torch_in(venv: str) -> str:
    """The version of PyTorch that is completely installed in the environment: pip writes RECORD at the end."""
    records = list(Path(venv).glob("lib/python3*/site-packages/torch-*.dist-info/RECORD"))
    return re.sub(r"\.dist-info$", "", records[0].parent.name).removeprefix("torch-") if records else ""


def main(python: str, venv: str) -> None:
    """Print the JSON object."""
    loaded = Path("/sys/module/nvidia/version")
    can_make = python_version(python, "import ensurepip, venv")
    looked = {
        "python": python_version(python),
        "venv_module": can_make != "",
        "driver": loaded.read_text(encoding="ascii").strip() if loaded.is_file() else "",
        "venv_python": python_version(f"{venv}/bin/python"),
        "torch": torch_in(venv),
        "system_site_packages": "= true" in read(f"{venv}/pyvenv.cfg"),
        "cards": len(list(Path("/proc/driver/nvidia/gpus").glob("*"))),
        "computed": computed(read(f"{venv}/computed.json")),
    }
    json.dump(looked, sys.stdout)


def computed(text: str) -> dict[str, object]:
    """The record of the last trial, see `compute.py`; nothing where there is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def read(path: str) -> str:
    """A text file; empty where there is none."""
    return Path(path).read_text(encoding="utf-8") if Path(path).is_file() else ""


if __name__ == "__main__":
    main(*sys.argv[1:])
