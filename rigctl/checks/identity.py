"""Identity: the rig is still the one that was accepted: the same cards in the same slots with the same firmware.

A card is known by its UUID and its place by the root port and the way down from it, never by its bus number: that
shifts when a disk is added. What differs from the newest accepted run fails until a person accepts it: the
history by which all else is judged belongs to those cards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks.cards import FACTS_FIX, cards, each_card, why_no_card
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Facts, GpuFacts, ModuleFacts, PlaceFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

FIRST = "the rig's first acceptance: there is no accepted run to compare with"
OURS = frozenset(
    {"nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem", "nvidia_fs", "gdrdrv", "nvidia_cspmu"}
)
"""Modules that NVIDIA ships for its cards (docs.nvidia.com: driver, GPUDirect RDMA, GPUDirect Storage, GDRCopy)."""
TAINTS = {"P": "proprietary", "O": "out of tree", "E": "unsigned", "F": "forced", "C": "staging"}
"""Source: the kernel's Documentation/admin-guide/tainted-kernels."""


def accept_fix(rig: str) -> str:
    """Say how a person accepts that a rig is another one now."""
    return f'or accept it: `rigctl baseline accept RUN {rig} --reason "…"` with the id of this run'


def against(baseline: Baseline | None) -> str:
    """Name the accepted run that is compared with."""
    return f"the rig's accepted run {baseline.run_id}" if baseline is not None else ""


