"""The rest of the rig is what was accepted: its board and parts, and what the BIOS is set to.

A BIOS that was reset changes many settings at once and is one cause: all of them are one verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rigctl.checks.cards import FACTS_FIX
from rigctl.checks.identity import FIRST, accept_fix, against
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import DiskFacts, Facts, Readings
    from rigctl.model.spec import RigSpec, SettingsSpec
    from rigctl.model.verdict import CheckVerdict

SEVERAL = 2
"""So many settings that differ at once are a BIOS that went back to its defaults, not somebody who tried one."""
MEMORY_SHARE = 0.02
"""How much less memory is none lost: the kernel keeps a share for itself that differs between its versions, and the
smallest module that is sold is more than that."""
Value = str | int | bool | None


class _Setting(NamedTuple):
    """One thing that the BIOS decides: how it is read, and what a spec may ask of it."""

    name: str
    read: Callable[[Facts], Value]
    asked: Callable[[SettingsSpec], Value] | None = None
    key: str = ""
    at_least: bool = False
    """What is asked is the least."""
    of_model: bool = False
    """It depends on the cards' model too, and is compared with the accepted run only where that is the same."""


def _of_cards(facts: Facts, name: str) -> list[Value]:
    """What the cards' places say; a card whose place does not say it is left out."""
    return [value for place in facts.places if (value := getattr(place, name)) is not None]


def _least_bar1(facts: Facts) -> Value:
    return min((int(value) for value in _of_cards(facts, "bar1_mib") if value is not None), default=None)


def _all_above_4g(facts: Facts) -> Value:
    known = _of_cards(facts, "above_4g")
    return all(known) if known else None


def _any_aspm(facts: Facts) -> Value:
    known = _of_cards(facts, "aspm")
    return any(value != "off" for value in known) if known else None


def _any_iommu(facts: Facts) -> Value:
    known = _of_cards(facts, "iommu")
    return any(value != "off" for value in known) if known else None


def _any_redirect(facts: Facts) -> Value:
    known = _of_cards(facts, "acs_redirect")
    return any(known) if known else None


def _least_memory_speed(facts: Facts) -> Value:
    return min((one.set_mt_per_s for one in facts.memory_modules or () if one.set_mt_per_s is not None), default=None)


_SETTINGS = (
    _Setting("BAR1 MiB", _least_bar1, lambda asked: asked.min_bar1_mib, "min_bar1_mib", at_least=True, of_model=True),
    _Setting("Above 4G decoding", _all_above_4g, lambda asked: asked.above_4g, "above_4g"),
    _Setting("ASPM", _any_aspm, lambda asked: asked.aspm, "aspm"),
    _Setting("IOMMU", _any_iommu, lambda asked: asked.iommu, "iommu"),
    _Setting("ACS redirect", _any_redirect, lambda asked: asked.acs_redirect, "acs_redirect"),
    _Setting(
        "memory MT/s",
        _least_memory_speed,
        lambda asked: asked.min_memory_mt_per_s,
        "min_memory_mt_per_s",
        at_least=True,
    ),
    _Setting("CPU threads", lambda facts: facts.cpu_threads or None),
    _Setting("NUMA nodes", lambda facts: len(facts.numa_nodes) or None),
)


