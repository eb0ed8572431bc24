"""From raw samples to what the guard decides on: the newest valid reading of each card, of processor and fans."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .situation import CardSeen, FanStill, OthersWork, ProcessorSeen
from .trend import STEP_S, Trend

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

POWER_BRAKE = 0x80
"""NVML's throttle (event) reason `HwPowerBrakeSlowdown`: supply or board ask the card to draw less."""


@dataclass(frozen=True)
class Thresholds:
    """What a card says of its own limits, °C; None where it does not."""

    slowdown_temp_c: float | None = None
    memory_max_temp_c: float | None = None


@dataclass
class Seeing:
    """Takes in each sample; safe for one thread that sees and one that asks."""

    critical_cpu_temp_c: float | None = None
    """What the processor's sensor itself calls critical, °C."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _cards: dict[str, CardSeen] = field(default_factory=dict)
    _processor: ProcessorSeen | None = None
    _cores: dict[str, Trend] = field(default_factory=lambda: defaultdict(Trend))
    _memories: dict[str, Trend] = field(default_factory=lambda: defaultdict(Trend))
    _turned: set[tuple[str, int | None]] = field(default_factory=set)
    """Fans and pumps that have turned in this run."""
    _still: dict[tuple[str, int | None], FanStill] = field(default_factory=dict)
    _steady_from_s: float = 0.0
    _rested_s: dict[str, float] = field(default_factory=dict)
    """When each card was last seen at rest: a burner may begin on a card long after it was started."""
    _others: OthersWork | None = None
    _others_pids: frozenset[int] = frozenset()

    def unsteady(self, now_s: float) -> None:
        """The load is still being raised: until it has been whole for two seconds no temperature is carried on."""
        self._steady_from_s = now_s + 2 * STEP_S

    def take(self, sample: Mapping[str, Any], thresholds: Mapping[str, Thresholds]) -> None:
        """Take in one sample. What is no valid reading leaves the last valid one to grow old."""
        t_s = sample["t_mono_s"]
        seen = {card["uuid"]: self._card(card, t_s, thresholds) for card in sample["gpus"] if _valid(card)}
        still = self._fans(sample, t_s)
        cpu_temp_c = sample.get("cpu_temp_c")
        with self._lock:
            self._cards.update(seen)
            self._still = still
            if cpu_temp_c is not None and cpu_temp_c > 0:
                self._processor = ProcessorSeen(cpu_temp_c, t_s, self.critical_cpu_temp_c)

    def take_others(self, found: Mapping[int, str], now_s: float) -> None:
        """Take in the processes on the cards that are not the run's own: words by process id."""
        # The same process in two looks: one that ends between the two is none that somebody works with.
        again = self._others_pids & found.keys()
        with self._lock:
            if not found:
                self._others = None
            elif self._others is None or not again:
                self._others = OthersWork(_listed(found), now_s, now_s)
            else:
                self._others = replace(self._others, words=_listed(found), last_s=now_s)
        self._others_pids = frozenset(found)

    def cards(self) -> dict[str, CardSeen]:
        """Newest valid reading of each card, by UUID."""
        with self._lock:
            return dict(self._cards)

    def processor(self) -> ProcessorSeen | None:
        """Newest reading of the processor's package; None where there never was one."""
        with self._lock:
            return self._processor

    def fans_still(self) -> tuple[FanStill, ...]:
        """Fans and pumps that should turn and do not."""
        with self._lock:
            return tuple(self._still.values())

    def others(self) -> OthersWork | None:
        """Somebody else's work on the cards."""
        with self._lock:
            return self._others

    def heats(self) -> bool:
        """Whether any card's temperature rises."""
        return any(trend.rises() for trend in (*self._cores.values(), *self._memories.values()))

    def _card(self, card: Mapping[str, Any], t_s: float, thresholds: Mapping[str, Thresholds]) -> CardSeen:
        uuid, own = card["uuid"], thresholds.get(card["uuid"], Thresholds())
        core, memory, memory_temp_c = self._cores[uuid], self._memories[uuid], card.get("memory_temp_c")
        if card.get("util_pct") == 0:
            self._rested_s[uuid] = t_s
        # As with a load that is still being raised: the jump of a die whose work begins is not carried on.
        steady = t_s >= max(self._steady_from_s, self._rested_s.get(uuid, -math.inf) + 2 * STEP_S)
        core.add(t_s, card["temp_c"])
        if memory_temp_c is not None:
            memory.add(t_s, memory_temp_c)
        return CardSeen(
            slot=card["slot"],
            temp_c=card["temp_c"],
            t_mono_s=t_s,
            slowdown_temp_c=own.slowdown_temp_c,
            soon_c=core.soon_c() if steady else None,
            memory_temp_c=memory_temp_c,
            memory_soon_c=memory.soon_c() if steady else None,
            memory_max_temp_c=own.memory_max_temp_c,
            margin_c=card.get("margin_c"),
            power_brake=bool((card.get("throttle") or 0) & POWER_BRAKE),
        )

    def _fans(self, sample: Mapping[str, Any], t_s: float) -> dict[tuple[str, int | None], FanStill]:
        """Tachometers that say zero now. A header that never turned has no fan, unless a card's fan is asked to."""
        still: dict[tuple[str, int | None], FanStill] = {}
        for name, slot, rpm, asked in _tachometers(sample):
            key = (name, slot)
            if rpm > 0:
                self._turned.add(key)
            elif asked or (slot is None and key in self._turned):
                still[key] = self._still.get(key) or FanStill(name, t_s, slot)
        return still


def _valid(card: Mapping[str, Any]) -> bool:
    """Whether a card's sample can be decided on: a card at 0 °C or less is none that works."""
    return card.get("error") is None and card.get("temp_c") is not None and card["temp_c"] > 0


def _tachometers(sample: Mapping[str, Any]) -> Iterable[tuple[str, int | None, int, bool]]:
    """Name, slot (None: the rig's), rpm, and whether it is asked to turn."""
    for name, rpm in (sample.get("fans_rpm") or {}).items():
        yield name, None, rpm, False
    for card in sample["gpus"]:
        if card.get("fan_rpm") is not None:
            # A card that asks its fans for nothing has stopped them itself, or has none.
            yield "fan", card["slot"], card["fan_rpm"], bool(card.get("fan_pct"))


def _listed(found: Mapping[int, str]) -> str:
    return ", ".join(found[pid] for pid in sorted(found))
