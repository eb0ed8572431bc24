"""stress-ng's report, the kernel's Xid lines, dpkg's answers."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rigctl.parse import ParseError, dpkg, stress_ng, xid

from .corpus import TRIES, each, read

REPORT = """---
system-info:
      date-yyyy-mm-dd: 2026:11:30
      version: #1 SMP PREEMPT_DYNAMIC
metrics:
    - stressor: cpu
      bogo-ops: 41210
      bogo-ops-per-second-usr-sys-time: 572.1
      bogo-ops-per-second-real-time: 6850.22
      wall-clock-time: 6.01
      max-rss: 7000
times:
      run-time: 6.02
...
"""


def test_stress_ng():
    (metrics,) = stress_ng.parse(REPORT)
    assert metrics == stress_ng.StressorMetrics("cpu", 41210, 6.01, 6850.22)


@pytest.mark.parametrize(
    "text",
    ["", "---\n", "metrics:\n", REPORT[:120], REPORT.replace("41210", "many"), "[" * 50_000, "\0", "x" * 1_000_001,
     "metrics: [1, 2]\n", "- a\n- b\n"],
)  # fmt: skip
def test_what_is_no_report_is_an_error(text):
    with pytest.raises(ParseError):
        stress_ng.parse(text)


@given(st.text(max_size=300))
@TRIES
def test_garbage_is_no_report(text):
    with pytest.raises(ParseError):
        stress_ng.parse(text)


@each("stress-ng")
def test_captured_reports(path):
    assert stress_ng.parse(read(path))[0].bogo_ops > 0


@pytest.mark.parametrize(
    ("line", "number", "bus", "pid", "process"),
    [
        ("NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
         79, "0000:05:00", None, None),
        ("[12.3] NVRM: Xid (PCI:0000:9b:00): 119, pid=20243, name=nvidia-smi, Timeout after 6s", 119, "0000:9b:00",
         20243, "nvidia-smi"),
        ("NVRM: Xid (PCI:0000:b7:00 GPU-I:05): 94, pid=7194, name=python3, Ch 00000008", 94, "0000:b7:00", 7194,
         "python3"),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", 14, "0000:03:00", None, None),
        ("NVRM: Xid (PCI:0000:01:00): 62, 023f0f30 00000000", 62, "0000:01:00", None, None),
        ("NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.", 79, "0000:18:00.0", None, None),
        ("NVRM: GPU at PCI:0000:18:00: GPU has fallen off the bus.", 79, "0000:18:00", None, None),
    ],
)  # fmt: skip
def test_xid_forms(line, number, bus, pid, process):
    found = xid.parse(line)
    assert found is not None
    assert (found.number, found.pci_bus_id, found.pid, found.process) == (number, bus, pid, process)


@pytest.mark.parametrize(
    "line",
    [
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up",
        "NVRM: GPU at PCI:0000:91:00: GPU-feed0000-0000-4000-8000-000000000100",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  515.105.01",
        "usb 1-2: new device",
        "",
    ],
)
def test_lines_without_an_xid(line):
    assert xid.parse(line) is None


@pytest.mark.parametrize("line", ["NVRM: Xid (card 3): 79", "NVRM: Xid 79", "NVRM: Xid (PCI:0000:05:00) 79"])
def test_xids_of_an_unknown_form_are_errors(line):
    with pytest.raises(ParseError, match="unknown form"):
        xid.parse(line)


@given(st.text(max_size=200))
@TRIES
def test_kernel_messages_never_crash_the_reader(text):
    assert xid.parse(text) is None
    with contextlib.suppress(ParseError):
        xid.parse(f"NVRM: Xid (PCI:0000:05:00): 79{text}")


def test_addresses_of_kernel_and_nvml_name_one_card():
    assert xid.same_card("0000:05:00", "00000000:05:00.0")
    assert xid.same_card("0000:9B:00.0", "00000000:9b:00.0")
    assert not xid.same_card("0000:05:00", "00010000:05:00.0")


def test_what_numbers_mean():
    assert xid.meaning(79).effect == "fail"
    assert xid.meaning(79).action == "RESTART_BM"
    assert xid.meaning(13).effect == "burn"
    assert xid.meaning(63).effect == "warn"
    assert xid.meaning(100_000).effect == "fail"


@each("kernel-log")
def test_captured_kernel_logs(path):
    numbers = {found.number for line in read(path).splitlines() if (found := xid.parse(line))}
    expected = {
        "xid79": {79}, "ib-link": set(), "kmsg-raw": set(), "old-form": {14}, "xid119": {119}, "xid13": {13, 43},
        "xid62": {62, 45}, "xid74": {74}, "xid94": {94, 64},
    }  # fmt: skip
    assert numbers == next(found for word, found in expected.items() if word in path.name)


def test_dpkg():
    held, left = dpkg.parse("aa\t1:515.76+really.515.65.01-0ubuntu1\tinstalled\nbb\t2\tconfig-files\n")
    assert (held.upstream, held.installed, left.installed) == ("515.65.01", True, False)
    assert dpkg.parse("") == ()
    with pytest.raises(ParseError):
        dpkg.parse("dpkg-query: no packages found\n")