def settings(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """What the BIOS is set to is what the spec asks and what the newest accepted run had; one verdict for all."""
    say = Say("identity.settings", expected="the accepted settings", source=against(baseline))
    facts, asked = readings.facts, spec.settings
    if facts is None:
        return [say.error("the rig's facts were not read", FACTS_FIX.format(rig=readings.rig))]
    wrong, unread, compared = [], [], []
    for setting in _SETTINGS:
        now = setting.read(facts)
        want = setting.asked(asked) if asked is not None and setting.asked is not None else None
        was = setting.read(baseline.facts) if baseline is not None else None
        if setting.of_model and baseline is not None and _models(facts) != _models(baseline.facts):
            was = None
        if want is None and was is None:
            continue
        if now is None:
            unread.append(setting.name)
        elif difference := _difference(setting, now, want, was):
            say = say if want is None else Say(say.check, source=spec.source(f"settings.{setting.key}"))
            wrong.append(difference)
        else:
            compared.append(f"{setting.name} {_word(now)}")
    if wrong:
        return [_changed(say, readings.rig, wrong)]
    if unread:
        reason = f"could be read before or is asked for, and cannot be read now: {', '.join(unread)}"
        return [say.error(reason, FACTS_FIX.format(rig=readings.rig))]
    if not compared:
        return [say.skipped(f"the spec asks for no setting, and this is {FIRST}")]
    return [say.passed(", ".join(compared), "as asked and accepted")]


def _models(facts: Facts) -> list[str]:
    return sorted({gpu.name for gpu in facts.gpus})


def _difference(setting: _Setting, now: Value, want: Value, was: Value) -> str | None:
    """Return `NAME was → now`; the spec's word counts before that of the accepted run."""
    expected = want if want is not None else was
    enough = setting.at_least and isinstance(now, int) and isinstance(expected, int) and now >= expected
    return None if enough or now == expected else f"{setting.name} {_word(expected)} → {_word(now)}"


def _word(value: Value) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _changed(say: Say, rig: str, wrong: list[str]) -> CheckVerdict:
    accept = accept_fix(rig)
    if len(wrong) >= SEVERAL:
        return say.failed(
            f"BIOS defaults returned: {'; '.join(wrong)}",
            "; ".join(wrong),
            "load the saved profile in the BIOS; if it forgets it again: the board's battery; after a BIOS update set "
            f"it anew, {accept}",
        )
    return say.failed(f"a BIOS setting changed: {wrong[0]}", wrong[0], f"set it back in the BIOS, {accept}")


def machine(readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Board, processor, memory, disks and network cards of the newest accepted run are there."""
    say = Say("identity.machine", expected="the accepted parts", source=against(baseline))
    facts = readings.facts
    if facts is None:
        return [say.error("the rig's facts were not read", FACTS_FIX.format(rig=readings.rig))]
    if baseline is None:
        return [say.skipped(FIRST)]
    was = baseline.facts
    if unread := _unread(facts, was):
        return [say.error(f"could be read before and cannot now: {unread}", FACTS_FIX.format(rig=readings.rig))]
    if lost := [*_exchanged(facts, was), *_less_memory(facts, was), *_gone(facts, was)]:
        fix = f"look whether it has come loose or has failed; put it back, {accept_fix(readings.rig)}"
        return [say.failed("; ".join(lost), "; ".join(lost), fix)]
    added = _added(facts, was)
    if changed := _versions(facts, was):
        fix = "nothing, if you updated it; the next accepted run is compared with the new one"
        return [say.warned("; ".join([*changed, *added]), "; ".join(changed), fix)]
    reason = f"board, processor, memory, disks and network as accepted{'; ' if added else ''}{'; '.join(added)}"
    return [say.passed(reason, "; ".join(added) or "as accepted")]


def _unread(facts: Facts, was: Facts) -> str:
    lists = {"disks": "disks", "network": "network cards", "memory_modules": "memory modules"}
    texts = {"cpu_model": "processor", "board_name": "board"}
    gone = [words for name, words in lists.items() if getattr(facts, name) is None and getattr(was, name) is not None]
    return ", ".join(gone + [words for name, words in texts.items() if not getattr(facts, name) and getattr(was, name)])


def _exchanged(facts: Facts, was: Facts) -> list[str]:
    """Parts of which a rig has one, and has another one now."""
    parts = {"board_name": "board", "board_serial": "board serial", "cpu_model": "processor"}
    return [
        f"{words} {old} → {new}"
        for name, words in parts.items()
        if (old := getattr(was, name)) and (new := getattr(facts, name)) and old != new
    ]


def _less_memory(facts: Facts, was: Facts) -> list[str]:
    """Modules that are gone, by the firmware's list; where there is none, by what the kernel has."""
    if facts.memory_modules is not None and was.memory_modules is not None:
        now, then = (sum(one.size_mib for one in facts_of) for facts_of in (facts.memory_modules, was.memory_modules))
        there = {one.place for one in facts.memory_modules}
        places = ", ".join(one.place for one in was.memory_modules if one.place not in there)
        return [f"memory {then} → {now} MiB{f', gone from {places}' if places else ''}"] if now < then else []
    if facts.memory_mib < was.memory_mib * (1 - MEMORY_SHARE):
        return [f"memory {was.memory_mib} → {facts.memory_mib} MiB"]
    return []


def _disk(disk: DiskFacts) -> tuple[str, ...]:
    """Return what a disk is known by: its serial, else model and size; names are given anew at each start."""
    return (disk.serial,) if disk.serial else (disk.model, f"{disk.size_gb:g} GB")


def _gone(facts: Facts, was: Facts) -> list[str]:
    there, cards = {_disk(one) for one in facts.disks or ()}, {one.address for one in facts.network or ()}
    disks = [f"disk {one.model or one.name} gone" for one in was.disks or () if _disk(one) not in there]
    return disks + [
        f"network card {one.name} {one.address} gone" for one in was.network or () if one.address not in cards
    ]


def _added(facts: Facts, was: Facts) -> list[str]:
    known = {_disk(one) for one in was.disks or ()}
    cards = {one.address for one in was.network or ()}
    disks = [f"disk {one.model or one.name} added" for one in facts.disks or () if _disk(one) not in known]
    return disks + [f"network card {one.name} added" for one in facts.network or () if one.address not in cards]


def _versions(facts: Facts, was: Facts) -> list[str]:
    names = {"bios_version": "BIOS", "kernel": "kernel"}
    return [
        f"{words} {old} → {new}"
        for name, words in names.items()
        if (old := getattr(was, name)) and (new := getattr(facts, name)) and old != new
    ]
