"""Keep the pages of checks and code together: `make check-pages` writes what the code knows into them.

Written are the head and the list of faults of `docs/checks/ID.md`, the tables of `docs/checks.md`, and
`docs/checks-and-faults.md`; all other words of those pages are people's. `tests/house/test_check_pages.py` fails where
a page says something else than the code.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO))

from rigctl.checks.catalogue import CATALOGUE  # noqa: E402 - found beside this folder, wherever it is called from
from rigctl.sim.faults import Fault, catalogue  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rigctl.checks.info import CheckInfo

TITLES = {"measure": "The rig and its run", "spec": "The spec itself"}
"""What people call a subject (the first word of a check's id), where its own word does not say it."""
SPEC_KEY = re.compile(r"[a-z_]+\.[a-z_0-9]+")
TABLE = "docs/checks-and-faults.md"
PREFACE = """# Checks and faults

Written by `make check-pages` from the catalogues of checks and of faults. A fault is broken on a simulated rig
([faults.md](faults.md)), and the check finds it by measuring. Checks without a fault have no counterpart on a machine
without cards, or break too little to be a fault of their own. Every check, with or without one, is shown to fail on
recorded readings (`tests/checks/test_fail.py`), and to pass on no bad reading: absent, `N/A`, no number, negative,
absurd, stuck, out of order (`tests/checks/test_bad_input.py`).
"""
NO_FAULT = "recorded readings alone"


def pages() -> dict[str, str]:
    """Return every page that this program writes in, as it should be; by its path in the repository."""
    index = _read("docs/checks.md")
    wanted = {f"docs/checks/{info.id}.md": _page(info) for info in CATALOGUE.values()}
    return {"docs/checks.md": _between(index, "checks", _index()), TABLE: _table(), **wanted}


def finders(check: str) -> list[Fault]:
    """Return the faults that a check must name."""
    return [fault for fault in catalogue() if check in fault.found_by]


def _page(info: CheckInfo) -> str:
    text = _between(_read(f"docs/checks/{info.id}.md"), "catalogue", _head(info))
    return _between(text, "faults", _faults(info))


def _head(info: CheckInfo) -> str:
    rows = {
        "checks that": info.title,
        "requires": ", ".join(info.needs) or "nothing beside the rig",
        "judged on": ", ".join(f"`{step}`" for step in info.steps)
        if info.steps
        else "what is read in any case; no load",
        "takes": "as long as those steps, shared with other checks" if info.steps else "no time of its own",
        "limit from": ", ".join(f"`{one}`" if SPEC_KEY.fullmatch(one) else one for one in info.limit_from),
        "do first": info.fix,
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows.items())])


def _faults(info: CheckInfo) -> str:
    found = finders(info.id)
    if not found:
        return "No fault of the simulated rigs is found by this check; recorded readings show that it fails."
    lines = [f"- [{one.name}](../faults.md#{one.name}): {_lower(one.in_the_field)}" for one in found]
    return "\n".join(["What it finds on simulated rigs, and what that looks like in the field:", "", *lines])


def _index() -> str:
    subjects: dict[str, list[CheckInfo]] = {}
    for info in CATALOGUE.values():
        subjects.setdefault(info.id.partition(".")[0], []).append(info)
    return "\n\n".join(_section(subject, infos) for subject, infos in subjects.items())


def _section(subject: str, infos: list[CheckInfo]) -> str:
    rows = [(f"[`{info.id}`](checks/{info.id}.md)", info.title) for info in infos]
    return "\n".join([f"## {TITLES.get(subject, subject.capitalize())}", "", *_rows(("check", "that"), rows)])


def _table() -> str:
    checks = [
        (_link(info.id), ", ".join(_fault_link(one) for one in finders(info.id)) or NO_FAULT)
        for info in CATALOGUE.values()
    ]
    faults = [
        (_fault_link(one), ", ".join(_link(check) for check in one.found_by) or "no check", str(int(one.exit_code)))
        for one in catalogue()
        if not one.met or one.found_by
    ]
    return "\n".join(
        [
            PREFACE,
            f"{len(CATALOGUE)} checks · {len(faults)} faults of rigs in use.\n",
            *_rows(("check", "faults that it must name"), checks),
            "",
            *_rows(("fault", "named by", "exit"), faults),
            "",
        ]
    )


def _rows(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]


def _link(check: str) -> str:
    return f"[`{check}`](checks/{check}.md)"


def _fault_link(fault: Fault) -> str:
    return f"[{fault.name}](faults.md#{fault.name})"


def _lower(sentence: str) -> str:
    """Return a sentence as it stands after a colon; one that begins with a quotation or a short form stays."""
    return sentence[0].lower() + sentence[1:] if sentence[1:2].islower() or sentence[1:2] == " " else sentence


def _between(text: str, name: str, inner: str) -> str:
    """Return `text` with what stands between the marks of `name` replaced. Raises SystemExit without the marks."""
    parts = re.split(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", text, flags=re.DOTALL)
    if len(parts) != len(("before", "mark", "mark", "after")):
        raise SystemExit(f"a page needs one pair of marks <!-- {name} --> and <!-- /{name} -->: {text[:60]!r}")
    before, start, end, after = parts
    return f"{before}{start}{inner}\n{end}{after}"


def _read(name: str) -> str:
    path = REPO / name
    if not path.is_file():
        raise SystemExit(f"{name} is missing: copy another check's page and write its three sections")
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    changed = [name for name, text in pages().items() if not (REPO / name).is_file() or _read(name) != text]
    for name, text in pages().items():
        (REPO / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(changed)} pages changed: {', '.join(changed)}\n" if changed else "nothing to change\n")
