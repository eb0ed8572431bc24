"""The index over a year of twenty rigs: made from nothing, and asked for one of them."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from bench.figure import Figure, figure
from rigctl.sim.nights.fleet import members, night_profile
from rigctl.sim.nights.hardware import Hardware
from rigctl.sim.nights.judging import judge
from rigctl.sim.nights.night import Asked, Night
from rigctl.site import build
from rigctl.store import dumps
from rigctl.store.baseline import find_baselines
from rigctl.store.index import Index
from rigctl.store.xids import find_past_xids

if TYPE_CHECKING:
    from pathlib import Path

    from bench.stage import Stage

NAME = "index"
RIGS, NIGHTS, TIMES = 20, 365, 5
BEGAN = datetime(2026, 1, 1, 1, 0, tzinfo=UTC)
HOW = f"{RIGS} rigs, {NIGHTS} nights each, one run directory a rig and night, SQLite, records of simulated nights"


def measure(stage: Stage) -> list[Figure]:
    """Return seconds of each."""
    runs = stage.folder / "year"
    _year(runs)
    began = time.monotonic()
    with Index.open(runs) as index:
        done = index.rebuild()
    rebuilt = time.monotonic() - began
    count = len(done.added)
    queries, commands, checks = [], [], []
    for _ in range(TIMES):
        began = time.monotonic()
        with Index.open(runs) as index:
            index.update()
            asked = index.pasts("rig07"), index.points("rig07", "thermals.resistance")
        queries.append(time.monotonic() - began)
        commands.append(stage.rigctl("history", "rig07", "--runs", str(runs)))
        checks.append(stage.rigctl("history", "rig07", "thermals.resistance", "--runs", str(runs), "--json"))
    if len(asked[0]) != NIGHTS:
        message = f"rig07 has {len(asked[0])} nights in the index"
        raise AssertionError(message)
    began = time.monotonic()
    find_baselines(runs, ("rig07",))
    baseline = time.monotonic() - began
    began = time.monotonic()
    find_past_xids(runs, ("rig07",), BEGAN + timedelta(days=NIGHTS))
    xids = time.monotonic() - began
    site = _site(runs, stage.folder / "site")
    return [
        *site,
        figure("index: made anew from 7,300 run directories", [rebuilt], "s", f"{HOW}; {count} runs", goal=("≤", 60)),
        figure("index: one rig's year, asked", queries, "s", HOW, goal=("≤", 0.3)),
        figure("index: `rigctl history RIG`, the whole command", commands, "s", HOW, goal=("≤", 0.3)),
        figure("index: `rigctl history RIG CHECK`, the whole command", checks, "s", HOW, goal=("≤", 0.3)),
        figure("index: a rig's baseline among 7,300 runs", [baseline], "s", HOW),
        figure("index: a rig's Xid messages of a week among 7,300 runs", [xids], "s", HOW),
    ]


def _site(runs: Path, output: Path) -> list[Figure]:
    """The site over the year: written whole, and once more after one new run."""
    now = BEGAN + timedelta(days=NIGHTS)
    with Index.open(runs) as index:
        began = time.monotonic()
        build(index, output, now)
        whole = time.monotonic() - began
        newest = max(path for path in runs.iterdir() if path.is_dir())
        shutil.copytree(newest, runs / f"{newest.name[:-4]}ffff")
        began = time.monotonic()
        index.update()
        built = build(index, output, now)
        update = time.monotonic() - began
    if built.runs != 1:
        message = f"{built.runs} runs were new to the site"
        raise AssertionError(message)
    return [
        figure("site: written whole over 7,300 runs", [whole], "s", HOW),
        figure("site: brought up to date after one new run", [update], "s", HOW, goal=("≤", 2)),
    ]


def _year(runs: Path) -> None:
    """One simulated night of each rig, written again for every day of the year: without journal and telemetry."""
    for member in members("dual_3090ti", RIGS):
        profile = night_profile(member.rig.profiles["standard"])
        asked = Asked(member.rig.name, member.spec, profile, None, BEGAN.timestamp())
        readings, host = Night(asked, Hardware(member.identity, [], member.conditions(0), member.number)).measure()
        record = judge(asked, readings, host).model_dump(mode="json")
        rig = {"name": f"rig{member.number + 1:02}", "spec": member.spec.model_dump(mode="json"),
               "profile": profile.model_dump(mode="json")}  # fmt: skip
        for night in range(NIGHTS):
            _write(runs, night, rig, record, readings.facts.model_dump(mode="json") if readings.facts else {})


def _write(runs: Path, night: int, rig: dict[str, Any], judged: dict[str, Any], facts: dict[str, Any]) -> None:
    began = BEGAN + timedelta(days=night, minutes=int(rig["name"][3:]))
    folder = runs / f"{began:%Y-%m-%dT%H%MZ}-{night % 65_536:04x}"
    (folder / rig["name"]).mkdir(parents=True)
    known = {"run_id": folder.name, "profile": "standard", "kind": "accept", "rigctl_version": "0.1.0"}
    times = {"started_at": began.isoformat(), "ended_at": (began + timedelta(minutes=15)).isoformat()}
    info = {**known, "started_at": times["started_at"], "rigs": [rig]}
    record = {**known, **times, "rigs": [{**judged, "name": rig["name"]}]}
    (folder / "run.json").write_text(dumps(info), encoding="utf-8")
    (folder / "record.json").write_text(dumps(record), encoding="utf-8")
    (folder / rig["name"] / "facts.json").write_text(dumps(facts), encoding="utf-8")
