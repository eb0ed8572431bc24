"""Look at the loaded driver, the CUDA toolkit that /usr/local/cuda leads to, and the toolkits that apt knows.

Runs on the rig with the system's Python (standard library only), changes nothing, and prints one JSON object. Its one
argument is where toolkits come from: `nvidia` or `distribution`.
"""

import json
import os
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


def read_candidate(policy: str) -> str:
    """`apt-cache policy nvidia-cuda-toolkit` → the version that would be installed; empty for none."""
    found = re.search(r"^  Candidate: (\d\S*)$", policy, re.MULTILINE)
    return found.group(1) if found else ""


def toolkit_of(version: str) -> list[str]:
    """The toolkit in a version of nvidia-cuda-toolkit: `11.8.89~11.8.0-5~deb12u1` is 11.8, `11.5.1-1` is 11.5."""
    return re.findall(r"^\d+\.\d+", version)


def ask_apt(*words: str) -> str:
    """What apt-cache prints, in the C locale."""
    argv, env = ["apt-cache", *words], {**os.environ, "LC_ALL": "C"}
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=env).stdout


def main(source: str) -> None:
    """Print the JSON object."""
    loaded = Path("/sys/module/nvidia/version")
    chosen = Path("/etc/alternatives/cuda")
    package = ""
    if source == "distribution":
        package = read_candidate(ask_apt("policy", "nvidia-cuda-toolkit"))
        toolkits = toolkit_of(package)
    else:
        toolkits = read_toolkits(ask_apt("pkgnames", "cuda-toolkit-"))
    looked = {
        "driver": loaded.read_text(encoding="ascii").strip() if loaded.is_file() else "",
        "chosen": str(chosen.readlink()) if chosen.is_symlink() else "",
        "toolkits": toolkits,
        "package_version": package,
    }
    json.dump(looked, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
