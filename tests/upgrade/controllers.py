"""Controllers as real processes: `python -m tests.upgrade.controllers` forks one for each line that it is told.

Importing rigctl takes a second, and a walk over every moment of an upgrade needs hundreds of controllers. Each is told
its command line, the park, and in which moment it is to die.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from rigctl.cli.app import main

from .on_disk import Points, in_place_of_rigs

ROOT = Path(__file__).resolve().parents[2]


class Controllers:
    """The test's side."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.upgrade.controllers"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
        )  # fmt: skip

    def start(self, park: Path, *words: str, kill_at: int = 0) -> int:
        """Start `rigctl WORDS` over a park; return its process id."""
        return int(self._ask({"park": str(park), "words": words, "kill_at": kill_at})["pid"])

    def wait(self, pid: int) -> int:
        """Its exit code; -9 where it was killed."""
        return int(self._ask({"wait": pid})["code"])

    def run(self, park: Path, *words: str, kill_at: int = 0) -> int:
        """Start it and wait for its end."""
        return self.wait(self.start(park, *words, kill_at=kill_at))

    def close(self) -> None:
        """End the process that forks them."""
        self._process.communicate("", timeout=60)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def said(park: Path, pid: int) -> str:
    """What a controller has written on both outputs so far."""
    path = park / f"{pid}.out"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _live(request: dict[str, Any]) -> NoReturn:
    park = Path(request["park"])
    out = os.open(park / f"{os.getpid()}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(out, number)
    points = Points(kill_at=request["kill_at"])
    patch = pytest.MonkeyPatch()
    for target, replacement in in_place_of_rigs(park, points).items():
        patch.setattr(target, replacement)
    words = ["upgrade", *request["words"], "-i", str(park / "inventory"), "--runs", str(park / "runs")]
    code = main(words)
    (park / "points").write_text("\n".join(points.passed), encoding="utf-8")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve() -> None:
    """Fork a controller for each line of standard input, or wait for one."""
    for name in ("start", "run", "show", "summary", "left"):  # what commands import late is imported once, here
        importlib.import_module(f"rigctl.upgrade.{name}")
    importlib.import_module("rigctl.report.html")
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = {"code": os.waitstatus_to_exitcode(status)}
        else:
            pid = os.fork()
            if pid == 0:
                _live(request)
            answer = {"pid": pid}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
