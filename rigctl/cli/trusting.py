"""A host key that nobody trusts yet, shown to a person who decides."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rigctl.fleet.ssh import Untrusted


def show_key(unknown: Untrusted) -> None:
    """Write whose key it is, and its fingerprint."""
    from rigctl.fleet.trust import known_name  # noqa: PLC0415 - keeps `rigctl --help` fast

    key, hop = unknown.key, unknown.hop
    sys.stderr.write(f"{hop.label} ({known_name(hop.login)}) shows {key.key_type} {key.fingerprint}\n")


def agrees(unknown: Untrusted, *, yes: bool) -> bool:
    """Show the key and ask; no terminal and no answer is a no. Raises KeyboardInterrupt after Ctrl-C."""
    show_key(unknown)
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
