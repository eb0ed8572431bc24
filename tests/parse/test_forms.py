"""What each form says, and above all how it says that something is wrong."""

from __future__ import annotations

import json

import pytest

from rigctl.agent import meters
from rigctl.parse import (
    ParseError,
    apt,
    dcgm,
    dpkg,
    figures,
    fio,
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
    smi_value,
    switch,
    topo,
)

from .targets import FORMS


def form(name):
    with (FORMS / name).open(encoding="utf-8", newline="") as file:
        return file.read()


@pytest.mark.parametrize(
    "text", ["nan", "inf", "1_000", "٣", "²", "", " 1", "1 ", "+1", "0x10", "9" * 19, "1e999", "--1"]
)
def test_what_is_no_figure(text):
    with pytest.raises(ValueError, match="is no"):
        figures.number(text)
    with pytest.raises(ValueError, match="is no"):
        figures.whole(text)


def test_figures():
    assert figures.whole("1,234,567") == 1234567
    assert figures.number("-8.50") == -8.5
    assert figures.number("1.5e3") == 1500


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("N/A", "not exposed"), ("[N/A]", "not exposed"), ("", "not exposed"), ("[Not Supported]", "not exposed"),
        ("Requested functionality has been deprecated", "not exposed"), ("[Function Not Found]", "not exposed"),
        ("[Requested functionality has been deprecated]", "not exposed"), ("ERR!", "trouble"),
        ("[Unknown Error]", "trouble"), ("[GPU is lost]", "trouble"), ("[GPU requires reset]", "trouble"),
        ("[Insufficient Permissions]", "trouble"), ("None", None), ("58 C", None),
    ],
)  # fmt: skip
def test_why_there_is_no_value(text, absent):
    assert smi_value.read(text).absent == absent


@pytest.mark.parametrize("text", ["58", "58 W", "C", "58 C 3", "nan C", "99999999999999999999 C", "five C"])
def test_a_value_of_another_form_is_an_error_and_no_missing_one(text):
    with pytest.raises(ParseError):
        smi_value.read(text).figure("C")


BURNING = {"power_draw_w": 441.2, "power_limit_w": 480, "gpu_temp_c": 58, "pcie_width": 8, "max_pcie_width": 16,
           "pcie_replays": 3, "memory_used_mib": 21630, "sm_clock_mhz": 1875}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "read", "driver"),
    [
        ("smi_xml/515-two-burning.xml", smi_report.parse_xml, "515.105.01"),
        ("smi_q/515-two.txt", smi_report.parse_text, "515.105.01"),
        ("smi_q/580-one.txt", smi_report.parse_text, "580.95.05"),
        ("smi_q/610-one.txt", smi_report.parse_text, "610.43.02"),
    ],
)
def test_the_same_card_in_every_drivers_words(name, read, driver):
    report = read(form(name))
    first = report.cards[0]
    assert report.driver == driver
    assert {key: first.figures[key] for key in BURNING} == BURNING
    assert (first.words["vbios"], first.throttle) == ("94.02.A0.00.63", ("sw_power_cap",))
    assert "memory_temp_c" in first.not_exposed
    assert first.why_not("memory_temp_c") == "not exposed by this card or driver"
    assert first.why_not("no_such_thing") == "not printed by this driver"


