"""The simulated rig's nvidia-smi is read by the parsers that read the real one, and says the same in every form."""

from __future__ import annotations

from rigctl.parse import nvlink, smi_csv, smi_report, smi_short, smi_table, topo

from .conftest import NEEDS_COMPILER, VERSION

pytestmark = NEEDS_COMPILER


def test_every_form_says_the_same(rig):
    report = smi_report.parse_xml(rig.smi("-q", "-x").stdout)
    table = smi_table.parse(rig.smi().stdout)
    listed = smi_short.parse_list(rig.smi("-L").stdout)
    asked = (
        "--query-gpu=index,uuid,name,pci.bus_id,driver_version,power.limit,memory.total,clocks_throttle_reasons.active"
    )
    rows = smi_csv.parse(rig.smi(asked, "--format=csv").stdout)
    assert report.driver == table.driver == VERSION
    assert report.attached == len(table.cards) == len(listed) == len(rows) == 2
    for card, cells, line, row in zip(report.cards, table.cards, listed, rows, strict=True):
        assert card.words["uuid"] == line.uuid == row.value("uuid").text
        assert card.words["name"] == line.name == row.value("name").text
        assert card.figures["power_limit_w"] == cells.figures["limit_w"] == row.figure("power.limit")
        assert card.figures["memory_total_mib"] == cells.figures["total_mib"] == row.figure("memory.total")
        assert (card.trouble, cells.errors) == ({}, ())
        assert "memory_temp_c" in card.not_exposed


def test_links_in_both_words(rig):
    cards = nvlink.parse_status(rig.smi("nvlink", "-s").stdout)
    assert [len(card.active) for card in cards] == [4, 4]
    assert topo.parse(rig.smi("topo", "-m").stdout).nvlinks(0, 1) == 4
