"""`rigctl accept` as people leave it: Ctrl-C says where the readings are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from rigctl.cli.app import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_after_ctrl_c_it_says_where_the_readings_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rigctl.inventory.load_fleet", lambda _inventory, _pattern: ())
    monkeypatch.setattr("rigctl.accept.start_run", lambda _options: SimpleNamespace(path=tmp_path / "a-run"))
    monkeypatch.setattr("rigctl.accept.accept", interrupted)
    monkeypatch.setattr("rigctl.cli.accept.console.width", 40)
    assert main(["accept"]) == 130
    said = capsys.readouterr().err.splitlines()
    assert said == [f"stopped; what was measured is in {tmp_path / 'a-run'}", "error: interrupted"]