def test_a_card_in_trouble_is_told_from_one_without():
    (card,) = smi_report.parse_xml(form("smi_xml/595-trouble.xml")).cards
    assert card.trouble == {"gpu_temp_c": "Unknown Error", "fan_pct": "ERR!"}
    assert "gpu_temp_c" not in card.figures
    assert card.why_not("fan_pct") == "nvidia-smi says 'ERR!'"
    assert card.words["recovery_action"] == "Reset"
    (hot,) = smi_report.parse_xml(form("smi_xml/535-ecc.xml")).cards
    assert hot.throttle == ("hw_slowdown", "hw_thermal_slowdown")
    assert (hot.figures["ecc_uncorrected_volatile"], hot.words["remap_pending"]) == (2, "Yes")
    (rows,) = smi_report.parse_text(form("smi_q/535-rows.txt")).cards
    assert (rows.figures["remapped_uncorrected"], rows.words["remap_failed"]) == (4, "No")
    _, second = smi_report.parse_text(form("smi_q/515-two.txt")).cards
    assert second.throttle == ("sw_power_cap", "hw_slowdown", "hw_thermal_slowdown")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("441.20 W", "441.20"), ("441.20 W", "lots"), ("58 C", "-"), ("58 C", "136 F"), ("8x", "8"),
        ("Not Active", "Maybe"), ("<attached_gpus>2", "<attached_gpus>1"), ("00000000:02:00.0", "00000000:01:00.0"),
        ('id="00000000', 'id="card'), ("</gpu>", ""), ("nvidia_smi_log>", "other>"), ("<pid>4021", "<pid>four"),
        ("<nvidia_smi_log>", "<!ENTITY a 'b'>"),
    ],
)  # fmt: skip
def test_xml_of_another_form_is_an_error(old, new):
    text = form("smi_xml/515-two-burning.xml")
    assert old in text
    with pytest.raises(ParseError):
        smi_report.parse_xml(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("441.20 W", "lots"), ("GPU 00000000:02:00.0", "GPU two"),
        ("    Power Readings", "Power Readings"), ("Not Active", "Maybe"), (": 4021", ": four"),
        ("==NVSMI LOG==", "==SOMETHING=="), ("GPU 00000000:02:00.0", "GPU 00000000:01:00.0"),
    ],
)  # fmt: skip
def test_text_of_another_form_is_an_error(old, new):
    text = form("smi_q/515-two.txt")
    assert old in text
    with pytest.raises(ParseError):
        smi_report.parse_text(text.replace(old, new))


def test_a_count_that_is_not_printed_is_not_made_up():
    text = form("smi_xml/515-two-burning.xml").replace("\t<attached_gpus>2</attached_gpus>\n", "")
    assert smi_report.parse_xml(text).attached is None
    with pytest.raises(ParseError):
        smi_report.parse_xml("<nvidia_smi_log><driver_version>515.105.01</driver_version></nvidia_smi_log>")


def test_csv():
    first, second = smi_csv.parse(form("smi_csv/595-units.csv"))
    assert (first.figure("power.draw"), first.figure("fan.speed")) == (441.2, 0)
    assert second.figure("power.draw") is None
    assert second.value("power.draw").absent == "trouble"
    assert second.value("fan.speed").absent == "not exposed"
    names = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
    assert first.value(*names).text == "0x0000000000000004"
    old = smi_csv.parse(form("smi_csv/515-nounits.csv"))
    assert old[0].value(*names).text == "0x0000000000000004"
    assert old[0].figure("power.draw") == 441.2
    _, app = smi_csv.parse(form("smi_csv/apps.csv"))
    assert (app.value("process_name").text, app.figure("used_gpu_memory")) == ("python train.py --sizes 1, 2, 3", 512)
    assert smi_csv.parse(form("smi_csv/nobody.csv")) == ()
    (bare,) = smi_csv.parse("0, 441.20 W\n", ["index", "power.draw [W]"])
    assert bare.figure("power.draw") == 441.2


@pytest.mark.parametrize(
    "text",
    ["", "Terminated\n", 'Field "power.drow" is not a valid field to query.\n', "index, index\n0, 0\n",
     "index, name\n0\n", "index, name\n0, A, B, C\nNVML: trouble\n", "power.draw [W]\n441 W\n"],
)  # fmt: skip
def test_what_is_no_table_of_cells(text):
    with pytest.raises(ParseError):
        smi_csv.parse(text)


def test_a_column_that_is_not_there_is_an_error():
    (row, *_) = smi_csv.parse(form("smi_csv/515-nounits.csv"))
    with pytest.raises(ParseError, match="no column"):
        row.figure("temperature.gpu")
    with pytest.raises(ParseError):
        row.figure("pci.bus_id")


def test_tables():
    burning = smi_table.parse(form("smi_table/515-burning.txt"))
    assert [(card.figures["draw_w"], card.figures["limit_w"], card.ecc) for card in burning.cards] == [
        (441, 480, "Off"), (439, 480, "Off")
    ]  # fmt: skip
    assert [(index, process.pid) for index, process in burning.processes] == [(0, 4021), (1, 4022)]
    fine, broken = smi_table.parse(form("smi_table/610-one-in-trouble.txt")).cards
    assert (fine.errors, broken.errors) == ((), ("fan_pct", "mig"))
    assert broken.absent == {"fan_pct": "ERR!", "draw_w": "N/A", "limit_w": "N/A", "util_pct": "N/A"}
    (sliced,) = smi_table.parse(form("smi_table/535-mig.txt")).cards
    assert (sliced.mig, sliced.errors) == ("Enabled", ())


