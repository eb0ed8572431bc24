"""`rigctl spec …`: draft a class from a healthy rig's run, and show what a rig must be and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rigctl.cli.common import DEFAULT_RUNS, InventoryOpt, JsonOpt, RigsArg, RunsOpt, console, emit_json
from rigctl.errors import UsageError

if TYPE_CHECKING:
    from rigctl.model.rig import Rig
    from rigctl.spec import Draft, Unfit

OutputOpt = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="PATH", help="Write there; what is there is never replaced."),
]

app = typer.Typer(no_args_is_help=True, help="What a rig must be and show: drafted from a healthy run, or shown.")


def register(parent: typer.Typer) -> None:
    """Add `rigctl spec` to the command line."""
    parent.add_typer(app, name="spec")


@app.command(
    epilog="Example: rigctl spec learn rig1 --output inventory/group_vars/class_quad_blower/spec.yml",
)
def learn(
    rig: Annotated[str, typer.Argument(metavar="RIG", help="A healthy rig that was accepted.")],
    run: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="RUN", help="A run's id or directory; may be repeated. Default: RIG's last one."),
    ] = None,
    despite: Annotated[
        list[str] | None,
        typer.Option(metavar="CHECK", help="Take the rig for healthy although this check stands against it."),
    ] = None,
    output: OutputOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    as_json: JsonOpt = False,
) -> None:
    """Draft a class from a healthy rig's run: parts exactly as seen, limits with their margins and reasons.

    A person reads and commits it. Exit code: 1 or 3 where the rig failed or was not measured whole in that run.
    """
    from rigctl.spec import Unfit, as_yaml  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.spec import learn as draft_class  # noqa: PLC0415
    from rigctl.spec.runs import runs_to_learn_from  # noqa: PLC0415

    if output is not None and output.exists():
        raise UsageError(f"{output} is there already and is never replaced", "name another file, and compare the two")
    try:
        draft = draft_class(runs_to_learn_from(runs, rig, run or ()), rig, despite=despite or ())
    except Unfit as unfit:
        _print_unfit(rig, unfit)
        raise typer.Exit(_exit_code(unfit)) from None
    if as_json:
        emit_json(_as_data(draft))
    elif output is None:
        sys.stdout.write(as_yaml(draft))
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(as_yaml(draft), encoding="utf-8")
        console.print(f"{output}: read it, correct it, commit it", markup=False, soft_wrap=True)


@app.command(epilog="Example: rigctl spec show rig1 --json")
def show(rigs: RigsArg = "all", inventory: InventoryOpt = None, as_json: JsonOpt = False) -> None:
    """Show each rig's whole spec: every figure and where it comes from, what is not known yet, its waivers."""
    from rigctl.inventory import load_fleet  # noqa: PLC0415 - keeps `rigctl --help` fast

    fleet = load_fleet(inventory, rigs)
    if as_json:
        emit_json([_rig_data(rig) for rig in fleet])
        return
    for rig in fleet:
        sys.stdout.write("\n".join(_rig_lines(rig)) + "\n")


def _print_unfit(rig: str, unfit: Unfit) -> None:
    console.print(
        f"{rig} was not healthy in run {unfit.run_id}, so nothing is learned from it:", markup=False, soft_wrap=True
    )
    for verdict in unfit.verdicts:
        about = f"{verdict.verdict.value:<6} {verdict.key}: {verdict.reason}"
        console.print(f"  {about}", markup=False, soft_wrap=True)
    checks = " ".join(f"--despite {check}" for check in dict.fromkeys(v.check for v in unfit.verdicts))
    console.print("mend it and accept it again; where this is how rigs of the class are:", markup=False, soft_wrap=True)
    console.print(f"  rigctl spec learn {rig} {checks}", markup=False, soft_wrap=True)


def _exit_code(unfit: Unfit) -> int:
    from rigctl.model.verdict import exit_code  # noqa: PLC0415 - keeps `rigctl --help` fast

    return exit_code(verdict.verdict for verdict in unfit.verdicts)


def _as_data(draft: Draft) -> dict[str, Any]:
    return {
        "rig": draft.rig,
        "rig_class": draft.rig_class,
        "runs": draft.runs,
        "rig_spec": {**draft.spec, "sources": draft.sources},
        "not_learned": draft.missing,
        "despite": draft.despite,
    }


def _rig_data(rig: Rig) -> dict[str, Any]:
    from rigctl.spec import show as figures  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.spec import to_learn  # noqa: PLC0415

    return {
        "rig": rig.name,
        "rig_class": rig.rig_class,
        "origin": rig.spec.origin,
        "figures": [{"key": one.key, "value": one.value, "source": one.source} for one in figures(rig)],
        "to_learn": to_learn(rig),
        "waivers": [waiver.model_dump(mode="json") for waiver in rig.waivers],
    }


def _rig_lines(rig: Rig) -> list[str]:
    from rigctl.checks.waivers import said  # noqa: PLC0415 - keeps `rigctl --help` fast

    data = _rig_data(rig)
    lines = [f"{rig.name}: class {data['rig_class']}, {data['origin']}"]
    for one in data["figures"]:
        source = f"  ({one['source']})" if one["source"] else ""
        lines.append(f"  {one['key']}: {_plain(one['value'])}{source}")
    if data["to_learn"]:
        lines.append(f"  not known yet: {', '.join(data['to_learn'])}; rigctl spec learn {rig.name} drafts them")
    lines += [f"  waived until {said(one.until)}: {one.about} ({one.reason}; {one.origin})" for one in rig.waivers]
    return lines


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and all(isinstance(one, int) for one in value):
        return "-".join(str(one) for one in value) or "none"
    if isinstance(value, list):
        return "; ".join(_plain(one) for one in value) or "none"
    if isinstance(value, dict):
        return " ".join(f"{key} {_plain(one)}" for key, one in value.items())
    return str(value)
