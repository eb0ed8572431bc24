"""Identity is compared with the accepted run: what was swapped, moved, flashed, reset or loaded is named."""

from __future__ import annotations

import pytest

from rigctl.checks import identity, machine
from rigctl.model.reading import DiskFacts, MemoryModuleFacts, ModuleFacts, NetworkFacts
from rigctl.model.spec import SettingsSpec
from rigctl.model.verdict import Verdict

from . import healthy as h
from .test_causes import bad, causes
from .test_healthy import all_verdicts

OTHER = "GPU-0b5e1d00-0000-4000-8000-00000000beef"


def rig(**changes):
    return h.readings(facts=h.facts(**changes))


def cards_of(readings, baseline=None):
    return {v.subject: v for v in identity.known_cards(h.spec(), readings, baseline or h.baseline())}


def only(verdicts):
    (verdict,) = verdicts
    return verdict


def with_settings(**asked):
    return h.spec(settings=SettingsSpec(**asked))


def places(**changes):
    return tuple(h.place(i, **changes) for i in range(2))


def memory(speed):
    return tuple(one.model_copy(update={"set_mt_per_s": speed}) for one in h.facts().memory_modules)


def test_the_accepted_rig_passes_every_check_of_identity():
    verdicts = [v for v in all_verdicts(baseline=h.baseline()) if v.check.startswith("identity.")]
    assert len(verdicts) == 7
    assert {v.verdict for v in verdicts} == {Verdict.PASS}


def test_a_first_acceptance_has_nothing_to_compare_with_and_says_so():
    said = [v for v in all_verdicts() if v.check.startswith("identity.") and v.check != "identity.modules"]
    assert {v.verdict for v in said} == {Verdict.SKIP}
    assert all("first acceptance" in v.reason for v in said)


def test_a_swapped_card_is_named_with_the_one_that_was_there():
    card = h.gpu(1, uuid=OTHER)
    readings = rig(gpus=(h.gpu(0), card), places=(h.place(0), h.place(1, uuid=OTHER)))
    said = cards_of(readings)
    assert said[h.SLOT1].verdict is Verdict.PASS
    swapped = said[card.subject]
    assert swapped.verdict is Verdict.FAIL
    assert swapped.reason.startswith("swapped")
    assert h.UUIDS[1] in swapped.reason
    assert (swapped.expected, swapped.found) == (h.UUIDS[1], OTHER)
    assert "rigctl baseline accept RUN rig1" in swapped.fix


def test_two_cards_that_changed_places_have_both_moved():
    exchanged = (h.place(0, uuid=h.UUIDS[1]), h.place(1, uuid=h.UUIDS[0]))
    said = cards_of(rig(places=exchanged))
    assert {v.verdict for v in said.values()} == {Verdict.FAIL}
    assert all(v.reason.startswith("moved") for v in said.values())
    assert "PCIEX16_2" in said[h.SLOT1].found


def test_a_bus_number_that_shifted_because_a_disk_was_added_is_no_move():
    disk = DiskFacts(name="nvme1n1", model="Example NVMe 4TB", serial="S2", size_gb=4000.8)
    readings = rig(
        gpus=(h.gpu(0), h.gpu(1, pci_bus_id="00000000:03:00.0")),
        places=(h.place(0), h.place(1, pci_address="0000:03:00.0")),
        disks=(*h.facts().disks, disk),
    )
    verdicts = [v for v in all_verdicts(readings=readings, baseline=h.baseline()) if v.check.startswith("identity.")]
    assert {v.verdict for v in verdicts} == {Verdict.PASS}
    reasons = " ".join(v.reason for v in verdicts)
    assert "bus number shifted from" in reasons
    assert "disk Example NVMe 4TB added" in reasons


def test_the_firmwares_name_of_the_port_counts_before_its_address():
    shifted = places()
    shifted = tuple(one.model_copy(update={"root_port": f"0000:4{i}:01.1"}) for i, one in enumerate(shifted))
    assert {v.verdict for v in cards_of(rig(places=shifted)).values()} == {Verdict.PASS}
    unnamed = tuple(one.model_copy(update={"root_path": None}) for one in shifted)
    assert {v.verdict for v in cards_of(rig(places=unnamed)).values()} == {Verdict.FAIL}


