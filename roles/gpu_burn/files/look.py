"""Look at what gpu-burn would be built for and at the build that is there; runs on the rig, changes nothing.

Arguments: the folder of gpu-burn, the CUDA toolkit's folder. Prints one JSON object.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path


def answer(*argv: str) -> str:
    """A command's output, or nothing where it fails, hangs or does not exist."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def capabilities(text: str) -> list[str]:
    """`8.6` on each line of nvidia-smi → the different ones, lowest first; `[N/A]` is none."""
    found = {line.strip() for line in text.splitlines() if re.fullmatch(r"\d+\.\d", line.strip())}
    return sorted(found, key=lambda capability: [int(part) for part in capability.split(".")])


def toolkit(text: str) -> str:
    """`nvcc --version` → `11.7`."""
    found = re.search(r"release (\d+\.\d+)", text)
    return found.group(1) if found else ""


def stubs(cuda_home: Path) -> str:
    """The folder of the toolkit's own libcuda.so, to link against where no driver is; as NVIDIA or Debian has it."""
    folders = [cuda_home / name / "stubs" for name in ("lib64", "lib/x86_64-linux-gnu", "lib")]
    return str(next((folder for folder in folders if (folder / "libcuda.so").exists()), folders[0]))


def recorded(folder: Path) -> dict[str, object]:
    """The build's own record, or nothing where a part of the build is missing."""
    parts = [folder / name for name in ("build.json", "gpu_burn", "compare.fatbin")]
    if not all(part.is_file() for part in parts) or not os.access(parts[1], os.X_OK):
        return {}
    try:
        found = json.loads(parts[0].read_text(encoding="utf-8"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def main(folder: str, cuda_home: str) -> None:
    """Print the JSON object."""
    loaded = Path("/sys/module/nvidia/version")
    looked = {
        "compute_capabilities": capabilities(answer("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")),
        "driver": loaded.read_text(encoding="ascii").strip() if loaded.is_file() else "",
        "toolkit": toolkit(answer(f"{cuda_home}/bin/nvcc", "--version")),
        "stubs": stubs(Path(cuda_home)),
        "commit": answer("git", "-C", folder, "rev-parse", "HEAD"),
        "build": recorded(Path(folder)),
    }
    json.dump(looked, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
