"""The rig through which a bundle is made: it reaches the package sources and is of the same kind as the others."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rigctl import assets
from rigctl.errors import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.fleet.commands import Commands

_SCRIPT = Path(__file__).with_name("on_rig.py")
_HISTORY = Path(__file__).with_name("history.py")
_CHUNK_MIB = 16
_CHUNK_TIMEOUT_S = 300
_LONG_S = 3600
_SHORT_S = 120
_PRELUDE = """\
import importlib.abc, importlib.util, sys
class _Sent(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name in _SOURCES else None
    def get_source(self, name):
        return _SOURCES[name]
sys.meta_path.insert(0, _Sent())
"""
"""Lets a script on standard input import the roles' scripts that are sent with it."""


class SourceRig:
    """Asks one rig, over a connection that stands."""

    def __init__(self, connection: Commands) -> None:
        self._connection = connection
        self._script = _whole_script()
        self._scratch = ""

    def resolve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have the rig say what a bare rig would install; the answer is that of `on_rig.resolve`.

        Raises:
            CommandFailed: its package sources cannot give it; with the reason and the remedy.
            RigError: as the connection's `run`.
        """
        answer = self._ask({"do": "resolve", **request}, _LONG_S)
        self._scratch = str(answer["scratch"])
        return answer

    def fetch(self, packages: list[str]) -> dict[str, str]:
        """Have the rig fetch packages (`name=version`) and return where they lie there."""
        places: dict[str, str] = self._ask({"do": "fetch", "packages": packages, **self._here()}, _LONG_S)["places"]
        return places

    def pack_git(self, repo: str, commit: str) -> dict[str, Any]:
        """Have the rig pack a commit's history; the answer names place, size and hash."""
        return self._ask({"do": "pack_git", "repo": repo, "commit": commit, **self._here()}, _LONG_S)

    def wheels(self, folder: str) -> list[dict[str, Any]]:
        """Return the wheels of a folder on the rig: place, name, size, hash."""
        wheels: list[dict[str, Any]] = self._ask({"do": "list_wheels", "folder": folder}, _LONG_S)["wheels"]
        return wheels

    def bring(self, place: str, to: Path, size: int, sha256: str, moved: Callable[[int], None]) -> None:
        """Bring a file here, whole or not at all; `moved` is told of every piece, in bytes.

        Raises:
            CommandFailed: it cannot be read there, or is not what the rig's package lists promise.
        """
        part = to.with_name(f"{to.name}.part")
        digest, at = hashlib.sha256(), 0
        with part.open("wb") as stream:
            while at < size:
                words = f"dd if={shlex.quote(place)} bs=1M skip={at >> 20} count={_CHUNK_MIB} status=none"
                reply = self._connection.run(words, timeout_s=_CHUNK_TIMEOUT_S, root=True)
                if reply.exit_status != 0 or not reply.stdout:
                    raise self._failed(reply.stderr.decode(errors="replace") or f"{place} ends early")
                stream.write(reply.stdout)
                digest.update(reply.stdout)
                at += len(reply.stdout)
                moved(len(reply.stdout))
        if digest.hexdigest() != sha256:
            part.unlink()
            raise CommandFailed(
                f"{self._connection.name}: {to.name} is not what the package lists promise",
                "run there: sudo apt-get update; look at proxies on the way, then bundle again",
            )
        part.replace(to)

    def forget(self, places: list[str] | None = None) -> None:
        """Remove files from the rig's scratch folder, or all of it."""
        if self._scratch:
            self._ask({"do": "forget", "places": places or [], **self._here()}, _SHORT_S)

    def _here(self) -> dict[str, str]:
        return {"scratch": self._scratch}

    def _ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        words = ["python3", "-I", "-", json.dumps(request)]
        reply = self._connection.run(words, timeout_s=timeout_s, stdin=self._script, root=True)
        try:
            answer: dict[str, Any] = json.loads(reply.stdout)
        except ValueError as error:
            raise self._failed(reply.stderr.decode(errors="replace") or "no word") from error
        if "error" in answer:
            raise CommandFailed(f"{self._connection.name}: {answer['error']}", str(answer["hint"]))
        return answer

    def _failed(self, said: str) -> CommandFailed:
        last = [line.strip() for line in said.splitlines() if line.strip()][-3:]
        return CommandFailed(
            f"{self._connection.name}: the work for the bundle did not end there: {' | '.join(last)}",
            f"run: rigctl doctor {self._connection.name}; and look for a full disk (df -h /var/tmp)",
        )


def _whole_script() -> bytes:
    """The script with the roles' own ones that choose a driver and know the CUDA repository's strays."""
    roles = assets.roles_dir()
    files = [*(roles / "nvidia_driver" / "files").glob("*.py"), roles / "cuda" / "files" / "sources.py", _HISTORY]
    sources = {path.stem: path.read_text(encoding="utf-8") for path in files}
    script = _SCRIPT.read_text(encoding="utf-8")
    return f"_SOURCES = {sources!r}\n{_PRELUDE}\n{script}".encode()