def test_below_a_switch_the_port_of_the_switch_counts():
    behind = h.place(0, root_port="0000:00:01.1", root_path=None, below="00.0/08.0/00.0")
    other = behind.model_copy(update={"below": "00.0/10.0/00.0"})
    assert identity.same_place(behind, behind) is True
    assert identity.same_place(behind, other) is False


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"places": ()}, Verdict.ERROR),
        ({"places": places(listed=False)}, Verdict.ERROR),
        ({"places": places(root_port=None, below=None)}, Verdict.BLIND),
        ({"gpus": (h.gpu(0), h.gpu(1, uuid=h.UUIDS[0]))}, Verdict.ERROR),
        ({"gpus": (h.gpu(0, uuid=""), h.gpu(1, uuid=""))}, Verdict.ERROR),
        ({"gpus": ()}, Verdict.ERROR),
    ],
    ids=["no places", "not listed", "virtual machine", "one UUID twice", "no UUID", "no card"],
)
def test_cards_that_cannot_be_told_apart_or_found_never_pass(changes, verdict):
    assert {v.verdict for v in cards_of(rig(**changes)).values()} == {verdict}


def test_a_card_that_is_gone_is_said_beside_the_one_that_stays():
    said = cards_of(rig(gpus=(h.gpu(0),), places=(h.place(0),)))
    assert [v.verdict for v in said.values()] == [Verdict.PASS, Verdict.ERROR]


def test_another_model_is_one_cause():
    card = h.gpu(1, uuid=OTHER, name="NVIDIA GeForce RTX 3090", vbios="94.02.26.00.01", compute_capability="8.0")
    readings = rig(gpus=(h.gpu(0), card), places=(h.place(0), h.place(1, uuid=OTHER, bar1_mib=256)))
    found = all_verdicts(readings=readings, baseline=h.baseline())
    assert f"topology.gpu_model[{card.subject}]" in causes(found)
    assert bad(found)[f"identity.cards[{card.subject}]"].caused_by == f"topology.gpu_model[{card.subject}]"
    assert bad(found)["software.gpu_burn_build[rig]"].caused_by == f"topology.gpu_model[{card.subject}]"
    assert "identity.settings[rig]" not in bad(found)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vbios": "94.02.A0.00.63"}, "VBIOS 94.02.A0.00.5C → 94.02.A0.00.63"),
        ({"power_max_w": 450.0}, "100 to 480 W → 100 to 450 W"),
        ({"power_min_w": 150.0}, "100 to 480 W → 150 to 480 W"),
    ],
)
def test_changed_firmware_is_named(changes, words):
    readings = rig(gpus=(h.gpu(0), h.gpu(1, **changes)))
    said = {v.subject: v for v in identity.card_firmware(h.spec(), readings, h.baseline())}
    assert said[h.SLOT1].verdict is Verdict.PASS
    assert said[h.SLOT2].verdict is Verdict.FAIL
    assert words in said[h.SLOT2].reason


def test_the_specs_vbios_counts_at_a_first_acceptance_too():
    asked = with_settings(gpu_vbios=("94.02.A0.00.5C",))
    assert {v.verdict for v in identity.card_firmware(asked, h.readings(), None)} == {Verdict.PASS}
    asked = with_settings(gpu_vbios=("94.02.A0.00.63", "94.02.A0.00.64"))
    said = identity.card_firmware(asked, h.readings(), None)
    assert {v.verdict for v in said} == {Verdict.FAIL}
    assert said[0].expected == "94.02.A0.00.63 or 94.02.A0.00.64"
    assert "settings.gpu_vbios" in said[0].source


def test_a_vbios_that_is_not_told_is_an_error():
    readings = rig(gpus=(h.gpu(0, vbios=None, missing={"vbios": "Unknown Error"}), h.gpu(1)))
    assert [v.verdict for v in identity.card_firmware(h.spec(), readings, h.baseline())] == [
        Verdict.ERROR,
        Verdict.PASS,
    ]


