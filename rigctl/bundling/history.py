"""A commit's history as one file: a bare repository in an archive, that needs no git to be unpacked.

Also sent to rigs with the standard library alone, Python 3.10.
"""

import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

TIMEOUT_S = 1800


class HistoryMissing(Exception):
    """Why git cannot get the commit."""


def pack(repo: str, commit: str, to: Path) -> None:
    """Write the history of one commit to a file, whole or not at all.

    Raises:
        HistoryMissing: with git's reason.
    """
    if shutil.which("git") is None:
        raise HistoryMissing("git is not installed there: apt-get install git")
    with tempfile.TemporaryDirectory(prefix=".git-", dir=to.parent) as folder:
        mirror, bare, packed = Path(folder, "mirror"), Path(folder, "bare"), Path(folder, "packed")
        _git("clone", "--quiet", "--mirror", repo, str(mirror))
        _git("-C", str(mirror), "update-ref", "refs/heads/bundled", commit)
        one = ("--bare", "--no-tags", "--single-branch", "--branch=bundled", "--template=")
        _git("clone", "--quiet", *one, mirror.as_uri(), str(bare))
        with tarfile.open(packed, "w") as archive:
            archive.add(bare, arcname=".", filter=_plain)
        packed.replace(to)


def _git(*words: str) -> None:
    env = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run(["git", *words], capture_output=True, text=True, timeout=TIMEOUT_S, env=env, check=False)
    if done.returncode != 0:
        raise HistoryMissing(" ".join(done.stderr.split())[-300:])


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """An entry without whoever packed it."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry
