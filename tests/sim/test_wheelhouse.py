from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.sim import calibrate, wheelhouse
from rigctl.sim.wheelhouse import NoCpuWheel, Wheelhouse

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = {"version": "2.13.0+cpu", "requires_dist": ["filelock", "sympy>=1.13.3"]}
CUDA = {"version": "2.13.0", "requires_dist": ["filelock", 'nvidia-cublas-cu12==12.8.4; platform_system == "Linux"']}


def report(metadata: dict[str, Any], path: Path) -> str:
    """What `pip install --report` prints."""
    return json.dumps({"install": [{"metadata": metadata, "download_info": {"url": path.as_uri()}}]})


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "torch.whl"
    path.write_bytes(b"wheel")
    return path


def quiet(_line: str) -> None:
    """Show nothing."""


def test_a_cpu_build_is_taken() -> None:
    assert wheelhouse.refusal(PLAIN, 192_000_000) is None


def test_a_cuda_build_is_refused_by_what_it_needs() -> None:
    assert "is a build for CUDA (it needs nvidia-cublas-cu12" in str(wheelhouse.refusal(CUDA, None))


def test_a_cuda_build_that_hides_its_needs_is_refused_by_its_size() -> None:
    assert "has 830 MB" in str(wheelhouse.refusal(PLAIN, 830_000_000))


def test_the_build_for_cpus_is_asked_for_first_and_fetched_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wheel: Path
) -> None:
    calls: list[tuple[str, ...]] = []
    folder = tmp_path / "wheels"

    def pip(*arguments: str) -> str:
        calls.append(arguments)
        if arguments[0] == "download":
            (folder / "torch-2.13.0+cpu-cp311.whl").touch()
        return report(PLAIN, wheel)

    monkeypatch.setattr(wheelhouse, "_pip", pip)
    found = wheelhouse.ensure_wheelhouse(folder, "3.11", quiet)
    assert found.torch_version == "2.13.0+cpu"
    assert calls[0][-1] == "torch==2.13.0+cpu"
    assert "--python-version=3.11" in calls[1]
    assert wheelhouse.ensure_wheelhouse(folder, "3.11", quiet) == found
    assert len(calls) == 2


def test_a_wheel_that_is_gone_is_fetched_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wheel: Path) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    manifest = {"torch_version": "2.13.0", "python": "3.11", "files": ["torch.whl"]}
    (folder / "wheels.json").write_text(json.dumps(manifest))
    fetched = []

    def pip(*arguments: str) -> str:
        fetched.append(arguments[0])
        return report(PLAIN, wheel)

    monkeypatch.setattr(wheelhouse, "_pip", pip)
    wheelhouse.ensure_wheelhouse(folder, "3.11", quiet)
    assert "download" in fetched


def test_where_only_a_cuda_build_is_offered_nothing_is_downloaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wheel: Path
) -> None:
    def pip(*arguments: str) -> str:
        assert arguments[0] != "download"
        if arguments[-1].endswith("+cpu"):
            raise NoCpuWheel("No matching distribution found for torch==2.13.0+cpu")
        return report(CUDA, wheel)

    monkeypatch.setattr(wheelhouse, "_pip", pip)
    with pytest.raises(NoCpuWheel, match=r"No matching distribution.*is a build for CUDA"):
        wheelhouse.ensure_wheelhouse(tmp_path / "wheels", "3.11", quiet)


def test_no_wheel_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_arguments: object) -> Wheelhouse:
        raise NoCpuWheel("No matching distribution found")

    monkeypatch.setattr(wheelhouse, "ensure_wheelhouse", refuse)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lines: list[str] = []
    assert calibrate.prepare_wheels("3.10", lines.append) is None
    assert len(lines) == 1
    assert "python3-torch" in lines[0]
