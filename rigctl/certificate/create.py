"""Write a certificate: statement, its HTML and PDF, and one signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.certificate import html, pdf, signing
from rigctl.certificate.statement import digest, state
from rigctl.errors import UsageError
from rigctl.store import RunDir, dumps
from rigctl.store.files import replace_durably, writing
from rigctl.store.index import Index, own_url

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.model.certificate import Statement

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
    found: tuple[str, ...] = ()
    if runs.is_dir():
        with Index.open(runs, own_url(runs)) as index:
            index.update()
            found = index.baseline_runs(rig)
    if not found:
        raise UsageError(f"no run under {runs} burnt and accepted {rig!r}", f"accept it first: `rigctl accept {rig}`")
    return RunDir(runs / found[-1])
