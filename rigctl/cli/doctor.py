"""`rigctl doctor`: what keeps this controller and these rigs from working together, and what to do about it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.common import (
    DEFAULT_RUNS,
    SUDO_QUESTION,
    AskBecomeOpt,
    InventoryOpt,
    JsonOpt,
    RigsArg,
    RunsOpt,
    ask_secret,
    emit_json,
)
from rigctl.cli.trusting import agrees
from rigctl.errors import ExitCode, RigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.doctor import Finding, LeftOut, RigExamination
    from rigctl.model.rig import Rig

_EXAMPLE = "Example: rigctl doctor rig1 --trust"
_WIDTH = 20


def register(app: typer.Typer) -> None:
    """Add `doctor` to the app."""
    app.command("doctor", epilog=_EXAMPLE)(doctor)


def doctor(
    rigs: RigsArg = "all",
    inventory: InventoryOpt = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Show the host key of each rig that is not trusted yet, and record it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --trust: record without asking.")] = False,
    ask_become_pass: AskBecomeOpt = False,
    runs: RunsOpt = DEFAULT_RUNS,
    as_json: JsonOpt = False,
) -> None:
    """Look whether this controller is fit and each rig reachable and fit; each finding with its fix.

    A ladder in order of cause: what only follows from a finding is left out, and named.

    Exit code: 0 nothing to do, 1 some finding (an unreachable rig included), 2 usage or inventory.
    """
    # Fabric and paramiko take a quarter of a second to import: only where they are needed.
    from rigctl.doctor import RIGS_NEED, LeftOut, examine_controller, examine_rigs  # noqa: PLC0415
    from rigctl.inventory import load_fleet  # noqa: PLC0415

    controller = examine_controller(runs)
    broken = next((f.what for f in controller if not f.ok and f.what in RIGS_NEED), None)
    examined: list[RigExamination] = []
    left_out = [LeftOut("rigs", "every rig", broken)] if broken else []
    if not broken:
        fleet = load_fleet(inventory, rigs)
        refused = _trust(fleet, yes=yes) if trust else {}
        password = ask_secret(SUDO_QUESTION) if ask_become_pass else None
        by_name = {one.rig.name: one for one in examine_rigs(fleet, inventory, password)}
        examined = [refused.get(rig.name, by_name[rig.name]) for rig in fleet]
    findings = [*controller, *(f for one in examined for f in one.findings)]
    left_out += [one for seen in examined for one in seen.left_out]
    if as_json:
        emit_json(_as_data(findings, left_out))
    else:
        _print(findings, left_out, examined)
    raise typer.Exit(ExitCode.OK if all(f.ok for f in findings) else ExitCode.FAILED)


def _trust(fleet: Sequence[Rig], *, yes: bool) -> dict[str, RigExamination]:
    """Record the keys that the person agrees to; return the rigs whose key could not be recorded."""
    from rigctl.doctor import Finding, RigExamination, trust_rig  # noqa: PLC0415

    refused = {}
    for rig in fleet:
        try:
            for file in trust_rig(rig, lambda untrusted: agrees(untrusted, yes=yes)):
                sys.stderr.write(f"recorded in {file}\n")
        except RigError as error:
            failed = Finding(rig.name, "host key", ok=False, found=error.message, fix=error.hint)
            refused[rig.name] = RigExamination(rig, (failed,))
    return refused


def _as_data(findings: Sequence[Finding], left_out: Sequence[LeftOut]) -> dict[str, object]:
    return {
        "findings": [
            {"subject": f.subject, "what": f.what, "ok": f.ok, "found": f.found, "fix": f.fix} for f in findings
        ],
        "left_out": [{"subject": one.subject, "what": one.what, "because": one.because} for one in left_out],
        "counts": {
            "ok": sum(f.ok for f in findings),
            "finding": sum(not f.ok for f in findings),
            "left_out": len(left_out),
        },
    }


def _print(findings: Sequence[Finding], left_out: Sequence[LeftOut], examined: Sequence[RigExamination]) -> None:
    subject = ""
    for finding in findings:
        if finding.subject != subject:
            subject = finding.subject
            sys.stdout.write(f"{subject}\n")
        mark = "ok " if finding.ok else "FIX"
        sys.stdout.write(f"  {mark}  {finding.what:<{_WIDTH}} {finding.found}\n")
        if finding.fix:
            sys.stdout.write(f"       {'':<{_WIDTH}} {finding.fix}\n")
        follow = [one.what for one in left_out if (one.subject, one.because) == (subject, finding.what)]
        if follow and not finding.ok:
            sys.stdout.write(f"       {'':<{_WIDTH}} follows from it: {', '.join(follow)}\n")
    fit = sum(one.fit for one in examined)
    rigs = f"{fit} of {len(examined)} rigs fit" if examined else "no rig was asked"
    sys.stdout.write(f"doctor: {rigs} · findings: {sum(not f.ok for f in findings)}\n")
