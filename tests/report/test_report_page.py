"""The page: well formed, safe, offline, complete; the curves behind it hide no extreme."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from html.parser import HTMLParser
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from rigctl.model.reading import GpuSample, Sample
from rigctl.model.verdict import CheckVerdict, RigRecord, Verdict
from rigctl.report.curves import Timeline, extremes, sparkline
from rigctl.report.html import render
from rigctl.store import RunDir
from rigctl.store.thinning import thinned

from .build_run import BOOT_ID, START, build_run

if TYPE_CHECKING:
    from pathlib import Path

VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """Parses a page, complaining of anything left open, and keeps what the tests ask for."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.hrefs: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.scripts: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert len(given) == len(attrs), f"an attribute twice in {tag}"
        self.tags.append((tag, given))
        if given.get("id"):
            self.ids.append(given["id"] or "")
        if given.get("href"):
            self.hrefs.append(given["href"] or "")
        assert not given.get("src"), "everything is inside the page"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        where = self.open[-1] if self.open else ""
        self.texts.setdefault(where, []).append(data)
        if where == "script":
            self.scripts.append(data)

    def text(self, tag: str) -> str:
        return " ".join(" ".join(self.texts.get(tag, [])).split())


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return build_run(tmp_path_factory.mktemp("bad"), unreached=True)


@pytest.fixture(scope="module")
def source(bad: RunDir) -> str:
    return render(bad, bad.read_record())


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_the_page_is_well_formed_and_its_links_lead_somewhere(page: Page) -> None:
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    inside = [h[1:] for h in page.hrefs if h.startswith("#")]
    assert set(inside) <= set(page.ids)
    assert [h for h in page.hrefs if not h.startswith("#")] == ["data:,"]


def test_the_first_words_are_verdict_and_cause(page: Page) -> None:
    assert page.text("h1") == "1 of 3 rigs failed, 1 rig could not be measured"
    assert page.text("title").startswith("1 of 3 rigs failed")
    assert "rig2 slot2 (…a91f): settled at 83.0 °C, limit 65 °C" in page.text("p")
    assert "look at this card's pump" in page.text("p")
    assert "SIMULATED" in page.text("strong")


def test_the_page_holds_every_verdict_and_what_was_not_tested(page: Page, bad: RunDir) -> None:
    rows = [given for tag, given in page.tags if tag == "tr" and given.get("data-verdict")]
    assert len(rows) == sum(len(rig.verdicts) for rig in bad.read_record().rigs)
    assert "the driver does not expose it on GeForce" in page.text("li")
    assert "nothing was measured" in page.text("li")


