"""Which bad verdict follows from which: people are shown the cause first.

Each rule names a cause (a check that went wrong, optionally in a certain way) and what follows from it. The rules are
tried in order, so what stands earlier is the deeper cause: a rig that was not reached explains everything, a driver
that NVML cannot use explains all cards, a hot card explains the guard that stopped the burn, and so on. A verdict
that already is a cause of another one may itself follow from a deeper one; people are pointed to the deepest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.checks.cards import ABSENT
from rigctl.checks.catalogue import CATALOGUE
from rigctl.checks.switched import gone_off
from rigctl.checks.waivers import CHECK as WAIVERS
from rigctl.model.verdict import CheckVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rigctl.model.reading import Readings

BAD = (Verdict.FAIL, Verdict.ERROR)

_BURN = frozenset(
    {
        "throughput.gpu_burn",
        "throughput.burn_gflops",
        "power.share_of_limit",
        "power.wall",
        "power.residual",
        "thermals.settled_gpu_temp",
        "thermals.throttle",
        "thermals.fans",
        "thermals.resistance",
        "thermals.card_spread",
        "thermals.steady_state",
        "thermals.memory_temp",
        "thermals.hotspot_temp",
        "thermals.fan_speed",
        "topology.pcie_gen",
        "topology.pcie_width",
    }
)
_PACE = (
    "throughput.matmul_fp32",
    "throughput.matmul_fp16",
    "throughput.matmul_bf16",
    "throughput.layer",
    "throughput.gpu_memory",
    "throughput.training",
    "throughput.train_each",
    "throughput.train_all",
    "throughput.across",
    "throughput.tokens_per_joule",
)
"""What a card that is held back does more slowly."""
_HOST_COPIES = ("throughput.host_to_device", "throughput.device_to_host")
_COMPUTED = (*_PACE, *_HOST_COPIES, "memory.gpu_pattern", "throughput.loss", "measure.second_opinion")
_LOADED = _BURN | {
    *_COMPUTED,
    "thermals.guard",
    "thermals.cpu_temp",
    "throughput.cpu_burn",
    "throughput.cpu_clock",
    "memory.host",
    "throughput.training",
    "disk.speed",
    "power.brake",
    "power.step_load",
    "power.idle_to_load",
}
_COUNTED = (
    "topology.nvlink_errors",
    "topology.aer_port",
    "topology.aer_card",
    "topology.pcie_replays",
    "memory.ecc",
    "memory.remapped_rows",
)
_P2P_RATES = (
    "throughput.p2p_one_way",
    "throughput.p2p_both_ways",
    "throughput.p2p_gain",
    "throughput.scaling",
    "throughput.train_all",
)
_P2P = ("topology.p2p_bytes", *_P2P_RATES)
_OF_CARD = _BURN | {
    *_COMPUTED,
    *_COUNTED,
    *_P2P,
    "topology.p2p_access",
    "thermals.guard",
    "throughput.training",
    "topology.nvlink",
    "topology.nvlink_speed",
    "power.limit",
    "power.brake",
    "power.step_load",
    "power.idle_to_load",
}
_OF_RUN = ("measure.telemetry", "measure.left_as_found", "measure.probes", *_COUNTED, *_P2P)
_HEAT = frozenset({"thermals.throttle", "throughput.burn_gflops", "power.share_of_limit", "power.wall", *_PACE})
_WARMTH = (
    "thermals.card_spread",
    "thermals.steady_state",
    "thermals.memory_temp",
    "thermals.hotspot_temp",
    "thermals.fan_speed",
    "thermals.guard",
    *_HEAT,
)
"""What follows from a card that is too warm."""


_AT_REST = ("thermals.rest_temp", "power.idle")
"""What is measured before any load."""
_WRONG = ("throughput.gpu_burn", "topology.p2p_bytes", "throughput.loss", "measure.second_opinion")
"""What memory that does not hold spoils."""
_SLOW = ("throughput.matmul_fp32", "throughput.matmul_fp16", "throughput.matmul_bf16", "throughput.gpu_memory")
_SLOWER = (
    "throughput.layer",
    "throughput.training",
    "throughput.train_each",
    "throughput.train_all",
    "throughput.tokens_per_joule",
)
"""What is made of products of matrices and of reading memory."""
_BY_SWITCHES = ("topology.nvlink", "topology.nvlink_speed", "topology.p2p_access", "throughput.training", *_P2P)
"""What cards on NVSwitches lack while nobody manages those."""
_BY_SETTINGS = (
    "topology.pcie_gen",
    "topology.pcie_width",
    "topology.numa",
    "topology.p2p_access",
    "throughput.training",
    "throughput.cpu_clock",
    *_HOST_COPIES,
    *_P2P,
)
"""What a BIOS that was reset takes from a rig: lanes, generations, and the straight way between cards."""


_XIDS_OF_MEMORY = frozenset({"45", "48", "63", "64", "92", "94", "95"})
"""The numbers with which the driver tells of errors in a card's memory, and of the channel that it clears away then."""


