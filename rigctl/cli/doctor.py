"""`rigctl doctor`: what keeps this controller and these rigs from working together, and what to do about it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.common import DEFAULT_RUNS, InventoryOpt, JsonOpt, RigsArg, RunsOpt, emit_json
from rigctl.errors import ExitCode, RigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.doctor import Finding, RigExamination
    from rigctl.fleet.ssh import Untrusted
    from rigctl.model.rig import Rig

_EXAMPLE = "Example: rigctl doctor rig1 --trust"


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
    runs: RunsOpt = DEFAULT_RUNS,
    as_json: JsonOpt = False,
) -> None:
    """Look whether this controller is fit and each rig reachable and fit; each finding with its fix.

    Exit code: 0 nothing to do, 1 some finding (an unreachable rig included), 2 usage or inventory.
    """
    # Fabric and paramiko take a quarter of a second to import: only where they are needed.
    from rigctl.doctor import examine_controller, examine_rigs  # noqa: PLC0415
    from rigctl.inventory import load_fleet  # noqa: PLC0415

    fleet = load_fleet(inventory, rigs)
    controller = examine_controller(runs)
    examined = {one.rig.name: one for one in examine_rigs(fleet)}
    if trust:
        for rig in fleet:
            examined[rig.name] = _trusted(examined[rig.name], yes=yes)
    findings = [*controller, *(f for rig in fleet for f in examined[rig.name].findings)]
    if as_json:
        emit_json(_as_data(findings))
    else:
        _print(findings, fleet)
    raise typer.Exit(ExitCode.OK if all(f.ok for f in findings) else ExitCode.FAILED)


def _trusted(examined: RigExamination, *, yes: bool) -> RigExamination:
    """Record keys, jump hosts' first, until the rig is trusted or the person says no; then look at the rig again."""
    from rigctl.doctor import examine_rig, not_recorded  # noqa: PLC0415
    from rigctl.fleet.hops import hops_of  # noqa: PLC0415
    from rigctl.fleet.trust import record_key  # noqa: PLC0415

    for _hop in hops_of(examined.rig.login, examined.rig.name):
        if examined.untrusted is None or not _wants(examined.untrusted, yes=yes):
            break
        try:
            file = record_key(examined.untrusted.hop.login, examined.untrusted.key)
        except RigError as error:
            return not_recorded(examined, error)
        sys.stderr.write(f"recorded in {file}\n")
        examined = examine_rig(examined.rig)
    return examined


def _wants(untrusted: Untrusted, *, yes: bool) -> bool:
    """Show the key and ask; no terminal and no answer is a no. Raises KeyboardInterrupt after Ctrl-C."""
    from rigctl.fleet.trust import known_name  # noqa: PLC0415

    key, hop = untrusted.key, untrusted.hop
    sys.stderr.write(f"{hop.label} ({known_name(hop.login)}) shows {key.key_type} {key.fingerprint}\n")
    if yes:
        return True
    try:
        return typer.confirm("Is this the fingerprint that the rig itself shows? Trust it?", err=True)
    except typer.Abort as no_answer:
        sys.stderr.write("\n")
        # click says the same of Ctrl-C and of an input that has ended.
        if isinstance(no_answer.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        return False


def _as_data(findings: Sequence[Finding]) -> dict[str, object]:
    return {
        "findings": [
            {"subject": f.subject, "what": f.what, "ok": f.ok, "found": f.found, "fix": f.fix} for f in findings
        ],
        "counts": {"ok": sum(f.ok for f in findings), "finding": sum(not f.ok for f in findings)},
    }


def _print(findings: Sequence[Finding], fleet: Sequence[Rig]) -> None:
    subject = ""
    for finding in findings:
        if finding.subject != subject:
            subject = finding.subject
            sys.stdout.write(f"{subject}\n")
        mark = "ok " if finding.ok else "FIX"
        sys.stdout.write(f"  {mark}  {finding.what:<15} {finding.found}\n")
        if finding.fix:
            sys.stdout.write(f"       {'':<15} {finding.fix}\n")
    bad = {f.subject for f in findings if not f.ok}
    fit = sum(rig.name not in bad for rig in fleet)
    sys.stdout.write(f"doctor: {fit} of {len(fleet)} rigs fit · findings: {sum(not f.ok for f in findings)}\n")
