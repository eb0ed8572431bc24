"""lm-sensors: `sensors -j` and `sensors`, with what makes their output invalid.

`sensors -j` writes `ERROR:` lines into its JSON where standard error is merged, and a comma too many for a chip or
feature without readable values. A value that could not be read is then printed as zero by the text form: it is no
reading. Only chips that sit in the processor tell its temperature; a graphics card's or disk's is often the hottest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rigctl.parse import ParseError
from rigctl.parse.figures import NUMBER
from rigctl.parse.json_text import Entry, document

_JSON, _TEXT = "`sensors -j`", "`sensors`"
_ERROR = re.compile(r"\s*ERROR: Can't get value of subfeature (\w+): .*")
_NOISE = re.compile(r"\s*(?:ERROR|Error|Can't|sensors).*")
_COMMA = re.compile(r",(\s*[}\]])")
_CHIP = re.compile(r"[\w.]+-(?:isa|pci|virtual|acpi|hid|i2c|spi|mdio|scsi|nvme|platform)-[\w.-]+", re.ASCII)
_ADAPTER = re.compile(r"Adapter: .+")
_TEMP = re.compile(rf"(.+?):\s+([+-]{NUMBER.removeprefix('-?')})\s*°?C(?:\s.*)?")
_NO_TEMP = re.compile(r"(.+?):\s+N/A(?:\s.*)?")
_OTHER = re.compile(r"(.+?):\s+\S.*")
_CONTINUED = re.compile(r"\s+\(.*\)\s*")
_FAHRENHEIT = re.compile(r".+?:\s+[+-][\d.]+\s*°?F(?:\s.*)?")
_PROCESSOR = {
    "k10temp": ("Tdie", "Tctl", "temp1"),
    "zenpower": ("Tdie", "Tctl", "temp1"),
    "coretemp": ("Package id", "Physical id", "Core"),
}
"""The processor's own chips, and their features in the order in which they are believed: Tctl may have an offset."""
_LOWEST_C, _HIGHEST_C = -60.0, 150.0
"""What a sensor of a running processor can say; a disk's broken limit says 65261.85."""


@dataclass(frozen=True)
class Chips:
    """Every temperature that was read, °C, and what could not be read."""

    temps_c: dict[str, dict[str, float]]
    """By chip and feature."""
    unreadable: tuple[str, ...]
    """`chip feature`, or the subfeature where the chip is not told."""

    def processor_temp_c(self) -> float | None:
        """Return the processor's temperature, °C: the hottest package, or else core; None where no chip tells it.

        Raises ParseError for a temperature that no processor has.
        """
        found: list[float] = []
        for chip, features in self.temps_c.items():
            for prefix in _PROCESSOR.get(chip.partition("-")[0], ()):
                temps = [temp for feature, temp in features.items() if feature.startswith(prefix)]
                if temps:
                    found.append(max(temps))
                    break
        for temp in found:
            if not _LOWEST_C <= temp <= _HIGHEST_C:
                raise ParseError("the processor's temperature", f"{temp} °C")
        return max(found, default=None)


def parse_json(text: str) -> Chips:
    """Read `sensors -j`. Raises ParseError where it is cut, or invalid in a way that is not known."""
    kept, failed = [], []
    for line in text.splitlines():
        if match := _ERROR.fullmatch(line):
            failed.append(match[1])
        else:
            kept.append(line)
    root = Entry(_JSON, document(_JSON, _COMMA.sub(r"\1", "\n".join(kept))))
    temps: dict[str, dict[str, float]] = {}
    unreadable = list(failed)
    for chip in root.entries:
        features = root.entry(chip)
        temps[chip] = {}
        for feature in features.entries:
            if feature == "Adapter":
                features.text(feature)
                continue
            entry = features.entry(feature)
            keys = [key for key in entry.entries if re.fullmatch(r"temp\d+_input", key, re.ASCII)]
            if keys:
                temps[chip][feature] = entry.number(keys[0])
            elif not entry.entries:
                unreadable.append(f"{chip} {feature}")
    if not temps:
        raise ParseError(_JSON, text.strip().partition("\n")[0])
    return Chips(temps, tuple(unreadable))


def parse_text(text: str) -> Chips:
    """Read `sensors`. Raises ParseError with the first line of an unknown form; °F is one."""
    temps: dict[str, dict[str, float]] = {}
    unreadable: list[str] = []
    chip, failed = "", 0
    for line in filter(str.strip, text.splitlines()):
        if match := _ERROR.fullmatch(line):
            failed += match[1].startswith("temp") and match[1].endswith("_input")
        elif _CHIP.fullmatch(line.rstrip()):
            chip, failed = line.rstrip(), 0
            temps[chip] = {}
        elif not chip or _FAHRENHEIT.fullmatch(line):
            raise ParseError(_TEXT, line)
        elif match := _TEMP.fullmatch(line.rstrip()) or _NO_TEMP.fullmatch(line.rstrip()):
            # The line after the error is the value that could not be read: it says +0.0.
            if failed or match.re is _NO_TEMP:
                unreadable.append(f"{chip} {match[1]}")
            else:
                temps[chip][match[1]] = float(match[2])
            failed = 0
        elif not (_ADAPTER.fullmatch(line.rstrip()) or _OTHER.fullmatch(line.rstrip()) or _CONTINUED.fullmatch(line)):
            raise ParseError(_TEXT, line)
    if not temps:
        raise ParseError(_TEXT, text.strip().partition("\n")[0])
    return Chips(temps, tuple(unreadable))