_BRAKED = (
    "power.step_load",
    "power.idle_to_load",
    "thermals.guard",
    "thermals.throttle",
    "throughput.burn_gflops",
    "throughput.training",
    "power.share_of_limit",
    "power.wall",
    *_PACE,
)
"""What follows from a card that supply or board hold back."""


@dataclass(frozen=True)
class Rule:
    """One way in which verdicts follow from each other."""

    cause: str
    follows: Callable[[CheckVerdict, CheckVerdict, Readings], bool]
    """(cause, other, readings) → whether `other` follows from `cause`."""
    bad: tuple[Verdict, ...] = BAD


def _whole_rig(*checks: str) -> Callable[[CheckVerdict, CheckVerdict, Readings], bool]:
    """What goes wrong in these checks, on whatever subject, follows."""
    return lambda _cause, other, _readings: other.check in checks


def _same_card(*checks: str) -> Callable[[CheckVerdict, CheckVerdict, Readings], bool]:
    """What goes wrong in these checks follows on the same card, on its pairs and on the rig as a whole."""
    return lambda cause, other, _readings: other.check in checks and _touches(cause.subject, other.subject)


def _same_step(check: str) -> Callable[[CheckVerdict, CheckVerdict, Readings], bool]:
    """What goes wrong in this check under the same load follows."""
    return lambda cause, other, _readings: other.check == check and other.subject == cause.subject


def _touches(cause: str, other: str) -> bool:
    if cause == "rig" or not other.startswith(("slot", ABSENT)):
        return True
    one, two = (set(subject.partition(" ")[0].split("-")) for subject in (cause, other))
    return bool(one & two)


def _what_it_cools(cause: CheckVerdict, other: CheckVerdict, _readings: Readings) -> bool:
    """A fan of a card cools that card; a pump, or a fan of the rig, all of them."""
    warm = other.check in ("thermals.resistance", "thermals.settled_gpu_temp", *_WARMTH)
    return warm and (not cause.subject.startswith("slot") or _touches(cause.subject, other.subject))


def _unmeasured(*checks: str) -> Callable[[CheckVerdict, CheckVerdict, Readings], bool]:
    """What could not be measured in these checks follows; what was measured and is bad has a cause of its own."""
    return lambda _cause, other, _readings: other.check in checks and other.verdict is Verdict.ERROR


def _burn_spoilt(cause: CheckVerdict, other: CheckVerdict, _readings: Readings) -> bool:
    """A bad burn spoils what is measured in it; lanes that are too few were measured all the same."""
    measured = other.verdict is Verdict.FAIL and other.check in ("topology.pcie_gen", "topology.pcie_width")
    return other.check in _BURN and not measured and _touches(cause.subject, other.subject)


def _everything(_cause: CheckVerdict, other: CheckVerdict, _readings: Readings) -> bool:
    return other.verdict is Verdict.ERROR


def _nvml(_cause: CheckVerdict, other: CheckVerdict, readings: Readings) -> bool:
    """Without NVML nothing about cards is known, and nothing that needs them was run."""
    if readings.facts is None or readings.facts.gpus:
        return False
    info = CATALOGUE.get(other.check)
    needs_load = bool(info and info.steps)
    return other.verdict is Verdict.ERROR and bool(
        info and (info.nvml or needs_load or info.id.startswith("software."))
    )


def _needs_driver(_cause: CheckVerdict, other: CheckVerdict, _readings: Readings) -> bool:
    """Where the driver hangs, nothing that has to ask it can be measured any more."""
    info = CATALOGUE.get(other.check)
    return other.verdict is Verdict.ERROR and bool(
        info and (info.nvml or info.steps or info.id.startswith("software."))
    )


def _card_gone(_cause: CheckVerdict, other: CheckVerdict, readings: Readings) -> bool:
    """An absent card takes its links, its share of the wall power and its place in the burn with it."""
    if readings.facts is not None and not readings.facts.gpus:
        return _nvml(_cause, other, readings)
    if other.subject == ABSENT or other.check in ("topology.nvlink", "topology.nvlink_speed"):
        return True
    if other.check in ("topology.p2p_access", "topology.nvlink_errors", *_P2P, *_COMPUTED):
        return other.verdict is Verdict.ERROR
    if other.check in ("throughput.training", "thermals.card_spread", "thermals.fans"):
        return other.verdict is Verdict.ERROR
    return other.check in ("power.wall", "power.residual") or (
        other.check == "throughput.gpu_burn" and other.subject == "rig"
    )