def test_bios_defaults_are_one_cause_for_all_that_they_change():
    reset = places(bar1_mib=256, above_4g=False, aspm="L1", iommu="DMA-FQ", acs_redirect=True)
    slow = h.with_gpu_samples(lambda _card, _sample: {"pcie_gen": 3})
    readings = h.readings(
        facts=h.facts(
            places=reset,
            memory_modules=memory(2133),
            pairs=(h.facts().pairs[0].model_copy(update={"read": "CNS", "write": "CNS"}),),
        ),
        samples=slow,
    )
    found = all_verdicts(readings=readings, baseline=h.baseline())
    assert causes(found) == ["identity.settings[rig]"]
    said = bad(found)["identity.settings[rig]"]
    assert said.reason.startswith("BIOS defaults returned: ")
    for words in (
        "BAR1 MiB 32768 → 256",
        "Above 4G decoding on → off",
        "ASPM off → on",
        "IOMMU off → on",
        "ACS redirect off → on",
        "memory MT/s 3600 → 2133",
    ):
        assert words in said.reason
    assert len(bad(found)) >= 4
    assert "battery" in said.fix


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"places": places(bar1_mib=256)}, "BAR1 MiB 32768 → 256"),
        ({"places": (h.place(0), h.place(1, above_4g=False))}, "Above 4G decoding on → off"),
        ({"places": (h.place(0), h.place(1, aspm="L0s"))}, "ASPM off → on"),
        ({"places": (h.place(0), h.place(1, iommu="identity"))}, "IOMMU off → on"),
        ({"places": (h.place(0), h.place(1, acs_redirect=True))}, "ACS redirect off → on"),
        ({"memory_modules": memory(2133)}, "memory MT/s 3600 → 2133"),
        ({"cpu_threads": 12}, "CPU threads 24 → 12"),
        ({"numa_nodes": (0, 1)}, "NUMA nodes 1 → 2"),
    ],
)
def test_one_setting_that_changed_is_named_by_itself(changes, words):
    said = only(machine.settings(h.spec(), rig(**changes), h.baseline()))
    assert said.verdict is Verdict.FAIL
    assert said.reason == f"a BIOS setting changed: {words}"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"min_bar1_mib": 32769}, "BAR1 MiB 32769 → 32768"),
        ({"above_4g": False}, "Above 4G decoding off → on"),
        ({"aspm": True}, "ASPM on → off"),
        ({"iommu": True}, "IOMMU on → off"),
        ({"acs_redirect": True}, "ACS redirect on → off"),
        ({"min_memory_mt_per_s": 3601}, "memory MT/s 3601 → 3600"),
    ],
)
def test_the_spec_counts_before_what_was_accepted(asked, words):
    for baseline in (None, h.baseline()):
        said = only(machine.settings(with_settings(**asked), h.readings(), baseline))
        assert said.verdict is Verdict.FAIL
        assert words in said.reason
        assert f"settings.{next(iter(asked))}" in said.source


def test_what_the_spec_asks_for_exactly_passes():
    asked = with_settings(
        min_bar1_mib=32768, above_4g=True, aspm=False, iommu=False, acs_redirect=False, min_memory_mt_per_s=3600
    )
    said = only(machine.settings(asked, h.readings(), None))
    assert said.verdict is Verdict.PASS
    assert "memory MT/s 3600" in said.reason


@pytest.mark.parametrize(
    "changes", [{"memory_modules": None}, {"places": places(bar1_mib=None)}, {"places": places(aspm=None)}]
)
def test_a_setting_that_cannot_be_read_any_more_is_an_error(changes):
    assert only(machine.settings(h.spec(), rig(**changes), h.baseline())).verdict is Verdict.ERROR


def test_a_setting_that_no_accepted_run_could_read_is_not_compared():
    was = h.baseline(memory_modules=None, places=())
    said = only(machine.settings(h.spec(), h.readings(), was))
    assert said.verdict is Verdict.PASS
    assert "memory" not in said.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"board_name": "Example B650"}, "board Example X670 → Example B650"),
        ({"board_serial": "B0099"}, "board serial B0042 → B0099"),
        ({"cpu_model": "Example CPU 8-Core"}, "processor Example CPU 12-Core → Example CPU 8-Core"),
        ({"disks": ()}, "disk Example NVMe 2TB gone"),
        ({"network": ()}, "network card eno1 02:00:00:00:00:01 gone"),
        ({"memory_modules": h.facts().memory_modules[:1]}, "memory 65536 → 32768 MiB, gone from DIMM_B2"),
    ],
)
def test_a_part_that_is_gone_or_another_one_is_named(changes, words):
    said = only(machine.machine(rig(**changes), h.baseline()))
    assert said.verdict is Verdict.FAIL
    assert words in said.reason


