"""What identifies a rig is read from trees as the kernel shows them under /sys."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from rigctl.agent import built_in, bus, dmi
from rigctl.model.reading import DiskFacts, MemoryModuleFacts, ModuleFacts, NetworkFacts, PlaceFacts

if TYPE_CHECKING:
    from pathlib import Path

CARD = "00000000:02:00.0"
ROOT = "0000:00:01.1"


def write(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def space(*, aspm: int = 0, acs: int | None = None) -> bytes:
    """A configuration space with the PCI Express capability at 0x60, and ACS behind another extended capability."""
    data = bytearray(4096)
    data[0x34] = 0x60
    data[0x60:0x62] = bytes((0x10, 0))
    data[0x70] = aspm
    data[0x100:0x104] = struct.pack("<I", 0x0001 | (0x140 << 20 if acs is not None else 0))
    if acs is not None:
        data[0x140:0x148] = struct.pack("<IHH", 0x000D, 0x00FF, acs)
    return bytes(data)


def card(sys: Path, chain: tuple[str, ...] = (ROOT, "0000:02:00.0"), *, of_port: bytes | None = None) -> Path:
    """A card below a chain of ports; returns its folder."""
    folder = sys / "devices/pci0000:00" / "/".join(chain)
    folder.mkdir(parents=True)
    write(folder / "numa_node", "-1\n")
    lines = ["0x00000000fb000000 0x00000000fbffffff 0x0000000000040200",
             "0x0000007800000000 0x0000007fffffffff 0x000000000014220c",
             "0x0000000000000000 0x0000000000000000 0x0000000000000000"]  # fmt: skip
    write(folder / "resource", "\n".join(lines) + "\n")
    write(folder / "config", space(aspm=2))
    port = sys / "devices/pci0000:00" / chain[0]
    write(port / "config", of_port if of_port is not None else space(acs=0))
    write(port / "firmware_node/path", "\\_SB_.PCI0.GPP0\n")
    link = sys / "bus/pci/devices" / chain[-1]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(folder)
    return folder


def place(sys: Path, bus_id: str = CARD) -> PlaceFacts:
    return PlaceFacts.model_validate({"uuid": "GPU-1", **bus.place(bus_id, sys)})


def test_a_cards_place_and_what_the_bios_made_of_it(tmp_path: Path) -> None:
    card(tmp_path)
    found = place(tmp_path)
    assert (found.root_port, found.root_path, found.below) == (ROOT, "\\_SB_.PCI0.GPP0", "00.0")
    assert (found.bar1_mib, found.above_4g, found.aspm) == (32768, True, "L1")
    assert (found.iommu, found.acs_redirect, found.label) == ("off", False, None)


def test_a_window_below_4_gib(tmp_path: Path) -> None:
    folder = card(tmp_path)
    write(folder / "resource", "0x0 0x0 0x0\n0x00000000d0000000 0x00000000dfffffff 0x000000000014220c\n")
    found = place(tmp_path)
    assert (found.bar1_mib, found.above_4g) == (256, False)


@pytest.mark.parametrize("text", ["", "0x0 0x0 0x0\n", "0x0 0x0 0x0\n0x0 0x0 0x0\n", "a\nb c\n", "x\n1 2 three\n"])
def test_a_window_that_is_not_there_or_makes_no_sense_is_none(tmp_path: Path, text: str) -> None:
    write(card(tmp_path) / "resource", text)
    found = place(tmp_path)
    assert (found.bar1_mib, found.above_4g) == (None, None)


def test_the_way_below_a_switch_has_no_bus_numbers(tmp_path: Path) -> None:
    chain = (ROOT, "0000:01:00.0", "0000:02:08.0", "0000:04:00.0")
    card(tmp_path, chain)
    assert place(tmp_path, "00000000:04:00.0").below == "00.0/08.0/00.0"


def test_a_virtual_machine_has_no_root_port(tmp_path: Path) -> None:
    folder = tmp_path / "devices/pci0000:00/0000:00:05.0"
    write(folder / "numa_node", "0")
    (tmp_path / "bus/pci/devices").mkdir(parents=True)
    (tmp_path / "bus/pci/devices/0000:00:05.0").symlink_to(folder)
    found = place(tmp_path, "00000000:00:05.0")
    assert found.listed
    assert (found.root_port, found.below, found.acs_redirect, found.aspm) == (None, None, None, None)


@pytest.mark.parametrize(
    ("of_port", "found"),
    [
        (space(acs=0x04), True),
        (space(acs=0x08), True),
        (space(acs=0x01), False),
        (space(), False),
        (space(acs=0x04)[:64], None),
        (b"", None),
    ],
    ids=["requests", "completions", "validation only", "no ACS", "read by no root", "empty"],
)
def test_whether_a_port_redirects(tmp_path: Path, of_port: bytes, found: bool | None) -> None:
    card(tmp_path, of_port=of_port)
    assert place(tmp_path).acs_redirect is found


def test_how_the_iommu_translates_for_a_card(tmp_path: Path) -> None:
    folder = card(tmp_path)
    write(tmp_path / "class/iommu/ivhd0/devices/x", "")
    assert place(tmp_path).iommu is None
    write(folder / "iommu_group/type", "DMA-FQ\n")
    assert place(tmp_path).iommu == "DMA-FQ"


def structure(kind: int, fields: dict[int, bytes], length: int, strings: tuple[str, ...] = ()) -> bytes:
    body = bytearray(length)
    body[0:2] = bytes((kind, length))
    for at, data in fields.items():
        body[at : at + len(data)] = data
    return bytes(body) + (b"".join(text.encode() + b"\0" for text in strings) or b"\0") + b"\0"


def memory(size: int, rated: int, runs_at: int, size_mib: int = 0, long_mt_per_s: int = 0) -> bytes:
    fields = {
        0x0C: struct.pack("<H", size), 0x10: b"\1", 0x15: struct.pack("<H", rated), 0x1A: b"\2",
        0x1C: struct.pack("<I", size_mib), 0x20: struct.pack("<H", runs_at),
        0x58: struct.pack("<I", long_mt_per_s),
    }  # fmt: skip
    return structure(17, fields, 0x5C, ("DIMM_A2", "Example-3600 "))


SLOT = structure(9, {0x04: b"\1", 0x0D: b"\0\0", 0x0F: b"\x02", 0x10: b"\x00"}, 0x11, ("PCIEX16_1",))
EMPTY_SLOT = structure(9, {0x04: b"\1", 0x0D: b"\0\0", 0x0F: b"\xff", 0x10: b"\xff"}, 0x11, ("PCIEX1_1",))
LAST = structure(127, {}, 4)


def test_memory_and_slots_from_the_firmwares_table(tmp_path: Path) -> None:
    card(tmp_path)
    table = (
        memory(16384, 3600, 2133)
        + memory(0, 0, 0)
        + memory(0x7FFF, 0xFFFF, 0xFFFF, size_mib=65536, long_mt_per_s=80000)
    )
    write(tmp_path / dmi.TABLE, table + EMPTY_SLOT + SLOT + LAST + memory(16384, 1, 1))
    assert place(tmp_path).label == "PCIEX16_1"
    found = [MemoryModuleFacts.model_validate(one) for one in dmi.memory_modules(dmi.read(tmp_path)) or ()]
    assert [(one.size_mib, one.rated_mt_per_s, one.set_mt_per_s) for one in found] == [
        (16384, 3600, 2133),
        (65536, None, 80000),
    ]
    assert (found[0].place, found[0].part) == ("DIMM_A2", "Example-3600")


@pytest.mark.parametrize("table", [b"", b"\x11", b"\x11\x00\0\0\0\0", b"\x11\x5c" + b"\1" * 20, memory(9, 1, 1)[:-2]])
def test_a_table_that_breaks_off_lists_nothing(tmp_path: Path, table: bytes) -> None:
    write(tmp_path / dmi.TABLE, table)
    assert dmi.memory_modules(dmi.read(tmp_path)) is None


def test_an_older_table_without_the_speed_it_runs_at(tmp_path: Path) -> None:
    old = structure(17, {0x0C: struct.pack("<H", 0x8000 | 2048), 0x15: struct.pack("<H", 1333)}, 0x1B)
    write(tmp_path / dmi.TABLE, old + LAST)
    (one,) = dmi.memory_modules(dmi.read(tmp_path)) or ()
    assert (one["size_mib"], one["rated_mt_per_s"], one["set_mt_per_s"]) == (2, 1333, None)


def test_the_kernels_own_list_of_slots_names_a_slot_that_the_table_does_not(tmp_path: Path) -> None:
    card(tmp_path)
    write(tmp_path / "bus/pci/slots/7/address", "0000:02:00\n")
    assert place(tmp_path).label == "7"


def test_modules_from_elsewhere_and_nouveau(tmp_path: Path) -> None:
    write(tmp_path / "module/nvidia/taint", "POE\n")
    write(tmp_path / "module/nvidia/version", "515.105.01\n")
    write(tmp_path / "module/ext4/taint", "\n")
    write(tmp_path / "module/nouveau/refcnt", "1\n")
    found = [ModuleFacts.model_validate(one) for one in built_in.modules(tmp_path) or ()]
    assert [(one.name, one.taint, one.version) for one in found] == [
        ("nouveau", "", None),
        ("nvidia", "POE", "515.105.01"),
    ]


def disk(sys: Path, name: str, below: str, *, removable: str = "0") -> None:
    folder = sys / "devices" / below / name
    write(folder / "size", "3907029168\n")
    write(folder / "removable", f"{removable}\n")
    if below != "virtual":
        write(folder / "device/model", "Example NVMe 2TB   \n")
        write(folder / "device/serial", "S1\n")
    (sys / "block").mkdir(exist_ok=True)
    (sys / "block" / name).symlink_to(folder)


def test_disks_that_are_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk(tmp_path, "nvme0n1", "pci0000:00/nvme0")
    disk(tmp_path, "sda", "pci0000:00/usb1/1-1")
    disk(tmp_path, "sdb", "pci0000:00/ata1", removable="1")
    disk(tmp_path, "loop0", "virtual")
    write(tmp_path / "class/nvme/nvme0/state", "live\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    (found,) = (DiskFacts.model_validate(one) for one in built_in.disks(tmp_path) or ())
    known = DiskFacts(name="nvme0n1", model="Example NVMe 2TB", serial="S1", size_gb=2000.4, state="live")
    assert found == known.model_copy(update={"smart_error": "nvme is not installed"})


def test_network_cards_and_none_that_only_exist_in_software(tmp_path: Path) -> None:
    write(tmp_path / "class/net/lo/address", "00:00:00:00:00:00\n")
    write(tmp_path / "class/net/eno1/address", "02:00:00:00:00:01\n")
    write(tmp_path / "class/net/eno1/device/vendor", "0x8086\n")
    write(tmp_path / "drivers/igc/bind", "")
    (tmp_path / "class/net/eno1/device/driver").symlink_to(tmp_path / "drivers/igc")
    (found,) = (NetworkFacts.model_validate(one) for one in built_in.network(tmp_path) or ())
    assert found == NetworkFacts(name="eno1", address="02:00:00:00:00:01", driver="igc")


def test_a_card_of_a_bond_is_known_by_its_own_address(tmp_path: Path) -> None:
    write(tmp_path / "class/net/eno1/address", "02:00:00:00:00:99\n")
    write(tmp_path / "class/net/eno1/bonding_slave/perm_hwaddr", "02:00:00:00:00:01\n")
    write(tmp_path / "class/net/eno1/device/vendor", "0x8086\n")
    assert [one["address"] for one in built_in.network(tmp_path) or ()] == ["02:00:00:00:00:01"]


def test_what_the_kernel_does_not_show_is_none_and_not_empty(tmp_path: Path) -> None:
    assert (built_in.modules(tmp_path), built_in.disks(tmp_path), built_in.network(tmp_path)) == (None, None, None)
    assert dmi.memory_modules(dmi.read(tmp_path)) is None
