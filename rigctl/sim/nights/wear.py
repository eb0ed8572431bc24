"""What happens to a rig over a year: one part of it wears slowly, or people change something on it.

Wear takes the same from its part every day, from its first day to the year's end. What a sensor shows of that, and on
which day a check's limit is met, follows from the physics alone.
"""

from __future__ import annotations

import copy
import hashlib
import random
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from rigctl.sim.nights.fleet import DAYS, WARMEST_C, vary
from rigctl.sim.nights.margins import link_errors_per_s, margins, replays_per_s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.model.spec import RigSpec
    from rigctl.sim.nights.fleet import Member
    from rigctl.sim.nights.hardware import Conditions

_COOLING, _RESIDUAL = "thermals.resistance", "power.residual"
_NVLINK, _REPLAYS = "topology.nvlink_errors", "topology.pcie_replays"
WORN_SLOT = 1
"""Where only one card's part wears, it is this card's."""


@dataclass(frozen=True)
class WearKind:
    """One part that wears."""

    lost: float
    """The share that is gone at the year's end: of what the pump moves, of a plate's seat, of the air through the
    radiators, of the supply's efficiency, of the margin of a link's eye."""
    check: str
    """Whose figure shows it: the trend that names it rightly is this check's."""
    one_card: bool
    """Whether it is one card's alone."""


WEARS: dict[str, WearKind] = {
    "pump": WearKind(0.6, _COOLING, one_card=False),
    "paste": WearKind(0.55, _COOLING, one_card=True),
    "dust": WearKind(0.92, _COOLING, one_card=False),
    "supply": WearKind(0.16, _RESIDUAL, one_card=False),
    "bridge": WearKind(0.28, _NVLINK, one_card=True),
    "riser": WearKind(0.28, _REPLAYS, one_card=True),
}


class Story(Protocol):
    """What a rig's year is like, beside season and age."""

    def spec(self, member: Member, day: int) -> RigSpec:
        """What is asked of the rig on a day."""

    def identity(self, member: Member, day: int) -> dict[str, Any]:
        """What it consists of on a day."""

    def conditions(self, member: Member, day: int) -> Conditions:
        """What the night of a day is like."""


class Healthy:
    """Nothing happens."""

    def spec(self, member: Member, _day: int) -> RigSpec:
        """What the class asks for."""
        return member.spec

    def identity(self, member: Member, _day: int) -> dict[str, Any]:
        """What it was built of."""
        return member.identity

    def conditions(self, member: Member, day: int) -> Conditions:
        """Season and age."""
        return member.conditions(day)


@dataclass(frozen=True)
class Wear(Healthy):
    """One part wears from the day `begins` on."""

    kind: str
    begins: int

    def left(self, day: int) -> float:
        """Return the share of the part that is left on a day."""
        worn = max(0.0, (day - self.begins) / (DAYS - self.begins))
        return 1 - WEARS[self.kind].lost * worn

    def identity(self, member: Member, day: int) -> dict[str, Any]:
        """What it consists of on a day: a worn supply loses more."""
        if self.kind != "supply":
            return member.identity
        return _with_supply(member.identity, self.left(day))

    def conditions(self, member: Member, day: int) -> Conditions:
        """What the night is like: less flow, seat, air or margin."""
        usual, left = member.conditions(day), self.left(day)
        if self.kind == "pump":
            return replace(usual, flow=usual.flow * left)
        if self.kind == "dust":
            return replace(usual, air=usual.air * left)
        if self.kind == "paste":
            return replace(usual, seats=(usual.seats[0] * left, *usual.seats[1:]))
        return _with_margin(usual, member, self.kind, left)


@dataclass(frozen=True)
class Changed(Healthy):
    """People change something on the day `on`; nothing is wrong with the rig, before or after."""

    what: str
    on: int

    def spec(self, member: Member, day: int) -> RigSpec:
        """What is asked: another driver, where that is what changed."""
        if self.what != "driver" or day < self.on:
            return member.spec
        software = member.spec.software.model_copy(update={"driver_branch": NEWER_DRIVER})
        return member.spec.model_copy(update={"software": software})

    def identity(self, member: Member, day: int) -> dict[str, Any]:
        """What it consists of."""
        return CHANGES[self.what](member) if day >= self.on and self.what in CHANGES else member.identity

    def conditions(self, member: Member, day: int) -> Conditions:
        """What the night is like: in a warmer room, where that is what changed."""
        usual = member.conditions(day)
        if self.what != "room" or day < self.on or usual.room_c is None:
            return usual
        return replace(usual, room_c=min(WARMEST_C, usual.room_c + WARMER_C))


NEWER_DRIVER = "535"
NEWER_RATE, NEWER_REST = 0.985, 1.2
"""What another driver makes of a card's rate and of its power at rest: ours."""
WARMER_C = 5.0
"""By how much another room is warmer, °C."""
OTHER_SUPPLY = 0.985
"""The efficiency of a supply of another make over that of the old one."""


def _other_card(member: Member) -> dict[str, Any]:
    """The second card was replaced by another one of its model: new numbers, and its own luck with power and rate."""
    made = copy.deepcopy(member.identity)
    card = made["cards"][-1]
    digest = hashlib.sha256(f"{card['uuid']} replaced".encode()).hexdigest()
    card["uuid"] = f"GPU-{uuid.UUID(hex=digest[:32], version=4)}"
    vary(card, random.Random(digest))  # noqa: S311 - board variance, to be repeatable
    return made


def _exchanged(member: Member) -> dict[str, Any]:
    """The first two cards sit in each other's slots."""
    made = copy.deepcopy(member.identity)
    first, second, *others = made["cards"]
    places = [{key: one[key] for key in ("slot", "pci_bus_id")} for one in (first, second)]
    made["cards"] = [{**second, **places[0]}, {**first, **places[1]}, *others]
    return made


def _driven(member: Member) -> dict[str, Any]:
    """Another driver makes the cards a little slower, and they rest a little less deeply."""
    made = copy.deepcopy(member.identity)
    for card in made["cards"]:
        card["gflops_factor"] *= NEWER_RATE
        card["idle_w"] *= NEWER_REST
    return made


def _other_supply(member: Member) -> dict[str, Any]:
    """The supply was replaced by one of another make."""
    return _with_supply(member.identity, OTHER_SUPPLY)


CHANGES = {"card": _other_card, "exchanged": _exchanged, "driver": _driven, "supply": _other_supply}
CHANGED = (*CHANGES, "room")


def _with_supply(identity: Mapping[str, Any], left: float) -> dict[str, Any]:
    machine = dict(identity["machine"])
    machine["supply_efficiency"] = [[watts, share * left] for watts, share in machine["supply_efficiency"]]
    return {**identity, "machine": machine}


def _with_margin(usual: Conditions, member: Member, kind: str, left: float) -> Conditions:
    """Return the night with what one worn link damages; `usual` where no link wears."""
    if kind not in ("bridge", "riser") or usual.room_c is None:
        return usual
    links, bus = margins(member.identity, member.seat, usual.room_c)
    if kind == "riser":
        rate = replays_per_s(member.identity, bus[WORN_SLOT] * left)
        return replace(usual, replays_per_s={**usual.replays_per_s, WORN_SLOT: rate})
    worn = WORN_SLOT, member.number % sum(slot == WORN_SLOT for slot, _ in links)
    rate = link_errors_per_s(member.identity, links[worn] * left)
    return replace(usual, link_errors_per_s={**usual.link_errors_per_s, worn: rate})