@pytest.mark.parametrize(("mib", "verdict"), [(31_900, Verdict.FAIL), (64_100, Verdict.PASS)])
def test_without_the_firmwares_list_the_kernels_memory_counts(mib, verdict):
    was = h.baseline(memory_modules=None)
    assert only(machine.machine(rig(memory_modules=None, memory_mib=mib), was)).verdict is verdict


def test_more_of_something_is_no_finding():
    more = MemoryModuleFacts(place="DIMM_A1", size_mib=32_768, set_mt_per_s=3600)
    card = NetworkFacts(name="enp5s0", address="02:00:00:00:00:02")
    facts = h.facts()
    readings = rig(memory_modules=(*facts.memory_modules, more), network=(*facts.network, card))
    said = only(machine.machine(readings, h.baseline()))
    assert said.verdict is Verdict.PASS
    assert "network card enp5s0 added" in said.reason


def test_a_disk_that_only_changed_its_name_is_the_same_disk():
    renamed = tuple(one.model_copy(update={"name": "nvme1n1"}) for one in h.facts().disks)
    assert only(machine.machine(rig(disks=renamed), h.baseline())).found == "as accepted"


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"bios_version": "4.30"}, "BIOS 4.20 → 4.30"), ({"kernel": "5.15.0-102-generic"}, "kernel 5.15.0-101-generic →")],
)
def test_another_version_of_bios_or_kernel_is_said(changes, words):
    said = only(machine.machine(rig(**changes), h.baseline()))
    assert said.verdict is Verdict.WARN
    assert words in said.reason


@pytest.mark.parametrize("changes", [{"disks": None}, {"network": None}, {"memory_modules": None}, {"cpu_model": ""}])
def test_parts_that_cannot_be_read_any_more_are_an_error(changes):
    assert only(machine.machine(rig(**changes), h.baseline())).verdict is Verdict.ERROR


FOREIGN = ModuleFacts(name="v4l2loopback", taint="OE")


def loaded(*extra):
    return rig(modules=(*h.facts().modules, *extra))


def test_a_foreign_module_fails_against_an_accepted_run_and_against_a_spec():
    for spec, baseline in ((h.spec(), h.baseline()), (with_settings(allowed_modules=("zfs",)), None)):
        said = only(identity.modules(spec, loaded(FOREIGN), baseline))
        assert said.verdict is Verdict.FAIL
        assert said.reason == "foreign kernel modules: v4l2loopback (out of tree, unsigned)"
        assert "modprobe -r v4l2loopback" in said.fix


def test_nouveau_is_foreign_although_it_is_the_kernels_own():
    said = only(identity.modules(h.spec(), loaded(ModuleFacts(name="nouveau", taint="")), h.baseline()))
    assert said.verdict is Verdict.FAIL


def test_a_foreign_module_at_a_first_acceptance_is_said_and_then_known():
    assert only(identity.modules(h.spec(), loaded(FOREIGN), None)).verdict is Verdict.WARN
    known = h.baseline(modules=(*h.facts().modules, FOREIGN))
    assert only(identity.modules(h.spec(), loaded(FOREIGN), known)).verdict is Verdict.PASS


def test_an_allowed_module_passes_and_one_that_the_spec_leaves_out_fails_although_it_was_accepted():
    known = h.baseline(modules=(*h.facts().modules, FOREIGN))
    allowed = with_settings(allowed_modules=("v4l2loopback",))
    assert only(identity.modules(allowed, loaded(FOREIGN), None)).verdict is Verdict.PASS
    assert only(identity.modules(with_settings(allowed_modules=()), loaded(FOREIGN), known)).verdict is Verdict.FAIL


def test_modules_that_were_not_read_are_an_error():
    assert only(identity.modules(h.spec(), rig(modules=None), h.baseline())).verdict is Verdict.ERROR
