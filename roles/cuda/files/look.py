"""Look at the loaded driver, the CUDA toolkit that /usr/local/cuda leads to, and the toolkits that apt knows.

Runs on the rig with the system's Python (standard library only), changes nothing, and prints one JSON object.
"""

import json
import re
import subprocess
import sys
from pathlib import Path


def read_toolkits(names: str) -> list[str]:
    """`apt-cache pkgnames` → the toolkits among the packages, oldest first: `cuda-toolkit-11-7` is 11.7."""
    found = {
        (int(major), int(minor)) for major, minor in re.findall(r"^cuda-toolkit-(\d+)-(\d+)$", names, re.MULTILINE)
    }
    return [f"{major}.{minor}" for major, minor in sorted(found)]


def main() -> None:
    """Print the JSON object."""
    loaded = Path("/sys/module/nvidia/version")
    chosen = Path("/etc/alternatives/cuda")
    names = subprocess.run(["apt-cache", "pkgnames", "cuda-toolkit-"], capture_output=True, text=True, check=False)
    looked = {
        "driver": loaded.read_text(encoding="ascii").strip() if loaded.is_file() else "",
        "chosen": str(chosen.readlink()) if chosen.is_symlink() else "",
        "toolkits": read_toolkits(names.stdout),
    }
    json.dump(looked, sys.stdout)


if __name__ == "__main__":
    main()
