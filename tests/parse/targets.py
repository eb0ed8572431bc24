"""Every parser with texts in its known forms, and what no text may make it do; for hypothesis and for the fuzzer.

The texts stand in `forms/PARSER/CASE`, written by ourselves in the forms of the real programs with our own values.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rigctl.agent import meters
from rigctl.parse import (
    ParseError,
    apt,
    dcgm,
    dpkg,
    fio,
    gpu_burn,
    kernel_module,
    lspci,
    nccl_tests,
    numactl,
    nvbandwidth,
    nvlink,
    nvme,
    p2p_bandwidth,
    sensors,
    smi_csv,
    smi_report,
    smi_short,
    smi_table,
    stress_ng,
    switch,
    topo,
    xid,
)

FORMS = Path(__file__).parent / "forms"
STRANGER = "?! a line that no program writes !?"
"""A line that is of no known form of anything."""


class Refused(Exception):
    """The parser said that a text is of no known form."""


@dataclasses.dataclass(frozen=True)
class Target:
    """One parser."""

    name: str
    parse: Callable[[str], Any]
    by_line: bool = True
    """A line of an unknown form is refused wherever it stands; not so within JSON and XML, which are refused whole."""
    derives: bool = False
    """It calculates: its figures need not stand in the text."""
    bad: str | None = None
    """Where this pattern matches in an accepted text, `says_so` must hold: the bad news may not get lost."""
    says_so: Callable[[Any], bool] = bool
    says_nothing: Callable[[Any], bool] = lambda found: found in ((), {})
    """Whether an answer is one that nobody can take for a reading."""

    @property
    def forms(self) -> dict[str, str]:
        """The texts in known forms, by name."""
        folder = FORMS / self.name
        return {path.name: _as_written(path) for path in sorted(folder.iterdir())}

    def read(self, text: str) -> Any:
        """Parse; Refused for the error that it may raise. Any other exception is a fault of the parser."""
        try:
            found = self.parse(text)
        except (ParseError, meters.MeterError) as error:
            raise Refused(str(error)) from error
        if isinstance(found, gpu_burn.BurnLog) and found.unknown is not None:
            raise Refused(found.unknown)
        return found

    def check(self, text: str) -> Any:
        """Parse and hold against what no text may make it do; Refused is in order. AssertionError says what is not."""
        found = self.read(text)
        plain = text + " " + text.replace(",", "")
        said = {float(figure) for figure in re.findall(r"\d+(?:\.\d+)?", plain, re.ASCII)}
        said |= {float(figure) for figure in re.findall(r"\d+(?:\.\d+)?[eE][+-]?\d+", plain, re.ASCII)}
        for figure in figures(found):
            assert math.isfinite(figure), f"{self.name}: {figure} is no figure"
            assert self.derives or abs(figure) in said, f"{self.name}: {figure} stands nowhere in the text"
        if self.bad is not None and re.search(self.bad, text):
            assert self.says_so(found), f"{self.name}: {self.bad} got lost"
        return found


def _as_written(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def figures(found: Any) -> Iterator[float]:
    """Every number in a parser's answer."""
    if isinstance(found, bool) or found is None:
        return
    if isinstance(found, (int, float)):
        yield float(found)
    elif dataclasses.is_dataclass(found) and not isinstance(found, type):
        for field in dataclasses.fields(found):
            yield from figures(getattr(found, field.name))
    elif isinstance(found, Mapping):
        for value in found.values():
            yield from figures(value)
    elif isinstance(found, (list, tuple, set, frozenset)):
        for value in found:
            yield from figures(value)


