"""What benches share: the command line, and two simulated rigs, provisioned once and only when a bench asks."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

BIN = Path(sys.executable).parent
OUTPUT_LINES = 15


class BenchFailed(Exception):
    """A command that a figure rests on did not do its work."""


class Stage:
    """The place where benches run; leaving it takes the rigs down."""

    def __init__(self) -> None:
        self._cleanup = ExitStack()
        self.folder = Path(mkdtemp(prefix="rigctl-bench-"))
        self._cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.runs = self.folder / "runs"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._cleanup.close()

    @cached_property
    def state(self) -> Path:
        """State folder of two provisioned simulated rigs, with ssh_config and inventory."""
        state = self.folder / "state"
        self._cleanup.callback(self.rigctl, "sim", "down", "--state", str(state))
        self.rigctl("sim", "up", "-n", "2", "--state", str(state))
        self.rigctl("provision", "-i", str(state / "inventory"), "--runs", str(self.runs))
        return state

    @property
    def inventory(self) -> Path:
        """Their inventory."""
        return self.state / "inventory"

    def inventory_with(self, name: str, variables: dict[str, Any]) -> Path:
        """Return a copy of the rigs' inventory in which `variables` hold for all rigs."""
        copy = self.folder / name
        shutil.copytree(self.inventory, copy)
        # The last file of the folder in alphabetical order wins. JSON is YAML.
        (copy / "group_vars" / "all" / "zz_bench.yml").write_text(json.dumps(variables), encoding="utf-8")
        return copy

    def rigctl(self, *words: str, expect: tuple[int, ...] = (0,), env: dict[str, str] | None = None) -> float:
        """Run a command line and return how long it took, seconds.

        Raises:
            BenchFailed: its exit code is not among `expect`.
        """
        began = time.monotonic()
        done = subprocess.run(
            [BIN / "rigctl", *words], env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - began
        if done.returncode not in expect:
            last = (done.stdout + done.stderr).splitlines()[-OUTPUT_LINES:]
            raise BenchFailed(
                "\n".join([f"rigctl {' '.join(words)}: exit {done.returncode} after {seconds:.0f} s", *last])
            )
        return seconds

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command line in a process group of its own, output into a file."""
        log = self.folder / "started.log"
        with log.open("wb") as out:
            return subprocess.Popen([BIN / "rigctl", *words], stdout=out, stderr=out, start_new_session=True)

    def ssh(self, rig: str, command: str) -> str:
        """Return what `command` prints on a rig, asked by the plain OpenSSH client; empty where it fails."""
        done = subprocess.run(
            ["ssh", "-F", self.state / "ssh_config", rig, command],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.stdout

    def newest_run(self) -> Path:
        """Return the directory of the newest run."""
        return max(self.runs.glob("*/run.json"), key=lambda path: path.stat().st_mtime_ns).parent


def jsonl(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a JSON-lines file, compressed or not; a cut last line, normal after a crash, is left out."""
    packed = path.with_name(f"{path.name}.gz")
    if packed.exists():
        text = gzip.decompress(packed.read_bytes()).decode()
    else:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = text.splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def wait_for(what: str, condition: Any, timeout_s: float, every_s: float = 0.25) -> float:
    """Wait until `condition()` is true and return how long that took, seconds.

    Raises:
        BenchFailed: it was not within `timeout_s`.
    """
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > timeout_s:
            raise BenchFailed(f"not within {timeout_s:g} s: {what}")
        time.sleep(every_s)
    return time.monotonic() - began