def test_lists_and_versions():
    first, second = smi_short.parse_list(form("smi_list/mig.txt"))
    assert [one.profile for one in first.slices] == ["3g.40gb", "1g.10gb+me"]
    assert second.slices == ()
    assert smi_short.parse_list(form("smi_list/none.txt")) == ()
    moved = smi_short.parse_version(form("smi_version/610.txt"))
    assert (moved.driver, moved.cuda) == ("610.43.02", "13.3")
    with pytest.raises(ParseError):
        smi_short.parse_list(form("smi_list/two.txt") * 2)
    with pytest.raises(ParseError):
        smi_short.parse_version("DRIVER version : 515.105.01\n")


def test_matrices():
    pairs = topo.parse(form("topo_m/595-four-in-pairs.txt"))
    assert [pairs.nvlinks(0, 1), pairs.nvlinks(1, 2), pairs.nvlinks(2, 3)] == [4, 0, 4]
    assert pairs.numa == {0: 0, 1: 0, 2: 1, 3: 1}
    assert topo.parse_p2p(form("topo_p2p/chipset.txt")).relation(1, 2) == "TNS"
    assert topo.parse_p2p(form("topo_p2p/ok.txt")).relation(0, 1) == "OK"
    with pytest.raises(ParseError):
        topo.parse(form("topo_p2p/ok.txt"))
    with pytest.raises(ParseError, match="0-x"):
        topo.parse(form("topo_m/595-four-in-pairs.txt").replace("16-31,48-63", "0-x"))


def test_link_errors():
    first, second = nvlink.parse_errors(form("nvlink_e/515-crc.txt"))
    assert first.counters == {0: {"Replay Errors": 12, "Recovery Errors": 1, "CRC Errors": 871}}
    assert (second.counters, second.said) == ({}, "inactive")
    (newer,) = nvlink.parse_errors(form("nvlink_e/580-blackwell.txt"))
    assert newer.counters[0]["Rx Errors"] == 3
    assert newer.counters[0]["Link recovery failed events"] is None
    with pytest.raises(ParseError):
        nvlink.parse_errors(form("nvlink_e/515-crc.txt").replace("871", "many"))
    with pytest.raises(ParseError):  # found by fuzzing: two lines run into one, and the link became part of a name
        nvlink.parse_status("GPU 0: NVIDIA Link 2: <inactive> (UUID: GPU-1)\n")
    assert nvlink.parse_status("GPU 0: Orin (nvgpu) (UUID: 1833c8b5)\n")[0].name == "Orin (nvgpu)"
    first, second = nvlink.parse_status(form("nvlink_s/515-bridged.txt"))
    assert (len(first.active), len(second.active)) == (4, 3)
    with pytest.raises(ParseError):
        nvlink.parse_status(form("nvlink_s/515-bridged.txt").replace("Link 1:", "Link 0:", 1))


def test_dcgm():
    warned = dcgm.parse(form("dcgm/2-pass.json"))
    assert [(one.test, one.status, one.gpus) for one in warned.outcomes] == [
        ("Denylist", "pass", (0, 1)), ("Persistence Mode", "warn", (0, 1))
    ]  # fmt: skip
    failed = dcgm.parse(form("dcgm/3-fail.json"))
    assert [(one.status, one.gpus) for one in failed.outcomes] == [("pass", (0,)), ("fail", (1,))]
    assert failed.outcomes[1].warnings == ("GPU 1 returned wrong data 3 times.",)
    mixed = dcgm.parse(form("dcgm/4-hybrid.json"))
    assert mixed.version == "4.2.3"
    assert [(one.test, one.gpus) for one in mixed.ran] == [("software", (0,))]
    assert mixed.outcomes[-1].gpus == (), "a processor is no card"
    gave_up = dcgm.parse(form("dcgm/3-gave-up.json"))
    assert gave_up.runtime_error is not None
    assert gave_up.ran == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [('"Fail"', '"Splendid"'), ('"Fail"', "null"), ('"gpu_id": "1"', '"gpu_id": "one"'), ('"GPU Memory"', "7"),
     ('"results"', '"outcomes"'), ("DCGM Diagnostic", "Diagnostic"), ('"test_categories"', '"categories"'),
     ('"status": "Pass"', '"status": "Pass", "status": "Fail"')],
)  # fmt: skip
def test_a_diagnosis_of_another_form_is_an_error(old, new):
    text = form("dcgm/3-fail.json")
    assert old in text
    with pytest.raises(ParseError):
        dcgm.parse(text.replace(old, new))


