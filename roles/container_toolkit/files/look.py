"""Look at the loaded driver, the CDI specification and the last trial; runs on the rig, changes nothing.

Its one argument is JSON: `spec` and `trial`, the paths of the latter two. Prints one JSON object.
"""

import json
import re
import sys
from pathlib import Path


def read(path: str) -> str:
    """A text file; empty where there is none."""
    return Path(path).read_text(encoding="utf-8") if Path(path).is_file() else ""


def drivers_in(spec: str) -> list[str]:
    """The driver versions whose libraries a CDI specification hands to containers."""
    return sorted(set(re.findall(r"/lib(?:cuda|nvidia-ml)\.so\.(\d+\.\d[0-9.]*\d)", spec)))


def record(text: str) -> dict[str, object]:
    """The record of a trial; nothing where there is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def main(argument: str) -> None:
    """Print the JSON object."""
    paths = json.loads(argument)
    looked = {
        "driver": read("/sys/module/nvidia/version").strip(),
        "spec_drivers": drivers_in(read(paths["spec"])),
        "trial": record(read(paths["trial"])),
    }
    json.dump(looked, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