def test_the_page_is_accessible(page: Page) -> None:
    tags = [tag for tag, _ in page.tags]
    assert tags.count("h1") == tags.count("main") == 1
    assert next(given for tag, given in page.tags if tag == "html")["lang"] == "en"
    assert all(given.get("aria-label") for tag, given in page.tags if given.get("role") == "img")
    assert all(given.get("scope") for tag, given in page.tags if tag == "th")
    assert tags.count("caption") == tags.count("table")
    labelled = [given["for"] for tag, given in page.tags if tag == "label"]
    assert labelled == [given["id"] for tag, given in page.tags if tag == "input"]
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_policy_allows_exactly_the_page_s_own_scripts(page: Page) -> None:
    policy = next(
        g["content"] for t, g in page.tags if t == "meta" and g.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    kinds = [given.get("type") for tag, given in page.tags if tag == "script"]
    assert kinds == ["application/json", None, None]
    *_, plotly, own = page.scripts
    for script in (plotly, own):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not [g for _, g in page.tags if any(name.startswith("on") for name in g)]


def test_the_drawings_hold_steps_limits_and_marks(page: Page) -> None:
    drawings = json.loads(page.scripts[0])
    assert set(drawings) == {"rig-1", "rig-3"}
    rig2 = drawings["rig-1"]
    assert [s["name"] for s in rig2["steps"]] == ["idle", "cpu_burn", "gpu_burn", "all_burn", "train"]
    assert [c["name"] for c in rig2["charts"]] == ["Temperature", "Power per card", "Power at the wall"]
    assert {"name": "settled limit", "y": 65.0} in rig2["charts"][0]["limits"]
    assert [m["text"] for m in rig2["marks"]] == ["Xid 45"]


def test_what_came_from_a_rig_stays_text(tmp_path: Path) -> None:
    run = build_run(tmp_path)
    evil = "</script><script>alert(1)</script>\x1b[31m<img src=x onerror=alert(2)>\u202e"
    run.append_raw(
        "rig2", "kernel.jsonl", json.dumps({"t_wall_s": START.timestamp(), "message": evil}).encode() + b"\n"
    )
    facts = json.loads(run.rig_path("rig2", "facts.json").read_text())
    facts |= {"cpu_model": evil, "board_name": evil}
    facts["gpus"][0] |= {"name": evil, "uuid": evil}
    run.write_json_atomic("rig2/facts.json", facts)
    verdict = CheckVerdict(
        check=evil, subject=evil, verdict=Verdict.FAIL, reason=evil, fix=evil, source=evil, found=evil
    )
    record = run.read_record()
    rigs = (record.rigs[0], record.rigs[1].model_copy(update={"verdicts": (verdict,), "left": evil, "notes": (evil,)}))
    page = Page(render(run, record.model_copy(update={"rigs": rigs})))
    assert [given.get("type") for tag, given in page.tags if tag == "script"] == ["application/json", None, None]
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert "\x1b" not in "".join("".join(t) for where, t in page.texts.items() if where != "script")
    assert "\u202e" not in page.text("code")
    assert "alert(2)" in page.text("code")


def test_a_good_run_says_that_there_is_nothing_to_do(tmp_path: Path) -> None:
    run = build_run(tmp_path, faulty=False)
    page = Page(render(run, run.read_record()))
    assert page.text("h1") == "2 of 2 rigs passed"
    assert "Nothing to do." in page.text("p")
    assert "What to do now" not in page.text("h2")


def test_a_rig_of_which_nothing_is_known_has_its_place(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "accept", now=START)
    known = build_run(tmp_path / "other").read_record()
    record = known.model_copy(update={"run_id": run.run_id, "rigs": (RigRecord(name="rig9", rig_class="x"),)})
    page = Page(render(run, record))
    assert "no check gave a verdict" in page.text("p")
    assert "No samples were taken." in page.text("p")


def test_hours_of_samples_are_drawn_in_little_time_and_space(tmp_path: Path) -> None:
    run = build_run(tmp_path, hours=2)
    record = run.read_record()
    start = time.process_time()
    page = Page(render(run, record))
    assert time.process_time() - start < 8, "a guard against quadratic work, generous on a busy machine"
    drawn = json.loads(page.scripts[0])["rig-1"]["charts"][0]["series"][0]["x"]
    assert len(drawn) <= 1400
    assert "drawn as the lowest and the highest of each" in page.text("p")


def test_extremes_keeps_every_spike_in_order_of_time() -> None:
    points = [(float(n), 50.0) for n in range(10_000)]
    points[1234] = (1234.0, 99.0)
    points[7777] = (7777.0, 3.0)
    kept = extremes(points, 100)
    assert (1234.0, 99.0) in kept
    assert (7777.0, 3.0) in kept
    assert len(kept) <= 200
    assert kept == sorted(kept)


def test_extremes_of_one_moment_do_not_divide_by_nothing() -> None:
    assert extremes([(5.0, 1.0), (5.0, 2.0)], 10) == [(5.0, 1.0), (5.0, 2.0)]


def samples(count: int, *, gap_at: int = -1, gap_s: float = 0, reboot_at: int = -1) -> tuple[Sample, ...]:
    made = []
    for n in range(count):
        late = gap_s if 0 <= gap_at <= n else 0
        booted = 0 <= reboot_at <= n
        made.append(
            Sample(
                seq=n,
                t_mono_s=n - reboot_at if booted else 100 + n + late,
                t_wall_s=1000 + n + late,
                boot_id="other" if booted else BOOT_ID,
                step="gpu_burn" if n >= 5 else "idle",
                gpus=(GpuSample(uuid="GPU-aaaa", slot=1, temp_c=40 + n),),
            )
        )
    return tuple(made)


def test_a_gap_breaks_the_line_and_a_reboot_does_not_fold_it() -> None:
    line = Timeline(samples(20, gap_at=10, gap_s=30))
    assert [at for at, y in line.curve(line.gpu("GPU-aaaa", "temp_c")) if y is None] == [9.0]
    rebooted = Timeline(samples(20, reboot_at=10))
    assert list(rebooted.at_s) == sorted(rebooted.at_s)
    assert [(s.name, s.start_s, s.end_s) for s in rebooted.steps] == [("idle", 0.0, 5.0), ("gpu_burn", 5.0, 19.0)]


def test_thinned_samples_break_no_line_but_where_samples_were_missing() -> None:
    whole = samples(6000, gap_at=3000, gap_s=300)
    line = Timeline(thinned(whole), pruned=True)
    assert len(line.samples) < 130
    (gap,) = [at for at, y in line.curve(line.gpu("GPU-aaaa", "temp_c")) if y is None]
    assert gap == 2999.0


def test_a_sparkline_needs_a_reading_and_shows_its_limit() -> None:
    line = Timeline(samples(20))
    small = sparkline(line, "GPU-aaaa", 65)
    assert small is not None
    assert small.limit_y is not None
    assert 0 < small.limit_y < small.HEIGHT
    assert small.words == "temperature over the run, from 40 to 59 °C, limit 65 °C"
    assert sparkline(line, "GPU-bbbb", 65) is None
    assert sparkline(Timeline(()), "GPU-aaaa", 65) is None
