"""A fleet for nights: rigs of one class as the shipped inventory has it, none quite like the other, through a year."""

from __future__ import annotations

import copy
import math
import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rigctl import assets
from rigctl.inventory import load_fleet
from rigctl.sim.machine.hardware.rigsim.identity import load_template, make_identity
from rigctl.sim.nights.hardware import Conditions
from rigctl.sim.nights.margins import link_errors_per_s, margins, replays_per_s

if TYPE_CHECKING:
    from rigctl.model.rig import Rig
    from rigctl.model.spec import ProfileSpec, RigSpec

DAYS = 365
JULY = 200
"""The warmest day of the year."""
ROOM_C, SEASON_C, WEATHER_C = 22.0, 4.5, 1.0
"""Mean of the rooms, how far summer and winter are from it, and how much a day differs from its season, °C."""
COLDEST_C, WARMEST_C = 14.0, 30.0
"""No room is colder or warmer: beyond 30 °C it is the fault `room_warm`, of the room and not of the rig."""
DUST, PUMP, PASTE = 0.12, 0.05, 0.04
"""What a year takes from the air, the pump and the seat of a plate, as shares; rigs are cleaned once a year."""
OWN_POWER, OWN_RATE, OWN_TEMP_C, OWN_REST = 0.01, 0.01, 1.5, 0.15
"""How far two cards of one model are from their class at most: power and rate, °C where they settle, power at rest."""
OWN_SUPPLY, OWN_METER = 0.01, 0.01
"""The same for supplies, and for wall meters: a smart plug's own tolerance."""
MOST_BURN_S = 600.0
OF_RIG = {"wall_meter": {"url": "http://192.0.2.200/cm?cmnd=Status%208"}, "allow_step_load": True}
"""What the inventory says of each rig beside its class."""


@dataclass(frozen=True)
class Member:
    """One rig of the fleet."""

    rig: Rig
    identity: dict[str, Any]
    number: int
    seed: int
    meter: float
    """What its wall meter shows of the power."""

    @property
    def spec(self) -> RigSpec:
        """What it must be and show."""
        return self.rig.spec

    @property
    def seat(self) -> str:
        """What its own luck is drawn from: the fleet's seed and its number."""
        return f"{self.seed}:{self.number}"

    def conditions(self, day: int) -> Conditions:
        """Return what a healthy night of this rig is like on a day of the year: room, dust, age."""
        chance = random.Random(f"{self.seed}:{self.number}:{day}")  # noqa: S311 - weather, to be repeatable
        own = random.Random(f"{self.seed}:{self.number}:room")  # noqa: S311 - each rig has a room of its own
        season_c = SEASON_C * math.cos(2 * math.pi * (day - JULY) / DAYS)
        room_c = ROOM_C + own.uniform(-1.5, 1.5) + season_c + chance.gauss(0, WEATHER_C)
        since_cleaned = ((day + own.randrange(DAYS)) % DAYS) / DAYS
        seats = tuple(1 - PASTE * since_cleaned * own.uniform(0.5, 1.0) for _ in self.identity["cards"])
        room_c = min(WARMEST_C, max(COLDEST_C, room_c))
        links, bus = margins(self.identity, self.seat, room_c)
        return Conditions(
            room_c=room_c,
            air=1 - DUST * since_cleaned,
            flow=1 - PUMP * since_cleaned,
            seats=seats,
            meter=self.meter,
            link_errors_per_s={key: link_errors_per_s(self.identity, margin) for key, margin in links.items()},
            replays_per_s={slot: replays_per_s(self.identity, margin) for slot, margin in bus.items()},
        )


def members(rig_class: str, count: int, seed: int = 0) -> list[Member]:
    """Return `count` rigs of a class, with spec and profiles of the shipped inventory."""
    with tempfile.TemporaryDirectory(prefix="rigctl-fleet-") as folder:
        rigs = load_fleet(_inventory(Path(folder), rig_class, count))
    found = []
    for number, rig in enumerate(sorted(rigs, key=lambda one: one.name)):
        own = random.Random(f"{seed}:{number}:meter")  # noqa: S311 - a meter of its own, to be repeatable
        meter = 1 + own.uniform(-OWN_METER, OWN_METER)
        found.append(Member(rig, identity_of(rig_class, rig.name, seed), number, seed, meter))
    return found


def identity_of(rig_class: str, name: str, seed: int) -> dict[str, Any]:
    """Return one rig's identity: no two cards of a model draw, compute and cool quite alike, nor do two supplies."""
    made = copy.deepcopy(make_identity(load_template(rig_class), name, seed))
    own = random.Random(f"{seed}:{name}:parts")  # noqa: S311 - board variance, to be repeatable
    for card in made["cards"]:
        vary(card, own)
    supply = own.uniform(1 - OWN_SUPPLY, 1 + OWN_SUPPLY)
    machine = made["machine"]
    machine["supply_efficiency"] = [[watts, share * supply] for watts, share in machine["supply_efficiency"]]
    return made


def vary(card: dict[str, Any], own: random.Random) -> None:
    """Give a card what is its own: power, rest, temperature and rate."""
    card["burn_w"] *= own.uniform(1 - OWN_POWER, 1 + OWN_POWER)
    card["idle_w"] *= own.uniform(1 - OWN_REST, 1 + OWN_REST)
    card["settled_temp_c"] += own.uniform(-OWN_TEMP_C, OWN_TEMP_C)
    card["gflops_factor"] *= own.uniform(1 - OWN_RATE, 1 + OWN_RATE)


def night_profile(profile: ProfileSpec) -> ProfileSpec:
    """Return a profile for nights in process: its steps, one sample a second, no burn longer than `MOST_BURN_S`.

    That a burn that ends early says the same is another bench's question; what a burn of hours shows that one of
    minutes does not is not in the physics.
    """
    burns = ("cpu_burn_seconds", "gpu_burn_seconds", "all_burn_seconds")
    shorter = {name: min(MOST_BURN_S, getattr(profile, name)) for name in burns}
    return profile.model_copy(update={"sample_hz": 1.0, "early_stop": False, **shorter})


def _inventory(folder: Path, rig_class: str, count: int) -> Path:
    shipped = assets.starter_inventory_dir() / "group_vars"
    for group in ("all", f"class_{rig_class}"):
        shutil.copytree(shipped / group, folder / "group_vars" / group)
    names = [f"rig{number:03d}" for number in range(1, count + 1)]
    hosts = {name: {"ansible_host": f"192.0.2.{number}"} for number, name in enumerate(names, start=1)}
    _dump(folder / "rigs.yml", {"all": {"children": {f"class_{rig_class}": {"hosts": hosts}}}})
    for name in names:
        _dump(folder / "host_vars" / name / "spec.yml", {"rig_spec_host": OF_RIG})
    return folder


def _dump(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
