"""`rigctl certificate`: what was tested on a rig, signed; and whether it still is what was signed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.common import DEFAULT_RUNS, JsonOpt, RunsOpt, console, emit_json
from rigctl.errors import ExitCode

if TYPE_CHECKING:
    from rigctl.certificate import Verified

CREATE = "Example: rigctl certificate create rig1 --key ~/.ssh/id_ed25519 --output certificates"
VERIFY = "Example: rigctl certificate verify certificates/certificate-rig1-2026-11-30T2300Z-7f3a.html --signers signers"

RunOpt = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="The run to certify.", show_default="the newest that accepted it"),
]
KeyOpt = Annotated[
    Path | None,
    typer.Option(
        "--key",
        envvar="RIGCTL_CERTIFICATE_KEY",
        metavar="FILE",
        help="The private SSH key to sign with.",
        show_default="your own in ~/.ssh",
    ),
]
OutputOpt = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write into.")]
SignersOpt = Annotated[
    Path | None,
    typer.Option(
        "--signers",
        envvar="RIGCTL_SIGNERS",
        metavar="FILE",
        help="Whose keys count, in the form of ssh-keygen's allowed signers.",
        show_default="~/.ssh/allowed_signers",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Certify an accepted rig, signed with an SSH key.")
    group.command("create", epilog=CREATE)(create_command)
    group.command("verify", epilog=VERIFY)(verify_command)
    app.add_typer(group, name="certificate")


def create_command(
    rig: Annotated[str, typer.Argument(metavar="RIG", help="The rig, as its runs name it.")],
    run: RunOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    key: KeyOpt = None,
    output: OutputOpt = Path("certificates"),
    as_json: JsonOpt = False,
) -> None:
    """Write a rig's acceptance certificate: HTML, PDF, and the statement that is signed."""
    from rigctl.certificate import create  # noqa: PLC0415 - keeps `rigctl --help` fast

    made = create(runs, rig, run, key, output)
    if as_json:
        files = [str(file) for file in made.files]
        emit_json({"run": made.statement.run_id, "rig": rig, "files": files, "signer": made.signer})
    else:
        for file in made.files:
            typer.echo(str(file))


def verify_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Any file of the certificate, or its folder.")],
    signers: SignersOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    as_json: JsonOpt = False,
) -> None:
    """Verify a certificate offline; exit code 1 when anything differs from what was signed."""
    from rigctl.certificate import verify  # noqa: PLC0415

    found = verify(file, signers, runs)
    stated, signer = found.statement, found.signer
    if as_json:
        emit_json(
            {
                "ok": not found.findings,
                "rig": stated.rig,
                "run": stated.run_id,
                "verdict": stated.verdict.value,
                "signer": signer and {"name": signer.principal, "fingerprint": signer.fingerprint},
                "run_compared": found.run_compared,
                "findings": [{"file": one.file, "what": one.what, "fix": one.fix} for one in found.findings],
            }
        )
    else:
        _say(found)
    raise typer.Exit(ExitCode.FAILED if found.findings else ExitCode.OK)


def _say(found: Verified) -> None:
    stated, signer = found.statement, found.signer
    for one in found.findings:
        console.print(f"DIFFERS {one.file}: {one.what}", markup=False, soft_wrap=True)
        if one.fix:
            console.print(f"  do: {one.fix}", markup=False, soft_wrap=True)
    if not found.findings and signer is not None:
        where = "and the run's files are those of then" if found.run_compared else "the run itself is not here"
        typer.echo(
            f"ok: {stated.rig} accepted by run {stated.run_id} ({stated.ended_at}); signed by {signer.principal} "
            f"({signer.fingerprint}), statement, HTML and PDF as signed; {where}"
        )
