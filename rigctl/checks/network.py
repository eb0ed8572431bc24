"""Network: the link of the card that the rig works over runs as fast as it should, and in both directions at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks.cards import FACTS_FIX
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import NetworkFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

MOST_MBIT = 1_600_000
"""More than any card's link (IEEE 802.3dj): no measurement."""
_CABLE = "another cable first: a pair of wires has no contact; then the plug, and the other end's port"
_BOTH = "what both ends of the cable can do"


def link(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Speed and duplex of the card that carries the default route; where none is known, of each card with a signal."""
    asked = spec.limits.min_network_mbit_per_s
    say = Say("network.link", expected=asked, unit="Mbit/s", source=spec.source("limits.min_network_mbit_per_s"))
    facts = readings.facts
    if facts is None or facts.network is None:
        return [say.error("the rig's network cards were not listed", FACTS_FIX.format(rig=readings.rig))]
    judged = [card for card in facts.network if card.carries_default_route] or [
        card for card in facts.network if card.link
    ]
    if not judged:
        reason = "no network card has a signal" if facts.network else "the kernel lists no network card"
        if asked is None:
            return [say.blind(reason)]
        return [say.error(reason, f"`ip link` on {readings.rig}; a virtual card cannot be asked for a speed")]
    return [_link(say.of(card.name), readings, card, _accepted(card, baseline)) for card in judged]


def _accepted(card: NetworkFacts, baseline: Baseline | None) -> int | None:
    """What the same card ran at in the accepted run, Mbit/s."""
    known = baseline.facts.network or () if baseline is not None else ()
    return next((one.speed_mbit_per_s for one in known if one.address == card.address), None)


def _link(say: Say, readings: Readings, card: NetworkFacts, accepted: int | None) -> CheckVerdict:
    look, speed = f"`ethtool {card.name}` on {readings.rig}", card.speed_mbit_per_s
    if speed is None:
        reason = "a wireless card has no speed of its own" if card.wireless else "the card does not tell its speed"
        if say.expected is None and accepted is None:
            return say.blind(reason)
        return say.error(reason, f"{look}; a virtual card cannot be asked for a speed")
    if not 0 < speed <= MOST_MBIT:
        return say.error(f"the card says that it runs at {speed} Mbit/s", look)
    if card.duplex == "half":
        fix = "let both ends of the cable negotiate: one of them is set by hand"
        return say.failed(f"{speed} Mbit/s, and in one direction at a time only", "half duplex", fix)
    return _fast(say, readings.rig, card, speed, accepted)


def _fast(say: Say, rig: str, card: NetworkFacts, speed: int, accepted: int | None) -> CheckVerdict:
    both, found = _both_ends(card), f"{speed} Mbit/s{'' if card.duplex is None else ', full duplex'}"
    asked = say.expected if isinstance(say.expected, int) else None
    if asked is not None and speed < asked:
        can = f"; both ends can do {both}" if both is not None and both > speed else ""
        return say.failed(f"{found}, at least {asked} were declared{can}", speed, _slow(card, asked))
    if accepted is not None and speed < accepted:
        own = Say(say.check, say.subject, accepted, say.unit, "the rig's accepted run")
        return own.failed(f"{found}, the same card ran at {accepted} in the accepted run", speed, _slow(card, accepted))
    if both is not None and speed < both:
        own = Say(say.check, say.subject, both, say.unit, _BOTH)
        reason = f"{found}, both ends of the cable can do {both}"
        return own.failed(reason, speed, _CABLE) if asked is None else own.warned(reason, speed, _CABLE)
    if asked is None and accepted is None and both is None:
        return say.unlearned(found, speed, rig)
    return say.passed(found, speed)


def _both_ends(card: NetworkFacts) -> int | None:
    """The fastest that card and partner can both do, Mbit/s; None where either does not tell."""
    own, partner = card.supported_mbit_per_s, card.partner_mbit_per_s
    return None if own is None or partner is None else min(own, partner)


def _slow(card: NetworkFacts, wanted: int) -> str:
    """What to do, by which end cannot do better."""
    if card.partner_mbit_per_s is not None and card.partner_mbit_per_s < wanted:
        return f"the other end offers no more than {card.partner_mbit_per_s} Mbit/s: another port or switch"
    if card.supported_mbit_per_s is not None and card.supported_mbit_per_s < wanted:
        return f"the card can do no more than {card.supported_mbit_per_s} Mbit/s: another card, or correct the spec"
    return _CABLE
