"""`python -m bench [NAME …]`: measure, write bench/results.json, renew the README's table."""

from __future__ import annotations

import json
import pkgutil
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import bench
from bench.readme import write_table
from bench.stage import BenchFailed, Stage

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.json"


def benches() -> dict[str, Any]:
    """Return every bench by its name: each module of this folder that has a NAME."""
    names = [one.name for one in pkgutil.iter_modules(bench.__path__) if one.name != "__main__"]
    found = [import_module(f"bench.{name}") for name in names]
    named = {module.NAME: module for module in found if hasattr(module, "NAME")}
    # The demo first: it starts from nothing, and the others would have built half of it.
    return dict(sorted(named.items(), key=lambda item: (item[0] != "demo", item[0])))


def merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the old results with the new ones in the place of those that have the same name."""
    by_name = {one["name"]: one for one in old} | {one["name"]: one for one in new}
    return list(by_name.values())


def main(asked: list[str]) -> int:
    """Run the benches that were asked for, all of them when none was; 0 when every goal holds."""
    known = benches()
    unknown = sorted(set(asked) - set(known))
    if unknown:
        sys.stderr.write(f"error: no bench called {', '.join(unknown)}\nhint: there are {', '.join(sorted(known))}\n")
        return 2
    results: list[dict[str, Any]] = []
    failed = False
    with Stage() as stage:
        for name in asked or known:
            sys.stderr.write(f"bench: {name} …\n")
            began = time.monotonic()
            try:
                figures = known[name].measure(stage)
            except BenchFailed as error:
                failed = True
                sys.stderr.write(f"bench: {name} failed: {error}\n")
                continue
            results += [one.as_json() for one in figures]
            failed = failed or not all(one.holds for one in figures)
            for one in figures:
                mark = "  ok  " if one.holds else "  MISSED"
                goal = f" (goal {one.goal})" if one.goal else ""
                sys.stderr.write(f"{mark} {one.name}: {one.value:g} {one.unit}{goal}, {one.spread}\n")
            sys.stderr.write(f"bench: {name} took {time.monotonic() - began:.0f} s\n")
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    everything = merged(old, results)
    RESULTS.write_text(json.dumps(everything, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write_table(FOLDER.parent / "README.md", everything)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
