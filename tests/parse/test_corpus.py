"""Every capture of a real machine is read as INDEX.csv says it is; where the folder is absent, nothing is asked."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from rigctl.agent import meters
from rigctl.errors import UsageError
from rigctl.inventory.ansible_view import read_inventory
from rigctl.parse import (
    apt,
    dpkg,
    gpu_burn,
    kernel_module,
    lspci,
    nccl_tests,
    numactl,
    nvbandwidth,
    nvlink,
    p2p_bandwidth,
    sensors,
    smi,
    smi_csv,
    smi_report,
    smi_short,
    smi_table,
    stress_ng,
    switch,
    topo,
)

from .corpus import CORPUS, read

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus here")


def capture(name):
    return read(CORPUS / name)


def test_every_capture_has_a_test():
    """Each file is named here, or all files of its kind are read by another test: a new one is not passed over."""
    elsewhere = {
        "gpu-burn",
        "rebuilt/gpu-burn",
        "nvlink",
        "topo-m",
        "rebuilt/topo-m",
        "nvidia-smi-errors",
        "kernel-log",
    }
    here = Path(__file__).read_text(encoding="utf-8")
    with (CORPUS / "INDEX.csv").open(encoding="utf-8", newline="") as file:
        unread = [row["file"] for row in csv.DictReader(file) if row["kind"] not in elsewhere]
    assert [name for name in unread if name not in here and Path(name).stem not in here] == []


XML = [
    # file, driver, CUDA, attached, printed, name, and figures
    ("a100-sxm4-mig-535.54.03", "535.54.03", "12.2", 4, "NVIDIA A100-SXM4-80GB",
     {"power_draw_w": 67.03, "power_limit_w": 500, "gpu_temp_c": 27, "memory_temp_c": 44, "pcie_width": 16}),
    ("a10g-515.105.01", "515.105.01", "11.7", 1, "NVIDIA A10G",
     {"pcie_width": 8, "max_pcie_width": 16, "pcie_gen": 1, "max_pcie_gen": 4, "power_draw_w": 25.58}),
    ("gtx-1660-ti-418.43", "418.43", "10.1", 1, "Graphics Device", {"power_draw_w": 8.93, "power_limit_w": 130}),
    ("quadro-p2000-525.125.06", "525.125.06", "12.0", 1, "Quadro P2000",
     {"pcie_width": 8, "max_pcie_width": 16, "pcie_gen": 1, "power_limit_w": 75}),
    ("rtx-3060-570.124.04", "570.124.04", "12.8", 1, "NVIDIA GeForce RTX 3060",
     {"power_draw_w": 11.63, "fan_pct": 0, "power_limit_w": 170}),
    ("rtx-3080-595.58.03-v13", "595.58.03", "13.2", 1, "NVIDIA GeForce RTX 3080",
     {"power_draw_w": 142.33, "power_limit_w": 320}),
    ("rtx-3090-525.147.05", "525.147.05", "12.0", 1, "NVIDIA GeForce RTX 3090",
     {"power_limit_w": 200, "default_power_limit_w": 350, "fan_pct": 0}),
    ("tesla-t4-515.105.01", "515.105.01", "11.7", 1, "Tesla T4",
     {"pcie_width": 8, "max_pcie_width": 16, "retired_double_bit": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "driver", "cuda", "attached", "model", "figures"), XML, ids=[row[0] for row in XML])
def test_xml(name, driver, cuda, attached, model, figures):  # noqa: PLR0913, PLR0917 - columns of a table
    report = smi_report.parse_xml(capture(f"nvidia-smi-xml/{name}.xml"))
    (card,) = report.cards
    assert (report.driver, report.cuda, report.attached, card.words["name"]) == (driver, cuda, attached, model)
    assert {name: card.figures.get(name) for name in figures} == figures
    assert card.trouble == {}
    assert card.throttle is not None


def test_xml_what_a_card_does_not_have_is_not_zero():
    mig = smi_report.parse_xml(capture("nvidia-smi-xml/a100-sxm4-mig-535.54.03.xml")).cards[0]
    assert {"fan_pct", "gpu_util_pct", "remap_failed"} <= mig.not_exposed
    assert mig.words["mig_mode"] == "Enabled"
    assert mig.words["ecc_mode"] == "Enabled"
    passive = smi_report.parse_xml(capture("nvidia-smi-xml/tesla-t4-515.105.01.xml")).cards[0]
    assert "fan_pct" in passive.not_exposed
    assert passive.processes is not None
    assert len(passive.processes) == 2


def test_q_text():
    report = smi_report.parse_text(capture("nvidia-smi-q-text/rtx-2080-super-610.57.04-load.txt"))
    (card,) = report.cards
    assert (report.driver, report.cuda, report.attached) == ("610.57.04", "13.3", 1)
    assert card.figures["power_draw_w"] == 97.75
    assert card.figures["power_limit_w"] == 250
    assert card.figures["gpu_util_pct"] == 8
    assert card.throttle == ()
    assert [process.name for process in card.processes or ()] == [
        "/usr/bin/gnome-shell", "/usr/bin/Xwayland", "ffmpeg", "ffmpeg"
    ]  # fmt: skip
    clean = smi_report.parse_text(capture("nvidia-smi-q-text/a100x8-retired-pages-clean-535.txt"))
    assert (clean.driver, clean.attached, len(clean.cards)) == ("535.86.10", 8, 8)
    for one in clean.cards:
        assert (one.figures["retired_single_bit"], one.figures["retired_double_bit"]) == (0, 0)
        assert one.words["retired_pending"] == "No"


def test_csv():
    def rows(name):
        return smi_csv.parse(capture(f"nvidia-smi-csv/{name}.csv"))

    idle = rows("b300-x7-idle-power")
    assert len(idle) == 7
    assert all(180 < row.figure("power.draw") < 187 and row.figure("utilization.gpu") == 0 for row in idle)
    assert [row.figure("used_gpu_memory") for row in rows("compute-apps-l40s-load")] == [538, 681]
    (mig,) = rows("h100-mig-590-all-fields")
    assert mig.figure("utilization.gpu") is None
    assert mig.value("utilization.gpu").absent == "not exposed"
    (bare,) = rows("h100x1-535.161.07-nounits")
    assert (bare.figure("power.draw.average"), bare.figure("memory.total")) == (70.89, 81559)
    pages = rows("retired-pages-h100")
    assert (len(pages), smi_csv.retired_pages(pages)) == (2, 0)
    (full,) = rows("rtx-2080-super-595.71.05-all-fields")
    assert full.value("display_mode").absent == "not exposed"
    assert full.figure("pcie.link.width.current") == 16
    assert full.value("clocks_throttle_reasons.active", "clocks_event_reasons.active").text == "0x0000000000000004"
    (windows,) = rows("rtx-2080-super-windows-466.63")
    assert windows.value("driver_version").text == "466.63"
    assert windows.value("serial").absent == "not exposed"
    links = rows("rtx5060ti-x4-link-gen-width")
    assert [(r.figure("pcie.link.width.current"), r.figure("pcie.link.gen.max")) for r in links] == [(8, 3)] * 4


TABLES = [
    # file, driver, CUDA, cards, cards with ERR!, processes
    ("a100-pcie-x4-two-ERR-other-node-595.71.05", "595.71.05", "13.2", 4, [2, 3], 0),
    ("gls-a100sxmx4", "555.42.02", "12.5", 4, [], 0),
    ("gls-gh200", "550.127.05", "12.4", 1, [], 0),
    ("gls-rtx3090", "560.35.03", "12.6", 2, [], 0),
    ("gls-rtx4060ti", "550.54.14", "12.4", 2, [], 0),
    ("gls-rtx4090", "550.127.05", "12.4", 8, [], 0),
    ("gls-rtx5090", "570.124.06", "12.8", 1, [], 0),
    ("h100-590.48.01-load", "590.48.01", "13.1", 1, [], 3),
    ("h200-590.48.01-idle", "590.48.01", "13.1", 1, [], 0),
    ("rtx-2080-super-595.71.05-idle", "595.71.05", "13.2", 1, [], 2),
    ("rtx-2080-super-610.57.04-idle", "610.57.04", "13.3", 1, [], 2),
    ("rtx-4080-super-595.71.05-load", "595.71.05", "13.2", 1, [], 7),
    ("rtx3090-x2-560.35.05-vllm", "560.35.05", "12.6", 2, [], 2),
    ("rtx6000ada-x4-575.51.03", "575.51.03", "12.9", 4, [], 0),
    ("v100s-470.103.01-load", "470.103.01", "11.4", 1, [], 1),
    ("windows-591.86-idle", "591.86", "13.1", 1, [], 10),
]


@pytest.mark.parametrize(("name", "driver", "cuda", "cards", "broken", "busy"), TABLES, ids=[row[0] for row in TABLES])
def test_table(name, driver, cuda, cards, broken, busy):  # noqa: PLR0913, PLR0917 - columns of a table
    table = smi_table.parse(capture(f"nvidia-smi-table/{name}.txt"))
    assert (table.driver, table.cuda, len(table.cards), len(table.processes)) == (driver, cuda, cards, busy)
    assert [card.index for card in table.cards if card.errors] == broken


def test_table_details():
    (card,) = smi_table.parse(capture("rebuilt/nvidia-smi-table/h100-x4-ERR-limit-cell.txt")).cards
    assert card.errors == ("fan_pct", "limit_w", "ecc", "mig")
    assert (card.figures["draw_w"], card.figures["util_pct"]) == (140, 100)
    (capped,) = smi_table.parse(capture("nvidia-smi-table/v100s-470.103.01-load.txt")).cards
    assert (capped.figures["draw_w"], capped.figures["limit_w"]) == (250, 250)
    full = smi_table.parse(capture("nvidia-smi-table/rtx3090-x2-560.35.05-vllm.txt"))
    assert {process.name for _, process in full.processes} == {"VLLM::Worker_TP0", "VLLM::Worker_TP1"}
    assert all(card.ecc == "Off" for card in smi_table.parse(capture("nvidia-smi-table/gls-rtx4090.txt")).cards)


def test_version():
    found = smi_short.parse_version(capture("nvidia-smi-version/version-590.txt"))
    assert found == smi_short.Versions("590.48.01", "590.48", "590.48.01", "13.1")


def test_affinities_and_access():
    two_sockets = topo.parse(capture("topo-m/rtx3090-x4-phb-sys-two-sockets.txt"))
    assert (two_sockets.relation(0, 1), two_sockets.relation(0, 2)) == ("PHB", "SYS")
    assert two_sockets.numa == {0: 0, 1: 0, 2: 1, 3: 1}
    assert topo.parse(capture("rebuilt/topo-m/x2-sys-one-numa-na.txt")).numa == {1: 1}
    assert topo.parse(capture("topo-m/rtx6000ada-x4-nic-575.txt")).numa == {0: 0, 1: 0, 2: 1, 3: 1}
    assert topo.parse(capture("topo-m/windows-610.62-empty-affinity.txt")).numa == {}
    assert topo.parse(capture("topo-m/rtx3090ti-x2-nv4-ansi.txt")).cpus == {0: "0-23", 1: "0-23"}
    assert topo.parse_p2p(capture("rebuilt/topo-p2p/x2-gns.txt")).relations == {(0, 1): "GNS"}
    chips = nvlink.parse_status(capture("nvlink/c2c-gh200-10links.txt"))[0]
    assert (len(chips.links), chips.active) == (10, ())


def test_bandwidth():
    one = nvbandwidth.parse(capture("bandwidth/nvbandwidth-1gpu.json"))
    assert [sum(test.status == word for test in one) for word in ("passed", "waived", "failed")] == [15, 17, 0]
    assert {test.name: test.figures for test in one}["host_to_device_memcpy_ce"] == (12.3964,)
    assert {test.unit for test in one if test.status == "passed"} == {"GB/s", "ns"}
    (pairs,) = nvbandwidth.parse_text(capture("bandwidth/nvbandwidth-d2d-8gpu.txt"))
    assert len(pairs.figures) == 56, "the diagonal is not measured"
    assert 274 < min(pairs.figures) <= max(pairs.figures) < 277
    text = nvbandwidth.parse_text(capture("bandwidth/nvbandwidth-gh200-text.log"))
    assert sum(test.status == "waived" for test in text) == 17
    assert not any(test.status == "failed" for test in text)


def test_nccl():
    checked = nccl_tests.parse(capture("nccl-tests/allreduce-a100x8-2.16.2.log"))
    assert (checked.ranks, checked.checked, checked.wrong, checked.average_gb_per_s) == (8, True, 0, 210.99)
    old = nccl_tests.parse(capture("nccl-tests/allreduce-a100x8-old-format.log"))
    assert (old.ranks, old.checked, old.trouble) == (8, False, ())
    assert max(size.out_of_place.bus_gb_per_s for size in old.sizes) == 235.26
    everybody = nccl_tests.parse(capture("nccl-tests/alltoall-a100x8.log"))
    last = everybody.sizes[-1]
    assert (last.out_of_place.bus_gb_per_s, last.in_place.bus_gb_per_s) == (224.31, 226.16)
    assert everybody.average_gb_per_s == 58.6481


def test_p2p():
    run = p2p_bandwidth.parse(capture("p2p-bandwidth/rtx6000ada-x2-p2p.txt"))
    assert run.can_access == {(0, 1): True, (1, 0): True}
    assert run.bandwidth["one way", True][0][1] == 26.32
    assert run.bandwidth["one way", False][0][1] == 22.23
    assert (run.latency_us[True][0][1], run.latency_us[False][0][1]) == (1.12, 10.9)


def test_sensors():
    intel = sensors.parse_json(capture("sensors/sensors-j-intel-amdgpu.json"))
    assert intel.processor_temp_c() == 41
    assert intel.temps_c["amdgpu-pci-0300"]["mem"] == 62
    laptop = sensors.parse_text(capture("sensors/thinkpad-unreadable-inputs.txt"))
    assert laptop.unreadable == ("thinkpad-isa-0000 temp4", "thinkpad-isa-0000 temp6")
    assert min(temp for chip in laptop.temps_c.values() for temp in chip.values()) == 35
    inside = sensors.parse_json(capture("rebuilt/sensors/sensors-j-error-inside-object.json"))
    assert inside.processor_temp_c() == 61
    empty = sensors.parse_json(capture("rebuilt/sensors/sensors-j-trailing-comma-k10temp.json"))
    assert empty.processor_temp_c() is None


def test_lspci():
    virtual = [d for d in lspci.parse(capture("lspci/nn-a10-vm.txt")) if d.is_gpu]
    assert [(d.slot, d.vendor, d.device) for d in virtual] == [("06:00.0", "10de", "2236")]
    assert sum(d.is_gpu for d in lspci.parse(capture("lspci/nn-v100s-x2.txt"))) == 2
    (whole,) = lspci.parse(capture("lspci/vvv-h100-gen5-x16-ok.txt"))
    assert whole.link is not None
    assert (whole.link.max_generation, whole.link.generation, whole.link.max_width, whole.link.width) == (5, 5, 16, 16)
    assert whole.errors == ("corrected",)
    for name, numa in (("vvv-rtx6000ada-idle-downgraded", 0), ("vvv-rtx6000ada-c1-idle-downgraded", None)):
        (asleep,) = lspci.parse(capture(f"lspci/{name}.txt"))
        assert asleep.link is not None
        assert (asleep.link.max_generation, asleep.link.generation, asleep.link.width) == (4, 1, 16)
        assert (asleep.numa, asleep.errors, asleep.is_gpu) == (numa, (), True)


def test_numactl():
    two = numactl.parse(capture("numactl/epyc-2node-nps1.txt"))
    assert {number: len(node.cpus or ()) for number, node in two.items()} == {0: 32, 1: 32}
    assert two[0].distances[1] == 32
    one = numactl.parse(capture("numactl/threadripper-1node.txt"))
    assert (len(one), len(one[0].cpus or ()), one[0].free_mb) == (1, 24, 1724)


def test_stress_ng():
    (cpu,) = stress_ng.parse(capture("stress-ng/cpu-0.09.25.yaml"))
    assert (cpu.stressor, cpu.bogo_ops, round(cpu.wall_s, 2)) == ("cpu", 31532, 10.05)


METERS = [
    ("power-meter/shelly-gen1-plug-s-status.json", "relay is off"),
    ("power-meter/shelly-gen2-plus-1pm-status.json", "relay is off"),
    ("power-meter/shelly-gen2-plus-plug-s-status.json", 2.7),
    ("power-meter/tasmota-blanks-after-colon.json", 0),
    ("power-meter/tasmota-old-2018.json", 5),
    ("power-meter/tasmota-sensor-56w.json", 56),
    ("power-meter/tasmota-status8-2w.json", 2),
    ("ups/apc-smart-ups-1500-usbhid.txt", "neither"),
    ("ups/cyberpower-cp1350.txt", 97.2),
    ("ups/cyberpower-cp1500.txt", 0),
    ("ipmi-power/ipmitool-dcmi-167w.txt", 167),
    ("ipmi-power/ipmitool-dcmi-296w.txt", 296),
]


@pytest.mark.parametrize(("name", "expected"), METERS, ids=[row[0] for row in METERS])
def test_meter(name, expected):
    text = capture(name)
    read_it = {
        "tasmota": lambda: meters.tasmota(json.loads(text)),
        "shelly": lambda: meters.shelly(json.loads(text)),
        "ipmitool": lambda: meters.dcmi(text),
    }.get(Path(name).name.partition("-")[0], lambda: meters.upsc(text))
    if isinstance(expected, str):
        with pytest.raises(meters.MeterError, match=expected):
            read_it()
    else:
        assert read_it().power_w == pytest.approx(expected)


def test_meter_sensors_and_steps():
    assert meters.sensor_watts(capture("ipmi-power/ipmitool-sdr-elist-v2.txt")) == {"Power Supply 1": 110}
    assert meters.upsc(capture("ups/cyberpower-cp1350.txt")).step_w == pytest.approx(8.1)


def test_packages():
    (archive,) = apt.parse_policy(capture("packages/apt-policy-535-jammy.txt"))
    assert archive.installed == archive.candidate == "535.129.03-0ubuntu0.22.04.1"
    (ppa,) = apt.parse_policy(capture("packages/apt-policy-535-ppa.txt"))
    assert any("ppa.launchpadcontent.net" in index for index in (ppa.offers or {})[ppa.candidate or ""])
    found = {offer.name: offer for offer in apt.parse_search(capture("packages/apt-search-transitional-bionic.txt"))}
    assert found["nvidia-driver-418"].becomes == "nvidia-driver-430"
    assert found["nvidia-driver-430"].version.startswith("455.45")
    assert found["nvidia-driver-410"].suites == ("unknown",)
    assert found["nvidia-driver-390"].becomes is None
    left = dpkg.parse_list(capture("packages/dpkg-l-535-server-with-595-leftovers.txt"))
    assert {package.upstream for package in left if package.installed} == {"535.309.01"}
    settings = dpkg.parse_list(capture("packages/dpkg-l-ii-535-settings-510.txt"))
    assert {p.name: p.upstream for p in settings if p.installed}["nvidia-settings"] == "510.47.03"
    renamed = dpkg.parse_list(capture("packages/dpkg-l-transitional-455-460.txt"))
    assert {p.name: p.upstream for p in renamed if p.installed}["nvidia-driver-455"] == "460.56"


def test_kernel_modules():
    old = kernel_module.parse_dkms(capture("packages/dkms-focal-comma-form.txt"))
    assert [(b.kernel, b.state) for b in old] == [("5.14.0-1042-oem", "installed"), ("5.15.0-117-generic", "installed")]
    added, ready = kernel_module.parse_dkms(capture("packages/dkms-noble-added-and-installed.txt"))
    assert (added.state, added.kernel) == ("added", None)
    assert (ready.name, ready.version, ready.kernel) == ("nvidia", "550.107.02", "6.8.0-44-generic")
    assert kernel_module.parse_dkms(capture("packages/dkms-nvidia-srv.txt"))[0].name == "nvidia-srv"
    opened = kernel_module.parse_loaded(capture("packages/proc-driver-nvidia-version-open-595.txt"))
    assert opened == kernel_module.LoadedModule("595.91.07", is_open=True)
    assert kernel_module.parse_secure_boot(capture("packages/mokutil-enabled.txt")).on
    setup = kernel_module.parse_secure_boot(capture("packages/mokutil-disabled-setup-mode.txt"))
    assert (setup.on, setup.setup_mode) == (False, True)


def test_switches_in_kernel_logs():
    for path in sorted((CORPUS / "kernel-log").iterdir()):
        found = [one for line in read(path).splitlines() if (one := switch.parse(line))]
        assert {one.number for one in found} == ({20034} if "nvswitch" in path.name else set())
        assert all(one.fatal in {True, None} for one in found)


INVENTORIES = {
    # file → hosts; groups that hold some of them
    "deepops-example.ini": (0, {}),
    "deepops-virtual-full.ini": (6, {"slurm-node": 2}),
    "gpu-group-plain-range.ini": (17, {"compute": 16}),
    "hydra-gpu-children.ini": (3, {"gpu": 2}),
    "kubespray-sample.ini": (0, {}),
    "marie-hosts.yml": (4, {"etcd_cluster": 3}),
    "proxyjump-ini-style-children.yml": (4, {"hosts": 2, "vms": 2}),
}


@pytest.mark.parametrize("name", INVENTORIES)
def test_inventory(name):
    path = CORPUS / "ansible-inventory" / name
    hosts, groups = INVENTORIES[name]
    if not hosts:
        with pytest.raises(UsageError, match="matches no rig"):
            read_inventory(path, "all")
        return
    view = read_inventory(path, "all")
    assert len(view.hosts) == hosts
    counted = {group: sum(group in view.groups[host] for host in view.hosts) for group in groups}
    assert counted == groups


def test_tried():
    """What the real programs said without a card, each with its standard output and error."""

    def parts(name):
        text = capture(f"tried/{name}")
        out, _, rest = text.partition("--out\n")[2].partition("--err\n")
        return out, rest.partition("--left:")[0]

    for name in ("gpu-burn-l.txt", "gpu-burn-no-driver.txt", "gpu-burn-no-libcuda.txt", "gpu-burn-no-driver-i0.txt"):
        log = gpu_burn.parse("".join(parts(name)))
        assert (log.unknown, log.aborted is None, log.tested) == (None, False, None), name
    died = gpu_burn.parse(parts("gpu-burn-no-driver-i0.txt")[0])
    assert (died.died, died.errors, died.worked) == ((True,), (0,), (False,))
    assert gpu_burn.parse(parts("gpu-burn-path-with-h.txt")[0]).help_shown
    for name, status in (("nvidia-smi-no-driver.txt", 9), ("nvidia-smi-no-library.txt", 12)):
        assert smi.failure(capture(f"tried/{name}"), status) is not None
    (built,) = kernel_module.parse_dkms(capture("tried/dkms-status.txt").partition("dkms-3")[0])
    assert (built.name, built.state) == ("nvidia-current", "installed")
