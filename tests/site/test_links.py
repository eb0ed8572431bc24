"""No link of a site is dead, whatever became of the runs; and what did not change is not written again."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from rigctl.checks.catalogue import CATALOGUE
from rigctl.model.verdict import BusyRig, CheckVerdict, Verdict
from rigctl.site import build
from rigctl.site.views import DAYS
from rigctl.store import RunDir
from rigctl.store.index import Index
from tests.report.build_run import build_run

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.model.verdict import Record
    from rigctl.site import Built

NOW = datetime(2026, 12, 1, 6, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


class Links(HTMLParser):
    """What a page points to, and the places in it that can be pointed to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"href", "src"} and value and not value.startswith("data:"):
                self.found.append(value)
            if name == "id" and value:
                self.ids.add(value)


class Place:
    """Runs, and the site over them."""

    def __init__(self, folder: Path) -> None:
        self.runs, self.site = folder / "runs", folder / "site"

    def build(self, now: datetime = NOW) -> Built:
        with Index.open(self.runs) as index:
            index.update()
            return build(index, self.site, now)

    def dead(self) -> list[str]:
        """Every link that leads nowhere, with its page."""
        found = []
        pages = {path: Links(path.read_text(encoding="utf-8")) for path in self.site.rglob("*.html")}
        assert len(pages) > len(CATALOGUE)
        for page, links in pages.items():
            for link in links.found:
                parts = urlsplit(link)
                assert not parts.scheme, f"{page.name} asks something of another machine: {link}"
                target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
                known = pages.get(target)
                if not target.is_file() or (parts.fragment and known is not None and parts.fragment not in known.ids):
                    found.append(f"{page.relative_to(self.site)}: {link}")
        return found

    def written(self) -> dict[str, int]:
        return {str(path.relative_to(self.site)): path.stat().st_mtime_ns for path in self.site.rglob("*.*")}

    def text(self, name: str) -> str:
        return (self.site / name).read_text(encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    build_run(made.runs)
    build_run(made.runs, unreached=True)
    return made


def retold(run: RunDir, **known: object) -> Record:
    """Write a run's record with other words."""
    record = run.read_record().model_copy(update=known)
    run.write_record(record)
    return record


def runs_of(place: Place) -> list[RunDir]:
    return [RunDir(path) for path in sorted(place.runs.iterdir()) if path.is_dir()]


def silent(place: Place, name: str = "rig7", years: float = 1.5) -> str:
    """A rig whose only night is so long ago, and failed; return its day."""
    at = NOW - timedelta(days=365 * years)
    run = build_run(place.runs)
    record = run.read_record()
    rig = record.rigs[1].model_copy(update={"name": name})
    shutil.copytree(run.path / record.rigs[1].name, run.path / name)
    retold(run, rigs=(rig,), started_at=at.isoformat(), ended_at=at.isoformat())
    return f"{at:%-d %B %Y}"


def test_the_walk_finds_a_dead_link(place: Place) -> None:
    place.build()
    assert place.dead() == []
    gone = next((place.site / "runs").iterdir())
    gone.unlink()
    assert {link.partition(": ")[2] for link in place.dead()} == {f"../runs/{gone.name}"}


def test_a_run_that_is_damaged_from_the_beginning(place: Place) -> None:
    (runs_of(place)[0].path / "record.json").write_text("{", encoding="utf-8")
    place.build()
    assert place.dead() == []
    assert len(list((place.site / "runs").iterdir())) == 1


@pytest.mark.parametrize("before", [False, True], ids=["a first site", "one that had its page"])
def test_a_run_that_is_damaged_while_the_site_is_written(place: Place, *, before: bool) -> None:
    """The index has read it, the site cannot; when it is whole again it gets its page."""
    if before:
        place.build()
    path = runs_of(place)[0].path / "record.json"
    whole = path.read_bytes()
    path.with_name("touched").touch()
    with Index.open(place.runs) as index:
        index.update()
        path.write_bytes(whole[: len(whole) // 2])
        ((name, why),) = build(index, place.site, NOW).left_out
    assert (name, "record.json" in why) == (path.parent.name, True)
    assert place.dead() == []
    assert not (place.site / "runs" / f"{name}.html").exists()
    path.write_bytes(whole)
    place.build()
    assert place.dead() == []
    assert f"../runs/{name}.html" in place.text("rigs/rig2.html")


def test_a_report_that_was_pruned(place: Place) -> None:
    run = runs_of(place)[0]
    run.write_text_atomic("report.html", "<p>all of it")
    place.build()
    assert "the whole report" in place.text(f"runs/{run.path.name}.html")
    (run.path / "report.html").unlink()
    place.build()
    assert place.dead() == []
    run.write_text_atomic("report.html", "<p>all of it")
    place.build()
    (run.path / "report.html").unlink()
    place.build(NOW + timedelta(days=2 * DAYS))
    assert place.dead() == [], "nor that of a run older than the year"


def test_a_rig_of_which_no_run_is_left(place: Place) -> None:
    place.build()
    assert (place.site / "rigs/rig3.html").exists()
    (only,) = (run for run in runs_of(place) if len(run.read_record().rigs) == len(("rig1", "rig2", "rig3")))
    shutil.rmtree(only.path)
    place.build()
    assert not (place.site / "rigs/rig3.html").exists()
    assert place.dead() == []


def test_a_waiver_of_a_check_of_people_s_own(place: Place) -> None:
    run = runs_of(place)[0]
    own = CheckVerdict(
        check="own.door", subject="rig", verdict=Verdict.WAIVED, reason="open", waived_until=date(2027, 1, 1)
    )
    first, *rest = run.read_record().rigs
    retold(run, rigs=(first.model_copy(update={"verdicts": (*first.verdicts, own)}), *rest))
    shutil.rmtree(runs_of(place)[1].path)
    place.build()
    assert "own.door (rig) until 1 January 2027" in place.text("rigs/rig1.html")
    assert place.dead() == []


def test_a_rig_with_an_odd_name(place: Place) -> None:
    silent(place, "rig 7#50%?", years=0.5)
    place.build()
    assert (place.site / "rigs/rig 7#50%?.html").exists()
    assert place.dead() == []


def test_a_rig_that_is_silent_for_more_than_a_year_is_kept_with_the_day_of_its_last_verdict(place: Place) -> None:
    day = silent(place)
    place.build()
    fleet, page = place.text("index.html"), place.text("rigs/rig7.html")
    assert f"no verdict since {day}" in fleet
    assert f"no verdict since {day}" in page
    assert "1 rig silent for more than a year" in fleet
    assert "2 rigs of 3 need somebody" in fleet, "it is not counted among those in use"
    assert fleet.index("rigs/rig1.html") < fleet.index("rigs/rig7.html")
    assert "settled at 83" in page
    assert place.dead() == []
    before = place.written()
    place.build(LATER)
    assert place.written()["rigs/rig7.html"] == before["rigs/rig7.html"]


def test_a_rig_falls_silent_and_comes_back(place: Place) -> None:
    place.build()
    then = NOW + timedelta(days=2 * DAYS)
    place.build(then)
    assert "3 rigs silent for more than a year" in place.text("index.html")
    assert "no verdict since 30 November 2026" in place.text("rigs/rig1.html")
    assert place.dead() == []
    retold(build_run(place.runs, faulty=False), ended_at=then.isoformat())
    place.build(then)
    assert "2 of 2 ok, 1 rig silent" in place.text("index.html")
    assert "no verdict since" not in place.text("rigs/rig1.html")
    assert place.dead() == []


def test_a_rig_that_was_only_busy_for_a_year_shows_its_last_verdict(place: Place) -> None:
    day = silent(place)
    run = build_run(place.runs)
    busy = BusyRig(name="rig7", rig_class="dual_3090ti", users="alice")
    retold(run, rigs=(), busy=(busy, busy.model_copy(update={"name": "rig8"})))
    place.build()
    assert f"no verdict since {day}" in place.text("index.html")
    assert "never judged" in place.text("rigs/rig8.html")
    assert "silent for more than a year" not in place.text("index.html")
    assert "5 need somebody" in place.text("index.html")
    assert place.dead() == []


def test_what_did_not_change_is_not_written_again(place: Place) -> None:
    place.build()
    before = place.written()
    built = place.build(LATER)
    assert built.pages == 1, "the fleet's page says when it was looked at"
    new = {name for name, at in place.written().items() if before.get(name) != at}
    assert new == {"index.html", "site.json"}
    build_run(place.runs)  # fails in its cooling, as another one did
    built = place.build(LATER + timedelta(hours=1))
    new = {name for name, at in place.written().items() if before.get(name) != at} - {"site.json"}
    assert built.pages == len(new)
    checks = {name for name in new if name.startswith("checks/")}
    assert checks == {"checks/index.html", "checks/thermals.settled_gpu_temp.html"}


def test_a_rig_s_page_says_that_it_is_silent_without_a_new_run(place: Place) -> None:
    place.build()
    assert "no verdict since" not in place.text("rigs/rig1.html")
    place.build(NOW + timedelta(days=3))
    assert "no verdict since 30 November 2026" in place.text("rigs/rig1.html")
    before = place.written()
    place.build(NOW + timedelta(days=4))
    assert place.written()["rigs/rig1.html"] == before["rigs/rig1.html"]


def test_a_page_is_replaced_in_one_step(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads while it is written, or a crash: the old page or the new one."""
    place.build()
    old = place.text("index.html")
    seen: list[str] = []
    real = type(place.site).replace

    def look(draft: Path, target: Path) -> Path:
        if target.name == "index.html":
            seen.append(place.text("index.html"))
        return real(draft, target)

    monkeypatch.setattr(type(place.site), "replace", look)
    place.build(LATER)
    assert seen[-1] == old
    assert place.text("index.html") != old
    assert not list(place.site.rglob("*.tmp"))
    assert json.loads(place.text("site.json"))["version"] == 2
