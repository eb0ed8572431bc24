"""What is written, and that only what changed is written again."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from rigctl.checks.catalogue import CATALOGUE
from rigctl.cli.app import main
from rigctl.errors import UsageError
from rigctl.model.verdict import Verdict
from rigctl.site import Built, build
from rigctl.site.views import DAYS, row_of
from rigctl.store.index import Cell, Index
from tests.report.build_run import build_run

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 12, 1, 6, 0, tzinfo=UTC)


class Place:
    """Runs, and the site over them."""

    def __init__(self, folder: Path) -> None:
        self.runs, self.site = folder / "runs", folder / "site"
        build_run(self.runs)

    def build(self, now: datetime = NOW, *, anew: bool = False) -> Built:
        with Index.open(self.runs) as index:
            index.update()
            return build(index, self.site, now, anew=anew)

    def written(self) -> dict[str, int]:
        return {
            str(path.relative_to(self.site)): path.stat().st_mtime_ns
            for path in self.site.rglob("*.*")
            if path.is_file()
        }


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_everything_is_written_once(place: Place) -> None:
    built = place.build()
    assert (built.runs, built.left_out) == (1, ())
    names = set(place.written())
    assert {"index.html", "style.css", "plotly.js", "rig.js", "rigs/rig1.html", "rigs/rig2.html"} <= names
    assert {f"checks/{check}.html" for check in CATALOGUE} <= names
    assert built.pages == len(names) - 1  # the manifest is none
    text = (place.site / "rigs/rig2.html").read_text(encoding="utf-8")
    assert "settled at 83" in text
    assert (
        "checks/thermals.settled_gpu_temp.html"
        in (place.site / f"runs/{next(iter(place.runs.glob('*Z-*'))).name}.html").read_text()
    )
    assert "settled at 83" in (place.site / "checks/thermals.settled_gpu_temp.html").read_text(encoding="utf-8")


def test_only_what_a_new_run_touches_is_written_again(place: Place) -> None:
    place.build()
    before = place.written()
    assert place.build().runs == 0
    same = {name for name, at in place.written().items() if before[name] == at}
    assert {"plotly.js", "style.css", "rigs/rig1.html", "rigs/rig2.html"} <= same
    build_run(place.runs, unreached=True)
    assert place.build().runs == 1
    after = place.written()
    assert {"rigs/rig3.html"} <= set(after) - set(before)
    old_run = next(name for name in before if name.startswith("runs/"))
    assert after[old_run] == before[old_run]
    assert after["plotly.js"] == before["plotly.js"]
    assert after["rigs/rig1.html"] != before["rigs/rig1.html"]
    assert place.build(anew=True).runs == 2


def test_a_run_that_is_gone_loses_its_page(place: Place) -> None:
    place.build()
    shutil.rmtree(next(iter(place.runs.glob("*Z-*"))))
    build_run(place.runs, faulty=False)
    place.build()
    assert len(list((place.site / "runs").iterdir())) == 1
    assert "rig2: ok" in (place.site / "rigs/rig2.html").read_text(encoding="utf-8")


def test_another_version_of_rigctl_writes_all_pages_again(place: Place) -> None:
    place.build()
    manifest = json.loads((place.site / "site.json").read_text(encoding="utf-8"))
    (place.site / "site.json").write_text(json.dumps(manifest | {"rigctl": "0.0.1"}), encoding="utf-8")
    assert place.build().runs == 1
    (place.site / "site.json").write_text("{", encoding="utf-8")
    assert place.build().runs == 1


def test_a_folder_of_something_else_is_left_alone(place: Place) -> None:
    place.site.mkdir()
    (place.site / "thesis.tex").touch()
    with pytest.raises(UsageError, match="holds something else than a site"):
        place.build()
    assert [path.name for path in place.site.iterdir()] == ["thesis.tex"]


def test_nothing_that_a_rig_says_becomes_markup(place: Place) -> None:
    run = next(iter(place.runs.glob("*Z-*")))
    path = run / "record.json"
    path.write_text(path.read_text().replace("settled at 83.0", "</script><script>alert(1)</script>"), encoding="utf-8")
    place.build(anew=True)
    for page in place.site.rglob("*.html"):
        assert "<script>alert" not in page.read_text(encoding="utf-8"), page


def cell(day: int, verdict: Verdict | None, cause: str = "", hour: int = 2) -> Cell:
    at = NOW - timedelta(days=day) + timedelta(hours=hour - 6)
    return Cell(rig="rig1", folder=f"run{day}", here=True, ended_at=at.isoformat(), verdict=verdict, cause=cause)


def test_a_year_has_a_place_for_each_day_and_shows_the_worst_of_it() -> None:
    cells = [
        cell(DAYS, Verdict.FAIL), cell(DAYS - 1, Verdict.BLIND), cell(2, Verdict.PASS, hour=1),
        cell(2, Verdict.FAIL, "kernel.xid[rig]: Xid 79", hour=2), cell(2, Verdict.PASS, hour=3), cell(1, None),
        cell(0, Verdict.WARN),
    ]  # fmt: skip
    row = row_of("rig1", cells, (), NOW)
    assert [(one.x, one.kind) for one in row.cells] == [(0, "pass"), (362, "fail"), (363, "busy"), (364, "warn")]
    assert row.label == "rig1, 4 nights: 1 fail, 1 warn, 1 pass, 1 busy"
    assert row.cells[1].title == "29 November 2026: fail: kernel.xid[rig]: Xid 79"
    assert (row.verdict, row_of("rig1", [cell(1, None)], (), NOW).verdict) == (Verdict.WARN, None)


def test_silence_is_not_health(place: Place) -> None:
    place.build(NOW + timedelta(days=60))
    text = (place.site / "index.html").read_text(encoding="utf-8")
    assert "2 rigs of 2 need somebody" in text
    assert "no verdict since 30 November 2026" in text
    assert not row_of("rig1", [cell(1, Verdict.PASS)], (), NOW + timedelta(hours=7)).stale
    assert row_of("rig1", [cell(1, Verdict.PASS)], (), NOW + timedelta(hours=9)).stale


def test_the_command(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["site", "--runs", str(place.runs), "--output", str(place.site)]
    assert main(words) == 0
    assert capsys.readouterr().out == f"{place.site / 'index.html'}\n"
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 0
    assert main(["site", "--runs", str(place.runs / "none")]) == 2
    assert "there is no folder of runs" in capsys.readouterr().err