def known_cards(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Each card is the one that sat in its place at the newest accepted run."""
    say = Say("identity.cards", source=against(baseline))
    present = cards(readings)
    if not present or readings.facts is None:
        return [say.error(*why_no_card(readings))]
    twice = _seen_twice(present)
    places = _places(readings.facts)
    was = _places(baseline.facts) if baseline is not None else {}

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        if gpu.uuid in twice or not gpu.uuid:
            reason = f"two cards say that they are {gpu.uuid}" if gpu.uuid else "the card does not tell its UUID"
            return say.error(reason, f"run `nvidia-smi -L` on {readings.rig}; cold boot it")
        if baseline is None:
            return say.skipped(FIRST)
        return _same_card(say, readings, baseline, gpu, (places, was))

    return each_card(say, spec, readings, judge)


def _same_card(
    say: Say,
    readings: Readings,
    baseline: Baseline,
    gpu: GpuFacts,
    where: tuple[dict[str, PlaceFacts], dict[str, PlaceFacts]],
) -> CheckVerdict:
    places, was = where
    now = places.get(gpu.uuid)
    accept = accept_fix(readings.rig)
    before = next((one for one in baseline.facts.gpus if one.uuid == gpu.uuid), None)
    if before is None:
        left = _who_sat_there(now, baseline, was, {one.uuid for one in cards(readings)})
        gone = f"; until then {left.name} {left.uuid} was in its place" if left is not None else ""
        reason = f"swapped: {gpu.name} {gpu.uuid} was not in the rig at its accepted run {baseline.run_id}{gone}"
        return say.of(say.subject, left.uuid if left is not None else None).failed(
            reason, gpu.uuid, f"find out who changed the card and why; put the old one back, {accept}"
        )
    then = was.get(gpu.uuid)
    if now is None or not now.listed:
        return say.error("the kernel does not show the card's place", f"lspci -vv -d 10de: on {readings.rig}")
    if then is None or same_place(now, then) is None:
        return say.blind("the same card; where it sits is not shown: no root port, as in a virtual machine")
    if not same_place(now, then):
        reason = f"moved: it sits in {_words(now)}, at the accepted run {baseline.run_id} it sat in {_words(then)}"
        return say.of(say.subject, _words(then)).failed(reason, _words(now), f"put it back into its slot, {accept}")
    shifted = "" if now.pci_address == then.pci_address else f"; its bus number shifted from {then.pci_address}"
    return say.passed(f"the same card in the same place, {_words(now)}{shifted}", gpu.uuid)


def same_place(one: PlaceFacts, other: PlaceFacts) -> bool | None:
    """Whether two places are one; None where either is not known. Bus numbers do not count.

    The firmware's own name of the root port counts before its address, where both are known.
    """
    if None in (one.root_port, other.root_port, one.below, other.below):
        return None
    if one.root_path and other.root_path:
        return (one.root_path, one.below) == (other.root_path, other.below)
    return (one.root_port, one.below) == (other.root_port, other.below)


def _words(place: PlaceFacts) -> str:
    label = f"{place.label}, " if place.label else ""
    return f"{label}port {place.root_port} ({place.pci_address})"


def _places(facts: Facts) -> dict[str, PlaceFacts]:
    return {place.uuid: place for place in facts.places}


def _seen_twice(present: list[GpuFacts]) -> set[str]:
    uuids = [gpu.uuid for gpu in present]
    return {uuid for uuid in uuids if uuids.count(uuid) > 1}


def _who_sat_there(
    now: PlaceFacts | None, baseline: Baseline, was: dict[str, PlaceFacts], present: set[str]
) -> GpuFacts | None:
    """Return the accepted card that is gone and whose place this is; where places are unknown, the only one gone."""
    gone = [gpu for gpu in baseline.facts.gpus if gpu.uuid not in present]
    for gpu in gone:
        then = was.get(gpu.uuid)
        if now is not None and then is not None and same_place(now, then):
            return gpu
    return gone[0] if len(gone) == 1 else None


def card_firmware(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Each card's VBIOS and power range are those of the spec and of the newest accepted run."""
    asked = spec.settings.gpu_vbios if spec.settings is not None else None
    source = spec.source("settings.gpu_vbios") if asked is not None else against(baseline)
    say = Say("identity.card_firmware", expected=" or ".join(asked) if asked else None, source=source)
    accept = accept_fix(readings.rig)

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        before = next((one for one in baseline.facts.gpus if one.uuid == gpu.uuid), None) if baseline else None
        if not gpu.vbios:
            why = gpu.missing.get("vbios", "no reason given")
            return say.error(f"NVML does not tell the card's VBIOS: {why}", f"run `nvidia-smi -q` on {readings.rig}")
        if asked is not None and gpu.vbios not in asked:
            reason = f"VBIOS {gpu.vbios}, {say.expected} was declared"
            return say.failed(reason, gpu.vbios, "flash the declared VBIOS, or correct the spec")
        if changed := _firmware_changes(gpu, before):
            old = before.vbios if before is not None else None
            return say.of(say.subject, old).failed(
                f"changed since the accepted run: {'; '.join(changed)}",
                gpu.vbios,
                f"find out who flashed the card; flash the old VBIOS, {accept}",
            )
        if before is not None and _shows_range(before) and not _shows_range(gpu):
            why = gpu.missing.get("power_min_w") or gpu.missing.get("power_max_w") or "no reason given"
            reason = f"NVML does not tell the card's power range any more: {why}"
            return say.error(reason, f"run `nvidia-smi -q -d POWER` on {readings.rig}")
        if before is None and asked is None:
            new = "no accepted run has seen this card: see identity.cards"
            return say.skipped(FIRST if baseline is None else new)
        return say.passed(f"VBIOS {gpu.vbios}, {_range(gpu)}", gpu.vbios)

    return each_card(say, spec, readings, judge)


def _firmware_changes(gpu: GpuFacts, before: GpuFacts | None) -> list[str]:
    if before is None:
        return []
    changed = []
    if before.vbios and gpu.vbios != before.vbios:
        changed.append(f"VBIOS {before.vbios} → {gpu.vbios}")
    if _shows_range(before) and _shows_range(gpu) and _range(before) != _range(gpu):
        changed.append(f"{_range(before)} → {_range(gpu)}")
    return changed


def _shows_range(gpu: GpuFacts) -> bool:
    return None not in (gpu.power_min_w, gpu.power_max_w)


def _range(gpu: GpuFacts) -> str:
    if gpu.power_min_w is None or gpu.power_max_w is None:
        return "power range not shown"
    return f"{gpu.power_min_w:g} to {gpu.power_max_w:g} W"


def modules(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """No kernel module from elsewhere is loaded that neither the spec allows nor an accepted run had."""
    allowed = spec.settings.allowed_modules if spec.settings is not None else None
    source = spec.source("settings.allowed_modules") if allowed is not None else against(baseline)
    say = Say("identity.modules", expected=", ".join(allowed) if allowed else "NVIDIA's own", source=source)
    facts = readings.facts
    if facts is None or facts.modules is None:
        return [say.error("the kernel's modules were not read", FACTS_FIX.format(rig=readings.rig))]
    foreign = [one for one in facts.modules if one.name not in OURS and one.name not in (allowed or ())]
    accepted = {one.name for one in (baseline.facts.modules or ())} if baseline is not None else set()
    new = [one for one in foreign if one.name not in accepted or (allowed is not None)]
    if not new:
        kept = ", ".join(one.name for one in foreign)
        return [say.passed(f"no new module from elsewhere{f'; as accepted: {kept}' if kept else ''}", kept or "none")]
    names = ", ".join(_named(one) for one in new)
    fix = (
        f"find out what installed it; `modprobe -r {new[0].name}`, then remove it, "
        "or allow it in the spec: settings.allowed_modules"
    )
    found = ", ".join(one.name for one in new)
    if allowed is None and (baseline is None or baseline.facts.modules is None):
        return [say.warned(f"modules from elsewhere, never accepted before: {names}", found, fix)]
    return [say.failed(f"foreign kernel modules: {names}", found, fix)]


def _named(module: ModuleFacts) -> str:
    words = [TAINTS[letter] for letter in module.taint if letter in TAINTS]
    return f"{module.name} ({', '.join(words) or 'takes the cards from the NVIDIA driver'})"