def _meter(read: Callable[[Any], Any]) -> Callable[[str], Any]:
    """A meter that answers in JSON, as the agent reads it: what is no JSON is refused there."""

    def parse(text: str) -> Any:
        try:
            return read(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise meters.MeterError("no JSON") from error

    return parse


def _sensors(read: Callable[[str], sensors.Chips]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        chips = read(text)
        return chips, chips.processor_temp_c()

    return parse


def _rows(text: str) -> Any:
    rows = smi_csv.parse(text)
    found = [row.figure(name) for row in rows for name in row.units]
    smi_csv.retired_pages([row for row in rows if "retired_pages.address" in row.cells])
    return rows, found


def _lines(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A parser of single kernel messages; one that is no such message is refused here."""

    def parse(text: str) -> Any:
        found = read(text)
        if found is None:
            raise ParseError("a kernel message", text)
        return found

    return parse


def _burn_says_so(log: gpu_burn.BurnLog) -> bool:
    # A row that was still being written is told as cut, and no burn that ends so is a pass.
    return any(said == "FAULTY" for _, said in log.verdicts) or any(log.died) or any(log.warned) or log.cut


TARGETS = (
    Target("topo_m", topo.parse),
    Target("topo_p2p", topo.parse_p2p),
    Target("nvlink_s", nvlink.parse_status, bad=r"<inactive>|all links are inActive",
           says_so=lambda cards: any(card.said or any(not link.active for link in card.links) for card in cards)),
    Target("nvlink_e", nvlink.parse_errors),
    Target("nvlink_c", nvlink.parse_abilities),
    Target("smi_list", smi_short.parse_list),
    Target("smi_version", smi_short.parse_version),
    Target("smi_xml", smi_report.parse_xml, by_line=False),
    Target("smi_q", smi_report.parse_text),
    Target("smi_csv", _rows, says_nothing=lambda found: not found[0]),
    Target("smi_table", smi_table.parse, bad=r"^\|ERR!",
           says_so=lambda table: any(card.errors for card in table.cards)),
    Target("gpu_burn", gpu_burn.parse, derives=True, bad=r"^\s*GPU \d+: FAULTY\s*$|\(DIED!\)|\(WARNING!\)",
           says_so=_burn_says_so, says_nothing=lambda log: not log.rows and not log.verdicts and log.tested is None),
    Target("stress_ng", stress_ng.parse, by_line=False, derives=True),
    Target("dcgm", dcgm.parse, by_line=False),
    Target("nvbandwidth_json", nvbandwidth.parse, by_line=False),
    Target("nvbandwidth_text", nvbandwidth.parse_text, bad=r"^\[CUDA_ERROR_ECC_UNCORRECTABLE\]",
           says_so=lambda tests: any(test.status == "failed" for test in tests),
           says_nothing=lambda tests: all(test.status != "passed" for test in tests)),
    Target("nccl_text", nccl_tests.parse, derives=True, bad=r"^# Out of bounds values : [1-9]\d* FAILED",
           says_so=lambda run: run.wrong > 0),
    Target("nccl_json", nccl_tests.parse_json, by_line=False),
    Target("p2p_bandwidth", p2p_bandwidth.parse),
    Target("sensors_json", _sensors(sensors.parse_json), by_line=False),
    Target("sensors_text", _sensors(sensors.parse_text)),
    Target("fio", fio.parse, by_line=False, derives=True),
    Target("nvme_json", nvme.parse_json, by_line=False, derives=True),
    Target("nvme_text", nvme.parse_text, derives=True, bad=r"(?m)^critical_warning\t\t\t: 0x9$",
           says_so=lambda health: "read only" in health.warnings),
    Target("lspci", lspci.parse, by_line=False, derives=True),
    Target("numactl", numactl.parse),
    Target("apt_policy", apt.parse_policy),
    Target("apt_search", apt.parse_search),
    Target("dkms", kernel_module.parse_dkms, bad=r"WARNING!", says_so=lambda builds: any(b.warning for b in builds)),
    Target("loaded_module", kernel_module.parse_loaded),
    Target("secure_boot", kernel_module.parse_secure_boot, bad=r"^SecureBoot enabled", says_so=lambda found: found.on),
    Target("dpkg_query", dpkg.parse),
    Target("dpkg_list", dpkg.parse_list),
    Target("xid", _lines(xid.parse), by_line=False, derives=True),
    Target("sxid", _lines(switch.parse), by_line=False),
    Target("tasmota", _meter(meters.tasmota), by_line=False, derives=True),
    Target("shelly", _meter(meters.shelly), by_line=False, derives=True, bad=r'^\{"id":0,"output":false,',
           says_so=lambda _: False),
    Target("upsc", meters.upsc, derives=True),
    Target("dcmi", meters.dcmi, derives=True, bad=r"(?m)^ *Power reading state is: *deactivated$",
           says_so=lambda _: False),
    Target("sdr", meters.sensor_watts),
)  # fmt: skip
"""Every parser of the project."""
