"""Find what other installations left of NVIDIA's CUDA repository in apt's configuration: lists, keys, pins, packages.

Runs on the rig with the system's Python (standard library only), changes nothing, and prints one JSON object. Its one
argument is JSON: `line` (our own line of an apt source) and `own` (paths that are ours).
"""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

NVIDIA = "developer.download.nvidia.com/compute/cuda/repos/"
RETIRED_KEY = bytes.fromhex("f60f4b3d7fa2af80")
"""Long id of the key that signed the repository until April 2022; a key carries it in its own signature."""
PACKAGES = re.compile(r"^cuda-(keyring|repo-\S+)$")
PUBLIC_KEY = 6


def addresses(line: str) -> list[str]:
    """Repository addresses in one line of an apt source, without a `/` at the end."""
    words = re.sub(r"\[[^]]*\]", " ", line.split("#", maxsplit=1)[0]).split()
    return [word.rstrip("/") for word in words if re.match(r"^[a-z+]+:/", word)]


def is_cuda(line: str, own: str) -> bool:
    """Whether a line names NVIDIA's CUDA repository, or the same repository as our own line."""
    return any(NVIDIA in address + "/" or address in addresses(own) for address in addresses(line))


def names_a_source(line: str) -> bool:
    """Whether a line of a list or of a deb822 file names repositories."""
    return bool(addresses(line)) and bool(re.match(r"^\s*(deb(-src)?\s|URIs:|https?:|file:)", line))


def read_list(text: str, own: str) -> str:
    """`whole` where a list names the CUDA repository alone, `lines` where it names others too; empty: neither."""
    sources = [line for line in text.splitlines() if names_a_source(line)]
    of_cuda = [line for line in sources if is_cuda(line, own)]
    if not of_cuda:
        return ""
    return "whole" if len(of_cuda) == len(sources) else "lines"


def packets(data: bytes) -> list[int]:
    """The tags of the OpenPGP packets in a keyring (RFC 4880, 4.2); stops where it is none."""
    tags, at = [], 0
    while at + 1 < len(data) and data[at] & 0x80:
        first, at = data[at], at + 1
        if first & 0x40:
            tags.append(first & 0x3F)
            octets, size = new_length(data[at : at + 5])
        else:
            tags.append((first >> 2) & 0x0F)
            octets = 1 << (first & 3)
            size = int.from_bytes(data[at : at + octets], "big")
        at += octets + size
    return tags


def new_length(data: bytes) -> tuple[int, int]:
    """A length in the new packet format: how many octets it takes, and its value (RFC 4880, 4.2.2)."""
    if data[0] < 192:  # noqa: PLR2004 - the RFC's own figures
        return 1, data[0]
    if data[0] < 224:  # noqa: PLR2004
        return 2, ((data[0] - 192) << 8) + data[1] + 192
    return 5, int.from_bytes(data[1:5], "big")


def binary(data: bytes) -> bytes:
    """A key as OpenPGP packets; armour is taken off."""
    found = re.search(rb"-----BEGIN PGP[^\n]*\n(?:\w+: [^\n]*\n)*\s*\n(.*?)(?:\n=[^\n]*)?\n-----END", data, re.DOTALL)
    return base64.b64decode(found.group(1)) if found else data


def is_retired_key(path: Path) -> bool:
    """Whether a keyring holds the retired key and no other one."""
    data = binary(path.read_bytes())
    return RETIRED_KEY in data and packets(data).count(PUBLIC_KEY) <= 1


def files(*patterns: str) -> list[Path]:
    """Every plain file that one of the patterns under / names."""
    return sorted(path for pattern in patterns for path in Path("/").glob(pattern) if path.is_file())


def read_packages(status: str) -> list[str]:
    """`dpkg-query` (name, status) → packages whose business is to bring that repository's list and key."""
    rows = [row.split() for row in status.splitlines()]
    return [row[0] for row in rows if row[1][1:2] == "i" and PACKAGES.match(row[0])]


def look(line: str, own: list[str]) -> dict[str, object]:
    """What is there."""
    lists: dict[str, list[str]] = {"": [], "whole": [], "lines": []}
    for path in files("etc/apt/sources.list", "etc/apt/sources.list.d/*.list", "etc/apt/sources.list.d/*.sources"):
        if str(path) not in own:
            lists[read_list(path.read_text(encoding="utf-8", errors="replace"), line)].append(str(path))
    keys = [path for path in files("etc/apt/trusted.gpg.d/*", "usr/share/keyrings/*cuda*") if is_retired_key(path)]
    pins = files("etc/apt/preferences.d/cuda-repository-pin-*")
    query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\n", "cuda-*"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    known = "|".join(re.escape(address) for address in (NVIDIA, *addresses(line)))
    return {
        "packages": read_packages(done.stdout),
        "files": [*lists["whole"], *(str(path) for path in (*keys, *pins) if str(path) not in own)],
        "lists": [path for path in lists["lines"] if not path.endswith(".sources")],
        "mixed": [path for path in lists["lines"] if path.endswith(".sources")],
        "pattern": rf"^\s*deb(-src)?\s.*({known})",
    }


def main(argument: str) -> None:
    """Print the JSON object."""
    wishes = json.loads(argument)
    json.dump(look(wishes["line"], wishes["own"]), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
