"""`nvme smart-log`, as JSON and as text, of nvme-cli 1.x and 2.x: an NVMe disk's health.

JSON has temperatures in kelvin, text in °C with kelvin beside it. A warning is a set of bits, hexadecimal in the text
of version 2; with `-H`, or in newer JSON, they are spelt out too. The bits are those of the NVM Express base
specification, log page 02h. A sensor that says 0 K is not there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rigctl.parse import ParseError
from rigctl.parse.json_text import Entry, document

_JSON, _TEXT = "`nvme smart-log -o json`", "`nvme smart-log`"
_KELVIN = 273
WARNINGS = {
    0x01: "spare below threshold",
    0x02: "temperature outside its limits",
    0x04: "reliability degraded",
    0x08: "read only",
    0x10: "backup of volatile memory failed",
    0x20: "persistent memory read only",
}
"""What each bit of the critical warning means."""
_HEAD = re.compile(r"Smart Log for NVME device:\S+ namespace-id:\S+", re.IGNORECASE)
_LINE = re.compile(r"([A-Za-z][^:\[]*?(?:\[\d\])?)\s*:\s*(.*)")
_TEMP = re.compile(r"(-?\d{1,4}) ?°? ?C(?: \(\d{1,4} (?:Kelvin|K)\))?", re.ASCII)
_PERCENT = re.compile(r"(\d{1,3})%", re.ASCII)
_COUNT = re.compile(r"([\d,]{1,52})(?: \([\d.,]+ \w+\))?", re.ASCII)
_WIDE = re.compile(r"\d{1,39}", re.ASCII)
_BITS = re.compile(r"0x[0-9A-Fa-f]{1,2}|\d{1,3}", re.ASCII)
_NAMES = {
    "critical_warning": "critical_warning",
    "temperature": "temperature",
    "available_spare": "avail_spare",
    "available_spare_threshold": "spare_thresh",
    "percentage_used": "percent_used",
    "data units read": "data_units_read",
    "data_units_read": "data_units_read",
    "data units written": "data_units_written",
    "data_units_written": "data_units_written",
    "power_on_hours": "power_on_hours",
    "unsafe_shutdowns": "unsafe_shutdowns",
    "media_errors": "media_errors",
    "num_err_log_entries": "num_err_log_entries",
}
"""Names of the text → those of JSON."""
_PERCENTS = {"avail_spare", "spare_thresh", "percent_used"}


@dataclass(frozen=True)
class NvmeHealth:
    """One disk's health."""

    warnings: tuple[str, ...]
    """What its critical warning says; empty is good."""
    temp_c: float | None
    spare_pct: int
    spare_threshold_pct: int
    used_pct: int
    """Of its endurance; can exceed 100."""
    read_bytes: int
    written_bytes: int
    power_on_hours: int
    unsafe_shutdowns: int
    media_errors: int
    error_log_entries: int


def parse_json(text: str) -> NvmeHealth:
    """Read the JSON form. Raises ParseError where it is cut, or a value is missing or of another form."""
    entry = Entry(_JSON, document(_JSON, text))
    warning = entry.entries.get("critical_warning")
    if isinstance(warning, dict):
        warning = warning.get("value")
    if isinstance(warning, bool) or not isinstance(warning, int) or not 0 <= warning <= 0xFF:  # noqa: PLR2004 - a byte
        entry.wrong("critical_warning", warning)
    counts = {name: _wide(entry, name) for name in dict.fromkeys(_NAMES.values()) if name != "critical_warning"}
    kelvin = counts.pop("temperature")
    return _health(_JSON, warning, kelvin - _KELVIN if kelvin else None, counts)


def _wide(entry: Entry, name: str) -> int:
    """Return a count; numbers of 128 bits are written as text by newer versions, and as 1e+08 by the oldest."""
    found = entry.entries.get(name)
    if isinstance(found, str):
        found = int(found) if _WIDE.fullmatch(found) else None
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        entry.wrong(name, entry.entries.get(name))
    return found


def parse_text(text: str) -> NvmeHealth:
    """Read the text form. Raises ParseError with the first line of an unknown form, or the name that is missing."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or not _HEAD.fullmatch(lines[0]):
        raise ParseError(_TEXT, lines[0] if lines else "")
    counts: dict[str, int] = {}
    for line in lines[1:]:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ParseError(_TEXT, line)
        name = _NAMES.get(match[1].strip().lower())
        if name is not None:
            if name in counts:
                raise ParseError(_TEXT, line)
            counts[name] = _of_text(name, match[2].strip(), line)
    if missing := next((name for name in _NAMES.values() if name not in counts), None):
        raise ParseError(_TEXT, f"no {missing}")
    warning, celsius = counts.pop("critical_warning"), counts.pop("temperature")
    if warning > 0xFF:  # noqa: PLR2004 - a byte
        raise ParseError(_TEXT, f"critical_warning: {warning}")
    return _health(_TEXT, warning, celsius if celsius > -_KELVIN else None, counts)


def _of_text(name: str, text: str, line: str) -> int:
    pattern = {"critical_warning": _BITS, "temperature": _TEMP}.get(name, _PERCENT if name in _PERCENTS else _COUNT)
    match = pattern.fullmatch(text)
    if match is None:
        raise ParseError(_TEXT, line)
    if pattern is _BITS:
        return int(text, 16) if text.startswith("0x") else int(text)
    digits = match[1].replace(",", "")
    if not digits:
        raise ParseError(_TEXT, line)
    return int(digits)


def _health(what: str, warning: int, celsius: int | None, counts: dict[str, int]) -> NvmeHealth:
    unknown = warning & ~sum(WARNINGS)
    if unknown:
        raise ParseError(what, f"critical_warning: {warning:#x}")
    if max(counts["avail_spare"], counts["spare_thresh"]) > 100 or counts["percent_used"] > 255:  # noqa: PLR2004 - percent; a byte
        raise ParseError(what, f"{counts['avail_spare']} %, {counts['spare_thresh']} %, {counts['percent_used']} %")
    return NvmeHealth(
        tuple(meaning for bit, meaning in WARNINGS.items() if warning & bit),
        None if celsius is None else float(celsius),
        counts["avail_spare"],
        counts["spare_thresh"],
        counts["percent_used"],
        counts["data_units_read"] * _UNIT_BYTES,
        counts["data_units_written"] * _UNIT_BYTES,
        counts["power_on_hours"],
        counts["unsafe_shutdowns"],
        counts["media_errors"],
        counts["num_err_log_entries"],
    )


_UNIT_BYTES = 512_000
"""A data unit is a thousand blocks of 512 bytes."""
