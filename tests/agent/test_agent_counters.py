"""Counters of links and bus: read from NVML and from a kernel's tree, in time or not at all."""

from __future__ import annotations

import time

import pynvml
import pytest

from rigctl.agent import bus, counters, nvml
from rigctl.model.reading import Counters

CARD, PORT, SWITCH = "0000:22:00.0", "0000:00:01.1", "0000:20:00.0"
BUS_ID = "00000000:22:00.0"
ZERO = "RxErr 0\nBadTLP 0\nTOTAL_ERR_COR 0\n"
WORSE = "DLP 0\nTOTAL_ERR_FATAL 0\n"


@pytest.fixture
def tree(tmp_path):
    """A card behind a switch below a root port, all with AER, which the kernel handles."""
    folder = tmp_path / "devices/pci0000:00" / PORT / SWITCH / CARD
    folder.mkdir(parents=True)
    devices = tmp_path / "bus/pci/devices"
    devices.mkdir(parents=True)
    for device in (folder, folder.parent, folder.parent.parent):
        (devices / device.name).symlink_to(device)
        (device / "aer_dev_correctable").write_text(ZERO)
        (device / "aer_dev_nonfatal").write_text(WORSE)
        (device / "aer_dev_fatal").write_text(WORSE)
    (folder / "numa_node").write_text("1\n")
    (tmp_path / "bus/pci_express/drivers/aer" / f"{PORT}:pcie002").mkdir(parents=True)
    return tmp_path


def space(control: int) -> bytes:
    """A configuration space whose PCI Express capability follows another one."""
    data = bytearray(256)
    data[0x34], data[0x60], data[0x61], data[0x78], data[0x80] = 0x60, 0x01, 0x78, 0x10, control
    return bytes(data)


def test_card_and_ports_are_read_apart(tree):
    (tree / "bus/pci/devices" / PORT / "aer_dev_correctable").write_text("RxErr 0\nBadTLP 7\nTOTAL_ERR_COR 7\n")
    found = bus.errors_of(BUS_ID, tree)
    assert found["card"]["counts"]["correctable"] == {"RxErr": 0, "BadTLP": 0}
    assert [port["address"] for port in found["ports"]] == [PORT, SWITCH]
    assert found["ports"][0]["counts"]["correctable"]["BadTLP"] == 7
    assert found["ports"][0]["counts"]["fatal"] == {"DLP": 0}


def test_aer_that_the_firmware_keeps_to_itself_is_blind_whatever_the_files_say(tree):
    (tree / "bus/pci_express/drivers/aer" / f"{PORT}:pcie002").rmdir()
    found = bus.errors_of(BUS_ID, tree)
    assert "firmware's own" in found["card"]["blind"]
    assert all("firmware's own" in port["blind"] and "counts" not in port for port in found["ports"])


def test_a_kernel_without_aer_is_blind(tree):
    (tree / "bus/pci_express/drivers/aer" / f"{PORT}:pcie002").rmdir()
    (tree / "bus/pci_express/drivers/aer").rmdir()
    assert "pci=noaer" in bus.errors_of(BUS_ID, tree)["card"]["blind"]


def test_a_card_that_is_told_not_to_report_is_blind_and_its_ports_are_not(tree):
    config = tree / "bus/pci/devices" / CARD / "config"
    config.write_bytes(space(0x00))
    found = bus.errors_of(BUS_ID, tree)
    assert "Device Control" in found["card"]["blind"]
    assert "counts" in found["ports"][0]
    config.write_bytes(space(0x0F))
    assert "counts" in bus.errors_of(BUS_ID, tree)["card"]


def test_a_device_without_the_files_has_no_aer_and_a_broken_file_is_an_error(tree):
    card = tree / "bus/pci/devices" / CARD
    (card / "aer_dev_fatal").write_text("what is this\n")
    assert "cannot be read" in bus.errors_of(BUS_ID, tree)["card"]["error"]
    (card / "aer_dev_correctable").unlink()
    assert "has no AER" in bus.errors_of(BUS_ID, tree)["card"]["blind"]


def test_a_card_that_the_kernel_does_not_list_is_an_error(tree):
    found = bus.errors_of("00000000:41:00.0", tree)
    assert "0000:41:00.0" in found["card"]["error"]
    assert found["ports"] == []


def test_where_a_card_hangs(tree):
    place = bus.place(BUS_ID, tree)
    assert (place["pci_address"], place["numa_node"], place["root_port"], place["listed"]) == (CARD, 1, PORT, True)
    (tree / "bus/pci/devices" / CARD / "numa_node").write_text("-1\n")
    assert bus.place(BUS_ID, tree)["numa_node"] is None
    assert not bus.place("00000000:41:00.0", tree)["listed"]


@pytest.mark.parametrize(("text", "nodes"), [("0\n", [0]), ("0-1\n", [0, 1]), ("0,2-3\n", [0, 2, 3]), ("", [])])
def test_numa_nodes(tmp_path, text, nodes):
    online = tmp_path / "devices/system/node/online"
    online.parent.mkdir(parents=True)
    online.write_text(text)
    assert bus.numa_nodes(tmp_path) == nodes
    assert bus.numa_nodes(tmp_path / "nowhere") == []


class Counting:
    """NVML's calls of one card with two links."""

    def __init__(self, monkeypatch):
        monkeypatch.setattr(pynvml, "nvmlDeviceGetNvLinkState", self.state)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetNvLinkErrorCounter", self.errors)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetPcieReplayCounter", lambda _handle: 4)
        monkeypatch.setattr(bus, "errors_of", lambda _bus_id: {"card": {"blind": "none"}, "ports": []})

    def state(self, _handle, link):
        if link > 2:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return int(link != 1)

    def errors(self, _handle, link, which):
        if which == pynvml.NVML_NVLINK_ERROR_DL_CRC_DATA:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return 10 * link + which


def test_links_that_are_up_are_counted_and_what_is_not_exposed_is_missing(monkeypatch):
    Counting(monkeypatch)
    told = counters._card(nvml.Card("h", 0, 1, "GPU-a", BUS_ID, None))
    assert told["links"] == [
        {"link": 0, "replay": 0, "recovery": 1, "crc_flit": 2, "crc_data": None},
        {"link": 2, "replay": 20, "recovery": 21, "crc_flit": 22, "crc_data": None},
    ]
    assert told["pcie_replays"] == 4
    assert "link0.crc_data" in told["missing"]


def test_a_line_is_what_the_reader_expects(monkeypatch):
    Counting(monkeypatch)
    card = counters._card(nvml.Card("h", 0, 1, "GPU-a", BUS_ID, None))
    line = counters.in_time("before", lambda: None, lambda: {"error": None, "cards": [card]})
    read = Counters.model_validate(line)
    assert (read.when, read.cards[0].links[1].replay, read.cards[0].aer.card.blind) == ("before", 20, "none")


def test_a_driver_that_does_not_answer_holds_nobody():
    waited = []
    begun = time.monotonic()
    line = counters.in_time("after", lambda: waited.append(1), lambda: time.sleep(30) or {}, limit_s=0.2)
    assert time.monotonic() - begun < 5
    assert waited
    assert (line["error"], line["cards"]) == ("the driver did not answer within 0.2 s", [])


def test_a_fault_while_counting_is_told():
    def breaks():
        raise ValueError("nonsense")

    assert "nonsense" in counters.in_time("after", lambda: None, breaks)["error"]
