"""`rigctl accept` as people leave it: Ctrl-C says where the readings are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.cli.app import main
from rigctl.store import RunDir

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_after_ctrl_c_it_says_where_the_readings_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rigctl.inventory.load_fleet", lambda _inventory, _pattern: ())
    run = RunDir.create(tmp_path, "accept")
    run.journal("run_finished", exit_code=1, interrupted=True)
    monkeypatch.setattr("rigctl.accept.start_run", lambda _options: run)
    monkeypatch.setattr("rigctl.accept.carry_out", interrupted)
    monkeypatch.setattr("rigctl.cli.accept.console.width", 40)
    assert main(["accept"]) == 130
    said = capsys.readouterr().err.splitlines()
    assert said == [f"stopped; what was measured is in {run.path}", "error: interrupted"]
