"""The agent as one file: the same bytes every time, and it runs where nothing of rigctl is."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rigctl.agent
from rigctl.fleet.bundle import build_bundle
from rigctl.model.reading import Facts, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

AGENT = Path(rigctl.agent.__file__).parent
NEWER_THAN_310 = {"tomllib"}
"""Modules of the standard library that Ubuntu 22.04's Python 3.10 does not have."""
NEWER_NAMES = {"StrEnum", "UTC", "ExceptionGroup", "BaseExceptionGroup", "Self", "assert_never", "batched", "TaskGroup"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("agent") / "bundle.pyz"
    path.write_bytes(build_bundle().data)
    return path


def call(bundle: Path, *args: str, python: str = sys.executable, stdin: bytes = b"") -> tuple[int, dict[str, Any]]:
    done = subprocess.run([python, "-I", str(bundle), *args], input=stdin, capture_output=True, timeout=60, check=False)
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 1, done.stderr.decode()
    return done.returncode, json.loads(lines[0])


def test_the_same_sources_give_the_same_bytes(bundle: Path) -> None:
    build_bundle.cache_clear()
    again = build_bundle()
    assert again.data == bundle.read_bytes()
    assert len(again.sha256) == 64


def test_it_holds_the_agent_pynvml_and_nothing_else(bundle: Path) -> None:
    names = set(zipfile.ZipFile(bundle).namelist())
    agent = {f"rigctl_agent/{path.relative_to(AGENT).as_posix()}" for path in AGENT.rglob("*.py")}
    assert names == {"__main__.py", "pynvml.py"} | agent


def test_facts_without_a_driver_say_so_and_succeed(bundle: Path, tmp_path: Path) -> None:
    status, answer = call(bundle, "facts", "--gpu-burn-dir", str(tmp_path), "--torch-venv", str(tmp_path))
    facts = Facts.model_validate(answer)
    assert status == 0
    assert facts.cpu_threads > 0
    assert facts.memory_mib > 100
    assert facts.tools.gpu_burn is None
    if not facts.gpus:
        assert facts.driver.nvml_error


def test_probe_reads_and_changes_nothing(bundle: Path) -> None:
    status, answer = call(bundle, "probe")
    assert status == 0
    assert Sample.model_validate(answer["sample"]).step == "idle"
    assert answer["sample"]["cpu_util_pct"] is not None
    assert isinstance(answer["kernel_read"], bool)
    assert answer["kernel_read"] or answer["kernel_error"]


@pytest.mark.parametrize(
    "args", [(), ("nonsense",), ("poll",), ("poll", "--run", "r", "--offset", "x"), ("stop", "--run", "../r")]
)
def test_what_it_cannot_do_is_one_error_with_a_hint(bundle: Path, args: tuple[str, ...]) -> None:
    status, answer = call(bundle, *args)
    assert status == 1
    assert answer["error"]
    assert answer["hint"]


def test_a_plan_that_cannot_be_read_is_refused(bundle: Path) -> None:
    status, answer = call(bundle, "start", stdin=b"{}")
    assert (status, answer["error"]) == (1, "the plan cannot be read: no 'run_id'")


@pytest.mark.skipif(shutil.which("python3.10") is None, reason="no Python 3.10 here")
def test_it_runs_on_python_310(bundle: Path) -> None:
    python = shutil.which("python3.10") or ""
    if subprocess.run([python, "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("python3.10 is a shim without a Python behind it")
    status, answer = call(bundle, "facts", python=python)
    assert (status, answer["python"][:4]) == (0, "3.10")


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(AGENT.rglob("*.py")):
        yield path.relative_to(AGENT).as_posix(), ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))


def test_it_imports_the_standard_library_and_pynvml_only() -> None:
    allowed = (set(sys.stdlib_module_names) | {"pynvml"}) - NEWER_THAN_310
    for name, tree in sources():
        for entry in ast.walk(tree):
            if isinstance(entry, ast.Import):
                modules = [alias.name for alias in entry.names]
            elif isinstance(entry, ast.ImportFrom):
                # Only `.` and never `..`: inside the bundle there is nothing above the agent.
                assert entry.level <= 1, name
                modules = [] if entry.level else [entry.module or ""]
            else:
                continue
            wrong = {module.partition(".")[0] for module in modules} - allowed
            assert wrong <= ({"torch"} if name.startswith("scripts/") else set()), f"{name} imports {wrong}"


def test_it_uses_no_name_that_python_310_lacks() -> None:
    for name, tree in sources():
        used = {entry.attr for entry in ast.walk(tree) if isinstance(entry, ast.Attribute)}
        used |= {alias.name for entry in ast.walk(tree) if isinstance(entry, ast.ImportFrom) for alias in entry.names}
        assert not used & NEWER_NAMES, name