def test_nvbandwidth():
    to_card, between, waived, failed = nvbandwidth.parse(form("nvbandwidth_json/0.6-two.json"))
    assert to_card.matrix == ((26.2214, 26.1187),)
    assert between.figures == (52.7712, 52.8906)
    assert (waived.status, failed.status, failed.error) == ("waived", "failed", "CUDA_ERROR_ECC_UNCORRECTABLE")
    _, pairs = nvbandwidth.parse_text(form("nvbandwidth_text/0.4-two.txt"))
    assert pairs.matrix == ((None, 52.77), (52.89, None))
    *_, broken = nvbandwidth.parse_text(form("nvbandwidth_text/0.7-waived-and-failed.txt"))
    assert (broken.name, broken.status) == ("host_to_device_memcpy_sm", "failed")
    running = form("nvbandwidth_json/0.6-two.json").replace('"Error"', '"Running"')
    assert nvbandwidth.parse(running)[-1].status == "failed"
    wrong = " Invalid value when checking the pattern at 0x7f1c00000000\n Current offset : 4096 \n"
    spoilt = nvbandwidth.parse(wrong + form("nvbandwidth_json/0.6-two.json"))[-1]
    assert (spoilt.status, spoilt.error) == ("failed", "Invalid value when checking the pattern at 0x7f1c00000000")
    (other,) = nvbandwidth.parse_text("nvbandwidth Version: v0.8\nrig1\nERROR: Testcase p2p not found!\n")
    assert (other.status, other.error) == ("failed", "ERROR: Testcase p2p not found!")


@pytest.mark.parametrize(
    ("old", "new"),
    [('"52.7712"', "52.7712"), ('"52.7712"', '"fast"'), ('"52.7712"', '"-1"'), ('"Passed"', '"Fine"'), ("GB/s", "B/s"),
     ('"N/A", "52.7712"', '"52.7712"')],
)  # fmt: skip
def test_a_bandwidth_of_another_form_is_an_error(old, new):
    text = form("nvbandwidth_json/0.6-two.json")
    assert old in text
    with pytest.raises(ParseError):
        nvbandwidth.parse(text.replace(old, new))


def test_nccl():
    good = nccl_tests.parse(form("nccl_text/2.18-allreduce.log"))
    assert (good.ranks, good.checked, good.wrong, good.trouble) == (2, True, 0, ())
    assert [size.size_bytes for size in good.sizes] == [33554432, 67108864]
    wrong = nccl_tests.parse(form("nccl_text/2.18-wrong.log"))
    assert (wrong.checked, wrong.wrong, wrong.out_of_bounds) == (True, 24, 24)
    unchecked = nccl_tests.parse(form("nccl_text/2.8-alltoall-unchecked.log"))
    assert (unchecked.checked, unchecked.sizes[0].out_of_place.algorithm_gb_per_s) == (False, 21.5)
    many = nccl_tests.parse(form("nccl_text/2.18-wrong.log").replace("    12", "1.2e+07", 1))
    assert many.wrong == 12_000_012
    failed = nccl_tests.parse(form("nccl_text/failed.log"))
    assert (failed.sizes, failed.checked, len(failed.trouble)) == ((), False, 2)
    assert nccl_tests.parse_json(form("nccl_json/2.17.json")).sizes[0].bus_gb_per_s == 42.5
    with pytest.raises(ParseError):
        nccl_tests.parse(form("nccl_text/2.18-wrong.log").replace("24 FAILED", "24 OK"))


def test_p2p():
    joined = p2p_bandwidth.parse(form("p2p_bandwidth/bridged.txt"))
    assert joined.can_access[0, 1]
    assert joined.bandwidth["one way", True][0][1] == 52.77
    assert joined.latency_us[True] == ((1.51, 1.32), (1.31, 1.52)), "the processor's own figures are another matrix"
    apart = p2p_bandwidth.parse(form("p2p_bandwidth/no-access.txt"))
    assert apart.can_access == {(0, 1): False, (1, 0): False}
    with pytest.raises(ParseError):
        p2p_bandwidth.parse(form("p2p_bandwidth/bridged.txt").rpartition("     1   ")[0])