def _another_model(cause: CheckVerdict, other: CheckVerdict, _readings: Readings) -> bool:
    """A card of another model has other figures in everything, and the burner was built for the declared one."""
    own = _OF_CARD | {"identity.cards", "identity.card_firmware", "topology.gpu_memory"}
    return other.check == "software.gpu_burn_build" or (other.check in own and _touches(cause.subject, other.subject))


def _told_by_xid(*checks: str) -> Callable[[CheckVerdict, CheckVerdict, Readings], bool]:
    """Memory that fails is told of by an Xid of the same card, and by its own counts; `checks` are those."""

    def follows(cause: CheckVerdict, other: CheckVerdict, _readings: Readings) -> bool:
        if other.subject != cause.subject:
            return False
        numbers = set(str(other.found).split(", "))
        return other.check in checks or (other.check == "kernel.xid" and numbers <= _XIDS_OF_MEMORY)

    return follows


def _went_off(_cause: CheckVerdict, other: CheckVerdict, readings: Readings) -> bool:
    """A rig that goes off when its load is switched comes back in another boot."""
    return other.check == "kernel.same_boot" and gone_off(readings)


def _its_waiver(cause: CheckVerdict, other: CheckVerdict, _readings: Readings) -> bool:
    """A waiver that ran out while its deviation is still there is no second cause."""
    check, _, subject = other.subject.partition("[")
    named = subject.removesuffix("]")
    return (
        other.check == WAIVERS
        and check == cause.check
        and (not named or named in (cause.subject, cause.subject.partition(" ")[0]))
    )


