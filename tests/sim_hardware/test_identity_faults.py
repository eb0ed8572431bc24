"""What people and firmware change on a simulated rig is seen by the agent's own readers and named by the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.agent import built_in, bus
from rigctl.checks import identity, machine, topology
from rigctl.model.reading import ModuleFacts, PlaceFacts
from rigctl.model.verdict import Verdict
from rigctl.sim.machine.hardware.rigsim.changes import IDENTITY_FAULTS
from rigctl.sim.machine.hardware.rigsim.faults import new_fault, write_book
from tests.checks import healthy as h

from .conftest import state_of

if TYPE_CHECKING:
    from rigctl.model.reading import Facts
    from rigctl.model.verdict import CheckVerdict
    from rigctl.sim.machine.hardware.rigsim.daemon import Daemon


def facts_of(daemon: Daemon) -> Facts:
    """What the agent reads of the rig as it is shown now."""
    state, sys = state_of(daemon), daemon.paths.sys
    gpus = []
    for i in range(int(state["gpu.count"])):
        told = {key: state[f"gpu.{i}.{key}"] for key in ("uuid", "pci_bus_id", "name", "vbios")}
        gpus.append(h.gpu(i, **told, power_max_w=int(state[f"gpu.{i}.power_max_mw"]) / 1000))
    places = tuple(PlaceFacts.model_validate({"uuid": gpu.uuid, **bus.place(gpu.pci_bus_id, sys)}) for gpu in gpus)
    modules = tuple(ModuleFacts.model_validate(one) for one in built_in.modules(sys) or ())
    return h.facts(gpus=tuple(gpus), places=places, modules=modules)


def judged(facts: Facts, accepted: Facts) -> list[CheckVerdict]:
    readings, baseline = h.readings(facts=facts), h.baseline().model_copy(update={"facts": accepted})
    spec = h.spec(parts={"gpu_model": accepted.gpus[0].name})
    return [
        *machine.settings(spec, readings, baseline),
        *machine.machine(readings, baseline),
        *identity.modules(spec, readings, baseline),
        *topology.gpu_model(spec, readings),
        *identity.known_cards(spec, readings, baseline),
        *identity.card_firmware(spec, readings, baseline),
    ]


def apply(daemon: Daemon, name: str | None) -> None:
    write_book(daemon.paths.faults, [new_fault(name, {}, "now", "boot")] if name else [])
    daemon.tick(0.1)


@pytest.mark.parametrize(("name", "found_by"), [(name, found_by) for name, _, found_by, _ in IDENTITY_FAULTS])
def test_each_fault_is_named_by_its_check_and_goes_away(daemon: Daemon, name: str, found_by: tuple[str, ...]) -> None:
    accepted = facts_of(daemon)
    assert all(place.root_port and place.bar1_mib and place.above_4g for place in accepted.places)
    assert {v.verdict for v in judged(accepted, accepted)} == {Verdict.PASS}
    apply(daemon, name)
    found = [v for v in judged(facts_of(daemon), accepted) if v.verdict is not Verdict.PASS]
    assert set(found_by) <= {v.check for v in found if v.verdict is Verdict.FAIL}
    follows = {"identity.cards", "identity.card_firmware"} if name in ("wrong_card", "card_swapped") else set()
    assert {v.check for v in found} <= {*found_by, *follows}
    apply(daemon, None)
    assert facts_of(daemon) == accepted


def test_each_fault_in_its_words(daemon: Daemon) -> None:
    accepted = facts_of(daemon)
    said = {}
    for name, *_ in IDENTITY_FAULTS:
        apply(daemon, name)
        said[name] = " ".join(v.reason for v in judged(facts_of(daemon), accepted))
    assert "swapped" in said["card_swapped"]
    assert said["card_moved"].count("moved: ") == 2
    assert "RTX 3080 instead of" in said["wrong_card"]
    assert "VBIOS 94.02.A0.00.63 → 94.02.A0.00.FE" in said["vbios_changed"]
    assert "BIOS defaults returned: Above 4G decoding on → off; ASPM off → on" in said["bios_defaults"]
    assert "rgb_fans (out of tree, unsigned)" in said["foreign_module"]
    assert said["nvme_added"].count("bus number shifted") == 2