def test_sensors():
    amd = sensors.parse_json(form("sensors_json/amd.json"))
    assert amd.processor_temp_c() == 61.5, "the disk is hotter and is no processor"
    assert sensors.parse_json(form("sensors_json/intel-two-packages.json")).processor_temp_c() == 53
    errors = sensors.parse_json(form("sensors_json/with-errors.json"))
    assert errors.processor_temp_c() == 44.125
    assert errors.unreadable == ("temp8_input", "nct6798-isa-0290 PCH_CHIP_TEMP")
    text = sensors.parse_text(form("sensors_text/amd.txt"))
    assert text.processor_temp_c() == 51.5, "Tctl may have an offset, Tdie has none"
    assert text.unreadable == ("nct6798-isa-0290 PCH_CHIP_TEMP",)
    assert sensors.parse_text(form("sensors_text/intel-ascii.txt")).processor_temp_c() == 49
    with pytest.raises(ParseError):
        sensors.parse_json(form("sensors_json/amd.json").replace("61.500", "6150.0")).processor_temp_c()
    with pytest.raises(ParseError):
        sensors.parse_text(form("sensors_text/amd.txt").replace("+51.5°C", "+124.7°F"))


def test_fio():
    (reader,) = fio.parse(form("fio/3.28-read.json")).jobs
    assert reader.read == fio.Transfer(3435973836, 3276.799238, 32768, 10.0, 0.643072)
    assert (reader.error, reader.write) == (0, None)
    full = fio.parse(form("fio/3.28-full-disk.json"))
    assert full.jobs[0].error == 28
    assert "No space left" in full.notes[0]
    broken = fio.parse(form("fio/3.28-bad-medium.json")).jobs[0]
    assert (broken.error, broken.read, broken.write) == (5, None, None)
    nothing = form("fio/3.28-bad-medium.json").replace('"error" : 5', '"error" : 0')
    with pytest.raises(ParseError, match="nothing was transferred"):
        fio.parse(nothing)
    with pytest.raises(ParseError):
        fio.parse(form("fio/3.28-read.json") * 2)


def test_nvme():
    well = nvme.parse_json(form("nvme_json/1.16.json"))
    assert (well.warnings, well.temp_c, well.spare_pct, well.media_errors) == ((), 38, 100, 0)
    assert well.written_bytes == 19397424 * 512_000
    for name, read in (("nvme_json/2-read-only.json", nvme.parse_json), ("nvme_text/2.txt", nvme.parse_text)):
        worn = read(form(name))
        assert worn.warnings == ("spare below threshold", "read only")
        assert worn.media_errors == 44
    assert nvme.parse_text(form("nvme_text/human.txt")).warnings == ("spare below threshold", "read only")
    assert nvme.parse_text(form("nvme_text/1.16.txt")).power_on_hours == 2011
    with pytest.raises(ParseError, match="no media_errors"):
        nvme.parse_text("\n".join(x for x in form("nvme_text/2.txt").splitlines() if "media" not in x))
    with pytest.raises(ParseError):
        nvme.parse_json(form("nvme_json/1.16.json").replace('"critical_warning":0', '"critical_warning":128'))


def test_lspci():
    _, card, sound = lspci.parse(form("lspci/nn.txt"))
    assert (card.is_gpu, card.vendor, card.device, card.name) == (
        True, "10de", "2203", "NVIDIA Corporation GA102 [GeForce RTX 3090 Ti]"
    )  # fmt: skip
    assert not sound.is_gpu
    (asleep,) = lspci.parse(form("lspci/vvv-asleep.txt"))
    assert asleep.link == lspci.Link(4, 16, "L0s L1", "L1 Enabled", 1, 16)
    (half,) = lspci.parse(form("lspci/vvv-half-wide.txt"))
    assert half.link is not None
    assert (half.link.width, half.link.aspm, half.errors) == (8, "not supported", ("corrected", "unsupported request"))
    (hidden,) = lspci.parse(form("lspci/v-not-root.txt"))
    assert (hidden.denied, hidden.link, hidden.errors) == (True, None, None)
    for old, new in (
        ("Width x8", "Width wide"),
        ("Speed 16GT/s (ok)", "Speed 17GT/s (ok)"),
        ("DevSta:\tCorr", "DevSta:\tX"),
    ):
        with pytest.raises(ParseError):
            lspci.parse(form("lspci/vvv-half-wide.txt").replace(old, new))


def test_numactl():
    nodes = numactl.parse(form("numactl/two-nodes.txt"))
    assert (nodes[0].cpus, nodes[1].cpus, nodes[1].distances) == ((0, 1, 2, 3), (), {0: 12, 1: 10})
    with pytest.raises(ParseError):
        numactl.parse(form("numactl/two-nodes.txt").partition("node distances")[0])