RULES: tuple[Rule, ...] = (
    Rule("measure.reached", _everything),
    Rule("disk.space", _unmeasured(*_OF_RUN, *_LOADED), (Verdict.FAIL,)),
    Rule("disk.health", _whole_rig("disk.speed"), (Verdict.FAIL,)),
    Rule("thermals.rest_temp", _whole_rig("thermals.cpu_temp"), (Verdict.FAIL,)),
    Rule("thermals.cpu_temp", _whole_rig("throughput.cpu_clock"), (Verdict.FAIL,)),
    Rule("power.brake", _same_card(*_BRAKED), (Verdict.FAIL,)),
    Rule("power.step_load", _went_off, (Verdict.FAIL,)),
    Rule("kernel.same_boot", _unmeasured(*_OF_RUN, "kernel.xid", *_LOADED), (Verdict.FAIL,)),
    Rule("kernel.time_sync", _whole_rig("kernel.clock"), (Verdict.FAIL,)),
    Rule("memory.host", _whole_rig("throughput.cpu_burn"), (Verdict.FAIL,)),
    Rule("memory.ecc", _told_by_xid("memory.remapped_rows"), (Verdict.FAIL,)),
    Rule("memory.remapped_rows", _told_by_xid(), (Verdict.FAIL,)),
    Rule("kernel.xid", _whole_rig("measure.probes", "measure.left_as_found"), (Verdict.FAIL,)),
    Rule("measure.probes", _needs_driver, (Verdict.FAIL,)),
    Rule("software.driver_version", _nvml),
    Rule("topology.gpu_count", _card_gone),
    Rule("topology.gpu_model", _another_model, (Verdict.FAIL,)),
    Rule("topology.fabric_manager", _whole_rig(*_BY_SWITCHES), (Verdict.FAIL,)),
    Rule("identity.settings", _whole_rig(*_BY_SETTINGS), (Verdict.FAIL,)),
    Rule("identity.cards", _same_card("topology.numa", "topology.pcie_gen", "topology.pcie_width"), (Verdict.FAIL,)),
    Rule("identity.card_firmware", _same_card("power.limit", "power.share_of_limit"), (Verdict.FAIL,)),
    Rule("kernel.xid", _same_card(*_OF_CARD), (Verdict.FAIL,)),
    Rule(
        "topology.nvlink",
        _same_card("topology.nvlink_speed", "topology.nvlink_errors", "topology.p2p_access", *_P2P_RATES),
    ),
    Rule("topology.nvlink_errors", _same_card(*_P2P_RATES), (Verdict.FAIL,)),
    Rule("topology.p2p_access", _same_card(*_P2P_RATES), (Verdict.FAIL,)),
    Rule("topology.aer_port", _same_card("topology.aer_card", "topology.pcie_replays"), (Verdict.FAIL,)),
    Rule("topology.aer_card", _same_card("topology.pcie_replays"), (Verdict.FAIL,)),
    Rule("thermals.fans", _what_it_cools, (Verdict.FAIL,)),
    Rule("thermals.resistance", _same_card("thermals.settled_gpu_temp", *_WARMTH), (Verdict.FAIL,)),
    Rule("thermals.rest_temp", _whole_rig("thermals.settled_gpu_temp", *_WARMTH), (Verdict.FAIL,)),
    Rule("thermals.settled_gpu_temp", _same_card(*_WARMTH), (Verdict.FAIL,)),
    Rule("thermals.steady_state", _same_card("throughput.burn_gflops", "thermals.memory_temp"), (Verdict.FAIL,)),
    # Beside a card that may draw less than it should, its twin looks warm.
    Rule("power.limit", _whole_rig("thermals.card_spread"), (Verdict.FAIL,)),
    Rule("thermals.card_spread", _same_card("thermals.memory_temp", "thermals.hotspot_temp"), (Verdict.FAIL,)),
    Rule("thermals.guard", _same_card(*_HEAT), (Verdict.FAIL,)),
    Rule("thermals.guard", _unmeasured(*(_LOADED - {"thermals.guard"}), *_P2P, *_AT_REST, "measure.telemetry")),
    Rule(
        "software.gpu_burn_build",
        _whole_rig(*_BURN, "throughput.cpu_burn", "throughput.cpu_clock", "thermals.cpu_temp"),
        (Verdict.ERROR,),
    ),
    Rule("software.torch", _unmeasured(*_P2P, *_COMPUTED)),
    Rule("software.torch", _whole_rig("throughput.training")),
    Rule("throughput.cpu_clock", _whole_rig("power.wall"), (Verdict.FAIL,)),
    Rule(
        "power.limit",
        _same_card("power.share_of_limit", "throughput.burn_gflops", "power.wall", *_PACE),
        (Verdict.FAIL,),
    ),
    Rule(
        "thermals.throttle",
        _same_card("throughput.burn_gflops", "power.share_of_limit", "power.wall", *_PACE),
        (Verdict.FAIL,),
    ),
    Rule("power.share_of_limit", _same_card("power.wall"), (Verdict.FAIL,)),
    Rule("power.residual", _same_step("power.wall"), (Verdict.FAIL,)),
    Rule("power.wall", _unmeasured("power.residual"), (Verdict.ERROR,)),
    Rule("memory.gpu_pattern", _same_card(*_WRONG), (Verdict.FAIL,)),
    Rule("throughput.gpu_burn", _burn_spoilt),
    Rule("throughput.gpu_burn", _same_card("throughput.loss", "measure.second_opinion"), (Verdict.FAIL,)),
    Rule("topology.pcie_width", _same_card("throughput.training", *_HOST_COPIES, *_P2P_RATES)),
    *(Rule(check, _same_card(*_HOST_COPIES), (Verdict.FAIL,)) for check in ("topology.pcie_gen", "topology.numa")),
    *(Rule(check, _same_card(*_SLOWER), (Verdict.FAIL,)) for check in _SLOW),
    Rule("throughput.training", _whole_rig("throughput.tokens_per_joule"), (Verdict.FAIL,)),
    Rule("throughput.train_each", _whole_rig("throughput.train_all", "throughput.tokens_per_joule"), (Verdict.FAIL,)),
    Rule("throughput.p2p_gain", _whole_rig("throughput.scaling", "throughput.train_all"), (Verdict.FAIL,)),
    Rule("throughput.scaling", _whole_rig("throughput.train_all"), (Verdict.FAIL,)),
    Rule("network.link", _whole_rig("throughput.across"), (Verdict.FAIL,)),
    Rule("throughput.loss", _whole_rig("throughput.across"), (Verdict.FAIL,)),
    *(Rule(check, _its_waiver, (Verdict.FAIL,)) for check in CATALOGUE if check != WAIVERS),
)


def with_causes(verdicts: Iterable[CheckVerdict], readings: Readings) -> tuple[CheckVerdict, ...]:
    """Return the verdicts, each bad one that follows from another naming it; the order stays."""
    known = tuple(verdicts)
    bad = [verdict for verdict in known if verdict.verdict in BAD]
    causes = {verdict.key: cause.key for verdict in bad if (cause := _cause_of(verdict, bad, readings))}
    return tuple(
        verdict.model_copy(update={"caused_by": _deepest(verdict.key, causes)}) if verdict.key in causes else verdict
        for verdict in known
    )


def _cause_of(verdict: CheckVerdict, bad: Sequence[CheckVerdict], readings: Readings) -> CheckVerdict | None:
    """Return the deepest cause that a rule knows for `verdict`; a verdict never follows from its own check."""
    for rule in RULES:
        if rule.cause == verdict.check and verdict.verdict in rule.bad:
            # Rules behind this one speak of what follows from the verdict itself; so a chain of causes has an end.
            return None
        for cause in bad:
            if cause.check == rule.cause and cause.verdict in rule.bad and rule.follows(cause, verdict, readings):
                return cause
    return None


def _deepest(key: str, causes: dict[str, str]) -> str:
    """Follow the chain to its end."""
    while causes[key] in causes:
        key = causes[key]
    return causes[key]
