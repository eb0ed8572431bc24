"""Verify a certificate offline: who signed it, and where it differs from what was signed or from the run."""

from __future__ import annotations

import html as escapes
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rigctl.certificate import html, pdf, signing
from rigctl.certificate.create import HTML, PDF, SIGNATURE, STATEMENT
from rigctl.certificate.statement import digest, digests
from rigctl.errors import UsageError
from rigctl.model.certificate import Statement
from rigctl.report.text import moment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SHOWN = 5
"""So many differing values of one document are named."""


@dataclass(frozen=True)
class Finding:
    """One difference, and what it means."""

    file: str
    what: str
    fix: str = ""


@dataclass(frozen=True)
class Verified:
    """What verifying found."""

    statement: Statement
    signer: signing.Signer | None
    """None: the signature is not one of this statement."""
    findings: tuple[Finding, ...]
    """Empty: everything is as it was signed, by a key that somebody vouches for."""
    run_compared: bool
    """Whether the run's own files were there to compare."""


def verify(file: Path, signers: Path | None, runs: Path) -> Verified:
    """Verify a certificate by any of its files.

    Args:
        file: Statement, signature, HTML or PDF, or a folder that holds one certificate.
        signers: Allowed signers; None takes `~/.ssh/allowed_signers` where there is one.
        runs: Where the run may lie; it is compared where it is there.

    Raises:
        UsageError: there is no certificate, it is of a newer version, or the allowed signers cannot be read.
    """
    statement = _statement_beside(file)
    raw = _read(statement)
    stated = _parse(statement, raw)
    findings = list(_documents(statement, stated))
    signer, unsigned = _signed(statement, raw, stated, signers)
    folder = runs / stated.run_id
    compared = (folder / "run.json").is_file()
    if compared:
        findings += _run(folder, stated)
    return Verified(stated, signer, (*unsigned, *findings), compared)


def _statement_beside(file: Path) -> Path:
    if file.is_dir():
        found = sorted(file.glob("*" + SIGNATURE))
        if len(found) != 1:
            raise UsageError(f"{file} holds {len(found)} certificates", "name one of its files")
        file = found[0]
    for suffix in (SIGNATURE, STATEMENT, HTML, PDF):
        if file.name.endswith(suffix):
            return file.with_name(file.name.removesuffix(suffix) + STATEMENT)
    raise UsageError(f"{file} is no file of a certificate", "name its .json, .json.sig, .html or .pdf")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", "a certificate's statement, signature and pages lie together"
        ) from error


def _parse(path: Path, raw: bytes) -> Statement:
    try:
        plain = json.loads(raw)
        version = plain.get("schema_version") if isinstance(plain, dict) else None
        if isinstance(version, int) and version > Statement.model_fields["schema_version"].default:
            raise UsageError(f"{path} is of a newer version ({version})", "verify it with a newer rigctl")
        return Statement.model_validate_json(raw)
    except (ValueError, ValidationError) as error:
        told = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise UsageError(f"{path} is no statement of a certificate: {told}", "fetch the certificate again") from error


def _signed(
    path: Path, raw: bytes, stated: Statement, signers: Path | None
) -> tuple[signing.Signer | None, list[Finding]]:
    default = signing.DEFAULT_SIGNERS.expanduser()
    known = signers if signers is not None else default if default.is_file() else None
    try:
        signature = _read(path.with_name(path.name + ".sig"))
        signer = signing.check(raw, signature, known, moment(stated.certified_at))
    except signing.BadSignature as error:
        return None, [Finding(path.name, f"is not what was signed ({error})", "fetch the certificate again")]
    if signer.principal is None:
        where = f"not in {known}" if known is not None else "there is no file of allowed signers"
        line = (
            f'when you trust it, add a line `NAME namespaces="{signing.NAMESPACE}" KEY` and name the file by --signers'
        )
        return signer, [Finding(path.name, f"signed by an unknown key {signer.fingerprint} ({where})", line)]
    return signer, []


def _documents(path: Path, stated: Statement) -> Iterator[Finding]:
    """What people read must be what was signed, and say what the statement says."""
    for name, expected in stated.documents.items():
        try:
            shown = _read(path.with_name(name))
        except UsageError:
            yield Finding(name, "is not there", "fetch the certificate again")
            continue
        differing = _other_values(shown, stated) if name.endswith(HTML) else []
        if differing or digest(shown) != expected:
            told = "; ".join(differing) or _differs(name, shown, stated)
            yield Finding(name, f"is not the statement's: {told}", "do not rely on it")


def _other_values(shown: bytes, stated: Statement) -> list[str]:
    """The values in which the page's own copy of the statement differs from it."""
    copy = _copy(shown)
    if copy is None:
        return ["its copy of the statement cannot be read"]
    differing = list(_values(stated.model_copy(update={"documents": {}}).model_dump(mode="json"), copy))
    more = [f"and {len(differing) - _SHOWN} more"] if len(differing) > _SHOWN else []
    return differing[:_SHOWN] + more


def _differs(name: str, shown: bytes, stated: Statement) -> str:
    if name.endswith(HTML):
        return _first_line(html.render(stated).decode(), shown.decode("utf-8", "replace"))
    made_anew = pdf.render(stated) == shown
    return "the statement's digest of it is another" if made_anew else "the file was changed after signing"


def _copy(shown: bytes) -> Any:
    text = shown.decode("utf-8", "replace")
    _, opening, rest = text.rpartition(html.OPENING)
    try:
        return json.loads(rest.partition(html.CLOSING)[0]) if opening else None
    except ValueError:
        return None


def _values(mine: Any, theirs: Any, at: str = "") -> Iterator[str]:
    """Name each value in which statement and page differ."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key in [*mine, *(key for key in theirs if key not in mine)]:
            yield from _values(mine.get(key), theirs.get(key), f"{at}.{key}" if at else str(key))
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for number, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            yield from _values(one, other, f"{at}[{number}]")
    elif mine != theirs:
        stated, here = (json.dumps(value, ensure_ascii=False) for value in (mine, theirs))
        yield f"{at}: {stated} in the statement, {here} here"


def _first_line(expected: str, shown: str) -> str:
    for number, (one, other) in enumerate(zip(expected.splitlines(), shown.splitlines(), strict=False), start=1):
        if one != other:
            return (
                f"line {number} reads {escapes.unescape(other.strip())!r} instead of {escapes.unescape(one.strip())!r}"
            )
    return "it is shorter or longer than the statement's page"


def _run(folder: Path, stated: Statement) -> Iterator[Finding]:
    found = digests(folder, stated.rig)
    for name, expected in stated.evidence.items():
        if name not in found:
            yield Finding(f"{stated.run_id}/{name}", "is not in the run any more", "bring it back from a backup")
        elif found[name] != expected:
            yield Finding(f"{stated.run_id}/{name}", "is not what was certified", "bring it back from a backup")
