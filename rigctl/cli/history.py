"""`rigctl history`: what runs have shown of rigs, of one rig, of one figure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rigctl.cli.common import DEFAULT_RUNS, IndexOpt, JsonOpt, RunsOpt, console, emit_json
from rigctl.errors import UsageError

if TYPE_CHECKING:
    from rigctl.model.decision import BaselineDecision
    from rigctl.model.past import Past
    from rigctl.store.index import Index

EPILOG = "Example: rigctl history rig1 thermals.resistance --since 2026-09-01"

RigArg = Annotated[str | None, typer.Argument(metavar="[RIG]", help="One rig; without it, one row for each.")]
CheckArg = Annotated[str | None, typer.Argument(metavar="[CHECK]", help="One check's figures.")]
DayOpt = Annotated[str, typer.Option(metavar="DAY", help="A day or a time, ISO 8601.", show_default=False)]
ProfileOpt = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="Runs of this profile only.")]
VerdictOpt = Annotated[
    str | None,
    typer.Option("--verdict", metavar="WORD", help="Only runs with this verdict: fail, error, pass, busy, …"),
]
LimitOpt = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="The newest so many rows.")]
RebuildOpt = Annotated[
    bool, typer.Option("--rebuild", help="Read all run directories again, and not only what is new or changed.")
]
ROWS = 30


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("history", epilog=EPILOG)(history_command)


def history_command(
    rig: RigArg = None,
    check: CheckArg = None,
    since: DayOpt = "",
    until: DayOpt = "",
    profile: ProfileOpt = None,
    verdict: VerdictOpt = None,
    limit: LimitOpt = ROWS,
    rebuild: RebuildOpt = False,
    runs: RunsOpt = DEFAULT_RUNS,
    index_url: IndexOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Show what runs have found, newest last; and the smallest change that the history of a figure could show."""
    from rigctl.store.index import Index  # noqa: PLC0415 - keeps `rigctl --help` fast

    begin, end = _day(since, "--since"), _day(until, "--until")
    if not runs.is_dir():
        raise UsageError(f"there is no folder of runs {runs}", "name it with --runs, or start with `rigctl accept`")
    with Index.open(runs, index_url) as index:
        done = index.rebuild() if rebuild else index.update()
        for folder, why in done.unreadable:
            console.print(f"left out: {folder}: {why}", markup=False, soft_wrap=True)
        if rebuild:
            console.print(f"the index was made anew: {len(done.added)} runs")
        _refuse_unknown(index, rig, runs)
        if rig is None:
            _fleet(index, begin, end, as_json=as_json)
        elif check is None:
            pasts = [one for one in index.pasts(rig, since=begin, until=end) if _wanted(one, profile, verdict)]
            decided = _decided(index, rig, max(begin, pasts[-limit].ended_at if len(pasts) > limit else ""), end)
            _rig(index, rig, pasts[-limit:], decided, as_json=as_json)
        else:
            _figures(index, rig, check, (begin, end), (profile, verdict), limit, as_json=as_json)
            for one in () if as_json else _decided(index, rig, begin, end):
                typer.echo(f"{one.at[:10]}: the baseline was {one.words}")


def _fleet(index: Index, since: str, until: str, *, as_json: bool) -> None:
    from rigctl.report.history import of_fleet  # noqa: PLC0415

    found: dict[str, tuple[Past, int]] = {}
    for past in index.pasts(since=since, until=until):
        found[past.rig] = (past, found.get(past.rig, (past, 0))[1] + 1)
    rows = [found[name] for name in sorted(found)]
    if as_json:
        emit_json([{"runs": runs, "newest": past.model_dump(mode="json")} for past, runs in rows])
    else:
        Console().print(of_fleet(rows))


def _decided(index: Index, rig: str, since: str, until: str) -> list[BaselineDecision]:
    """What people decided about the rig's baseline in that time, oldest first; about runs of this folder."""
    from rigctl.store.decisions import read_decisions  # noqa: PLC0415

    decisions = [one for one in read_decisions(index.runs) if one.rig == rig]
    return [one for one in decisions if since <= one.at and (not until or one.at[: len(until)] <= until)]


def _rig(index: Index, rig: str, pasts: list[Past], decided: list[BaselineDecision], *, as_json: bool) -> None:
    from rigctl.report.history import of_rig  # noqa: PLC0415
    from rigctl.trends import know  # noqa: PLC0415

    known = know(index, rig, now=datetime.now(UTC))
    if as_json:
        emit_json(
            {
                "runs": [past.model_dump(mode="json") for past in pasts],
                "baseline": [one.model_dump(mode="json") for one in decided],
                "since_last_pass": [change.sentence for change in known.changes],
                "trends": [trend.sentence for trend in known.trends],
                "swap": known.swap,
            }
        )
        return
    Console().print(of_rig(pasts, decided))
    if known.last is not None:
        typer.echo(f"since the last pass: {known.what_changed}")
    for trend in known.trends:
        typer.echo(f"trend: {trend.sentence}; do: {trend.fix}")
    if known.swap:
        typer.echo(f"card or place: {known.swap}")


def _figures(
    index: Index,
    rig: str,
    check: str,
    time: tuple[str, str],
    wanted: tuple[str | None, str | None],
    limit: int,
    *,
    as_json: bool,
) -> None:
    from rigctl.report.history import of_series, what_could_be_seen  # noqa: PLC0415
    from rigctl.trends import all_series  # noqa: PLC0415

    profile, verdict = wanted
    points = tuple(
        point
        for point in index.points(rig, check, since=time[0], until=time[1])
        if profile in (None, point.profile) and verdict in (None, point.verdict.value)
    )
    if not points:
        names = sorted({point.check for point in index.points(rig)})
        raise UsageError(f"{check} found no figure on {rig}", f"there are figures of: {', '.join(names) or 'none'}")
    series = all_series(points)
    if as_json:
        emit_json(
            [
                {
                    "check": one.check,
                    "subject": one.subject,
                    "key": one.key,
                    "unit": one.unit,
                    "usual": one.usual,
                    "detectable": one.detectable,
                    "points": [point.model_dump(mode="json") for point in one.points],
                }
                for one in series
            ]
        )
        return
    Console().print(of_series(series, points[-limit:]))
    for line in what_could_be_seen(series):
        typer.echo(line)


def _refuse_unknown(index: Index, rig: str | None, runs: object) -> None:
    known = index.rigs()
    if rig is not None and rig not in known:
        raise UsageError(f"no run under {runs} knows {rig!r}", f"there are runs of: {', '.join(known) or 'no rig'}")


def _wanted(past: Past, profile: str | None, verdict: str | None) -> bool:
    said = "busy" if past.verdict is None else past.verdict.value
    return profile in (None, past.profile) and verdict in (None, said)


def _day(text: str, option: str) -> str:
    """Check a day or a time, and leave it as it is: texts of ISO 8601 are in the order of time."""
    if not text:
        return ""
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r} is no day", "such as 2026-09-01, or 2026-09-01T22:00:00") from error
    return text
