"""nvidia-smi: text forms of 515, exit statuses, messages."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET  # the document is our own
from pathlib import Path

import pytest

from rigctl.sim.machine.smi.nvsmi import table

from .conftest import MACHINE, NEEDS_COMPILER, VERSION, LiveRig, build, wait_for

pytestmark = NEEDS_COMPILER
CORPUS = Path(os.environ.get("RIGCTL_CORPUS", MACHINE.parents[3] / "shared" / "corpus"))


def shape(text: str) -> str:
    """A text with every number and blank run evened out."""
    return re.sub(r"[ \t]+", " ", re.sub(r"\d+(\.\d+)?", "0", text))


def parse(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 (our own document, or a capture that lies on disk)


def corpus(name: str) -> str:
    if not (CORPUS / name).exists():
        pytest.skip(f"no captures at {CORPUS}")
    return (CORPUS / name).read_text(encoding="utf-8")


def test_table_of_515(rig):
    lines = rig.smi().stdout.splitlines()
    assert lines[2] == f"| NVIDIA-SMI {VERSION}   Driver Version: {VERSION}   CUDA Version: 11.7     |"
    assert all(len(line) == 79 for line in lines[1:])
    assert lines[8].startswith("|   0  NVIDIA GeForce ...  O")
    assert re.fullmatch(r"\|  0%   \d\dC    P8 +\d+W / 4[58]0W \| +\d+MiB / 24564MiB \| +0%      Default \|", lines[9])
    assert "No running processes found" in lines[-2]


def test_table_frame_is_that_of_the_capture(rig):
    captured = corpus("nvidia-smi-table/v100s-470.103.01-load.txt").splitlines()
    ours = rig.smi().stdout.splitlines()
    assert ours[3:8] == captured[3:8]
    assert ours[-7:-2] == captured[-7:-2]


def test_long_names_end_in_dots():
    assert table.short_name("NVIDIA GeForce RTX 3090 Ti", 18) == "NVIDIA GeForce ..."


def test_list(rig):
    lines = rig.smi("-L").stdout.splitlines()
    assert all(re.fullmatch(r"GPU \d: NVIDIA GeForce RTX 3090 Ti \(UUID: GPU-[0-9a-f-]{36}\)", line) for line in lines)
    assert len(lines) == 2


def test_topology_is_the_reference_rigs_to_the_byte(rig):
    assert rig.smi("topo", "-m").stdout.strip() == corpus("topo-m/rtx3090ti-x2-nv4-ansi.txt").strip()


def test_topology_with_one_link_less(rig):
    rig.fault("apply", "nv3")
    assert "GPU0\t X \tNV3\t0-23\t\tN/A" in rig.smi("topo", "-m").stdout


def test_link_status(rig):
    assert rig.smi("nvlink", "-s").stdout.count("\t Link 3: 14.062 GB/s") == 2
    captured = corpus("nvlink/status-rtx3090-x2-nv4.txt")
    assert shape(rig.smi("nvlink", "-s").stdout).splitlines()[1:5] == shape(captured).splitlines()[1:5]


def test_a_dead_link_and_none_at_all(rig):
    rig.fault("apply", "nv3", "link=1")
    assert "\t Link 1: <inactive>" in rig.smi("nvlink", "-s", "-i", "0").stdout
    rig.fault("apply", "card_missing", "slot=2")
    assert "NVML: Unable to retrieve NVLink information as all links are inActive" in rig.smi("nvlink", "-s").stdout


def test_xml_has_every_element_that_the_capture_of_515_has(rig):
    ours = parse(rig.smi("-q", "-x").stdout)
    assert rig.smi("-q", "-x").stdout.splitlines()[1] == '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v11.dtd">'
    assert [gpu.get("id") for gpu in ours.findall("gpu")] == ["00000000:01:00.0", "00000000:02:00.0"]
    assert ours.findtext("gpu/serial") == "N/A"
    assert ours.findtext("gpu/temperature/memory_temp") == "N/A"
    captured = parse(corpus("nvidia-smi-xml/tesla-t4-515.105.01.xml"))
    tags = [child.tag for child in captured.findall("gpu/*")]
    assert [child.tag for child in ours.find("gpu") or []] == tags
    for section in ("clocks_throttle_reasons", "temperature", "power_readings", "pci", "clocks", "utilization"):
        names = [child.tag for child in captured.findall(f"gpu/{section}/*")]
        assert [child.tag for child in ours.findall("gpu[1]/" + section + "/*")] == names


def test_query(rig):
    reply = rig.smi("--query-gpu=index,power.draw,clocks.sm,temperature.gpu,serial", "--format=csv")
    header, first, second = reply.stdout.splitlines()
    assert header == "index, power.draw [W], clocks.current.sm [MHz], temperature.gpu, serial"
    assert re.fullmatch(r"0, \d+\.\d\d W, 210 MHz, \d+, \[N/A\]", first)
    assert second.startswith("1, ")
    plain = rig.smi(
        "--query-gpu=memory.total,clocks_throttle_reasons.active", "--format=csv,noheader,nounits", "-i", "1"
    )
    assert plain.stdout == "24564, 0x0000000000000001\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--query-gpu=index,bogus", "--format=csv"], 'Field "bogus" is not a valid field to query.'),
        (["--query-gpu=clocks_event_reasons.active", "--format=csv"], "is not a valid field"),
        (["--query-gpu=index"], "Invalid combination of input arguments"),
        (["--frobnicate"], "Invalid combination of input arguments"),
        (["-pl"], "Invalid combination of input arguments"),
    ],
)
def test_bad_arguments(rig, arguments, says):
    reply = rig.smi(*arguments)
    assert reply.returncode == 2
    assert says in reply.stdout
    assert reply.stderr == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may set limits")
def test_power_limit_and_persistence(rig):
    reply = rig.smi("-pl", "470", "-i", "1")
    assert reply.returncode == 0
    assert "Power limit for GPU 00000000:02:00.0 was set to 470.00 W from 4" in reply.stdout
    wait_for(lambda: rig.state()["gpu.1.power_limit_mw"] == "470000")
    refused = rig.smi("-pl", "600")
    assert refused.returncode == 2
    assert "between 100.00 W and 480.00 W" in refused.stdout
    assert rig.smi("-pm", "1").stdout.count("persistence mode for GPU") + 1 >= 2
    assert "already Enabled" in rig.smi("-pm", "1").stdout


def test_temperature_log_as_gpu_burn_reads_it(rig):
    text = rig.smi("-q", "-d", "TEMPERATURE").stdout
    assert len(re.findall(r"^        GPU Current Temp                  : \d+ C$", text, re.MULTILINE)) == 2


def test_no_driver_is_one_line_on_stdout_whatever_was_asked(built, tmp_path):
    rig = LiveRig(None, os.environ | {"RIGSIM_RUN": str(tmp_path), "LD_LIBRARY_PATH": str(built / "lib")})  # type: ignore[arg-type]
    for arguments in ([], ["-L"], ["--frobnicate"]):
        reply = rig.smi(*arguments)
        assert (reply.returncode, reply.stderr) == (9, "")
        assert reply.stdout.startswith("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
        assert reply.stdout.count("\n") == 1


def test_no_library(tmp_path):
    rig = LiveRig(None, os.environ | {"LD_LIBRARY_PATH": str(tmp_path)})  # type: ignore[arg-type]
    assert rig.smi().returncode == 12
    assert "couldn't find libnvidia-ml.so library" in rig.smi().stdout


@pytest.mark.parametrize(
    ("branch", "version", "second"), [("525", "525.147.05", []), ("580", "580.142", ["NVML library version: 580.142"])]
)
def test_mismatch(rig, tmp_path, branch, version, second):
    build("", Path("nvml"), f"BRANCH={branch}", f"VERSION={version}", f"OUT={tmp_path}")
    (tmp_path / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{version}")
    newer = LiveRig(rig.paths, rig.environment | {"LD_LIBRARY_PATH": str(tmp_path)})
    reply = newer.smi()
    assert reply.returncode == 18
    assert reply.stdout.splitlines() == ["Failed to initialize NVML: Driver/library version mismatch", *second]


def test_newer_driver_prints_its_own_forms(rig, tmp_path):
    build("", Path("nvml"), "BRANCH=560", "VERSION=560.35.05", f"OUT={tmp_path}")
    (tmp_path / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.560.35.05")
    run = tmp_path / "run"
    run.mkdir()
    for name in ("state", "control"):
        (run / name).symlink_to(rig.paths.run / name)
    (run / "sys" / "module" / "nvidia").mkdir(parents=True)
    (run / "sys" / "module" / "nvidia" / "version").write_text("560.35.05\n")
    newer = LiveRig(rig.paths, rig.environment | {"LD_LIBRARY_PATH": str(tmp_path), "RIGSIM_RUN": str(run)})
    lines = newer.smi().stdout.splitlines()
    assert {len(line) for line in lines[1:] if line.strip()} == {91}, lines
    captured = corpus("nvidia-smi-table/rtx3090-x2-560.35.05-vllm.txt").splitlines()
    assert lines[1:8] == captured[1:8]
    assert parse(newer.smi("-q", "-x").stdout).find("gpu/clocks_event_reasons") is not None


def test_card_gone_and_all_gone(rig):
    rig.fault("apply", "card_missing", "slot=1")
    assert len(rig.smi("-L").stdout.splitlines()) == 1
    assert rig.smi("-i", "5").returncode == 6
