"""The cards' own memory, and the host's."""

from __future__ import annotations

from rigctl.checks.info import CARD, CheckInfo

ENTRIES = (
    CheckInfo(
        "memory.host",
        "what was written into the host's memory came back as it was",
        ("host_memory",),
        requires=("stress-ng", "systemd-run"),
        limit_from=("no error; stress-ng compares what it wrote",),
        fix="undo overclocks of the memory (XMP, EXPO), then test the modules one by one",
    ),
    CheckInfo(
        "memory.ecc",
        "no error of a card's memory stayed uncorrected",
        nvml=True,
        requires=("cards that correct errors of their memory (ECC)",),
        limit_from=("parts.ecc", "limits.max_ecc_corrected"),
        fix="reboot the rig; when errors that cannot be corrected come again, replace the card",
    ),
    CheckInfo(
        "memory.remapped_rows",
        "no row of a card's memory waits to be replaced, or could not be",
        nvml=True,
        requires=("cards that replace rows of their memory (Ampere and later data-centre cards)",),
        limit_from=(CARD,),
        fix="pending: reset the card or reboot; failed: replace the card",
    ),
)
