"""Look at the loaded driver and at the CUDA toolkit that /usr/local/cuda leads to; runs on the rig, changes nothing.

Prints one JSON object.
"""

import json
import sys
from pathlib import Path


def main() -> None:
    """Print the JSON object."""
    loaded = Path("/sys/module/nvidia/version")
    chosen = Path("/etc/alternatives/cuda")
    looked = {
        "driver": loaded.read_text(encoding="ascii").strip() if loaded.is_file() else "",
        "chosen": str(chosen.readlink()) if chosen.is_symlink() else "",
    }
    json.dump(looked, sys.stdout)


if __name__ == "__main__":
    main()
