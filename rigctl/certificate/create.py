"""Write a certificate: statement, its HTML and PDF, and one signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.certificate import html, pdf, signing
from rigctl.certificate.statement import digest, state
from rigctl.errors import UsageError
from rigctl.store import RunDir, dumps
from rigctl.store.baseline import ACCEPTED, judged_runs
from rigctl.store.files import replace_durably, writing

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.model.certificate import Statement
    from rigctl.model.verdict import Record

STATEMENT, SIGNATURE, HTML, PDF = ".json", ".json.sig", ".html", ".pdf"


@dataclass(frozen=True)
class Created:
    """A certificate on the disk."""

    statement: Statement
    files: tuple[Path, ...]
    """Statement, signature, HTML, PDF."""
    signer: str
    """The public key's line, for a file of allowed signers."""


def create(runs: Path, rig: str, run_id: str | None, key: Path | None, output: Path) -> Created:
    """Certify a run of a rig (by default the newest that burnt and accepted it) and write it into `output`.

    Raises:
        UsageError: no such run, nothing that can be certified, no key, or `output` cannot be written.
        NotAccepted: the run named did not accept the rig.
    """
    private = signing.find_key(key)
    run = RunDir.open(runs, run_id, kind="accept") if run_id else _newest(runs, rig)
    stated = state(run, rig, signing.now())
    stem = f"certificate-{rig}-{stated.run_id}"
    shown = {f"{stem}{HTML}": html.render(stated), f"{stem}{PDF}": pdf.render(stated)}
    stated = stated.model_copy(update={"documents": {name: digest(data) for name, data in shown.items()}})
    signed = dumps(stated).encode() + b"\n"
    written = {
        f"{stem}{STATEMENT}": signed,
        f"{stem}{SIGNATURE}": signing.sign(signed, private),
        **shown,
    }
    with writing(output):
        output.mkdir(parents=True, exist_ok=True)
    for name, data in written.items():
        replace_durably(output / name, data)
    return Created(stated, tuple(output / name for name in written), signing.public_line(private))


def _newest(runs: Path, rig: str) -> RunDir:
    found = None
    for run, record in judged_runs(runs):
        if _accepted(record, rig) and _burnt(run, rig):
            found = run
    if found is None:
        raise UsageError(f"no run under {runs} burnt and accepted {rig!r}", f"accept it first: `rigctl accept {rig}`")
    return found


def _accepted(record: Record, rig: str) -> bool:
    return any(one.name == rig and one.verdict in ACCEPTED for one in record.rigs)


def _burnt(run: RunDir, rig: str) -> bool:
    profiles = [one.profile for one in run.read_info().rigs if one.name == rig]
    return any(profile is not None and profile.gpu_burn_seconds > 0 for profile in profiles)