def test_packages_and_modules():
    driver, burner = apt.parse_policy(form("apt_policy/transitional-and-real.txt"))
    assert (driver.installed, driver.candidate) == (None, "525.147.05-0ubuntu2.22.04.1")
    assert (driver.offers or {})["515.105.01-0ubuntu0.22.04.1"] == ["file:/var/cache/debs ./ Packages"]
    assert burner.installed == "0.13.12-2ubuntu1"
    moved, real = apt.parse_search(form("apt_search/transitional.txt"))
    assert (moved.becomes, moved.installed, real.becomes, real.installed) == ("nvidia-driver-535", False, None, True)
    states = {package.name: package.installed for package in dpkg.parse_list(form("dpkg_list/whole.txt"))}
    assert states == {
        "nvidia-driver-515": True, "libnvidia-compute-515": True, "nvidia-dkms-510": False, "nvidia-dkms-515": False,
        "nvidia-driver": False,
    }  # fmt: skip
    assert kernel_module.parse_dkms(form("dkms/warning.txt"))[0].warning
    assert [build.state for build in kernel_module.parse_dkms(form("dkms/jammy.txt"))] == [
        "installed",
        "built",
        "added",
    ]
    assert kernel_module.parse_dkms("nvidia/515.105.01: broken\n")[0].module == "nvidia/515.105.01"
    assert not kernel_module.parse_loaded(form("loaded_module/closed.txt")).is_open
    assert not kernel_module.parse_secure_boot(form("secure_boot/bios.txt")).efi


def test_switches():
    assert switch.parse(form("sxid/fatal.txt")) == switch.SwitchXid(
        1, "0000:06:00.0", 20034, True, 48, "Fatal, Link 48 LTSSM Fault Up"
    )  # fmt: skip
    assert switch.parse("NVRM: Xid (PCI:0000:05:00): 79") is None
    with pytest.raises(ParseError):
        switch.parse("nvidia-nvswitch1: SXid (card 3): 20034, Fatal")


def test_meters():
    for name, read, power in (
        ("tasmota/status8.json", meters.tasmota, 1239), ("tasmota/old.json", meters.tasmota, 1239),
        ("shelly/gen2.json", meters.shelly, 1238.6), ("shelly/gen2-all.json", meters.shelly, 1238.6),
        ("shelly/gen1.json", meters.shelly, 1238.62),
    ):  # fmt: skip
        assert read(json.loads(form(name))).power_w == power
    assert meters.upsc(form("upsc/realpower.txt")).power_w == 1236
    assert meters.upsc(form("upsc/load.txt")) == (1245, 3)
    assert meters.dcmi(form("dcmi/activated.txt")).power_w == 1239
    assert meters.sensor_watts(form("sdr/elist.txt")) == {"PSU1 Power In": 640, "PSU2 Power In": 599}


@pytest.mark.parametrize(
    ("read", "answer"),
    [
        (meters.tasmota, {"StatusSNS": {"ENERGY": {"Power": -3}}}), (meters.tasmota, {"ENERGY": {"Power": 10**400}}),
        (meters.tasmota, {"ENERGY": {"Power": "1239"}}), (meters.tasmota, {"ENERGY": {"Power": True}}),
        (meters.tasmota, {"ENERGY": {"Power": float("nan")}}), (meters.tasmota, []), (meters.tasmota, {"StatusSNS": 3}),
        (meters.shelly, {"output": False, "apower": 0.0}), (meters.shelly, {"apower": 12.0}), (meters.shelly, []),
        (meters.shelly, {"output": True, "apower": None}),
        (meters.shelly, {"output": True, "apower": 5, "errors": ["overtemp"]}),
        (meters.shelly, {"meters": [{"power": 5, "is_valid": False}]}), (meters.shelly, {"meters": 3}),
        (meters.shelly, {"meters": [{"power": 5, "is_valid": True}], "relays": [{"ison": False}]}),
        (meters.upsc, ""), (meters.upsc, "Error: Data stale"), (meters.upsc, "ups.status: OL\nups.load: 40"),
        (meters.upsc, "ups.status: OL OFF\nups.realpower: 5"), (meters.upsc, "ups.status: OL\nups.realpower: ERR"),
        (meters.upsc, "ups.realpower: 5"), (meters.dcmi, ""), (meters.dcmi, "Error in response"),
        (meters.dcmi, "Instantaneous power reading: 0 Watts\nPower reading state is: activated"),
        (meters.dcmi, "Instantaneous power reading: 5 Watts\nPower reading state is: deactivated"),
        (meters.sensor_watts, "Could not open device"),
    ],
)  # fmt: skip
def test_what_is_no_power(read, answer):
    with pytest.raises(meters.MeterError):
        read(answer)
