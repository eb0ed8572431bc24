"""From a rig's identity (JSON) to the parts that the physics works with."""

from __future__ import annotations

import random
from typing import Any

from .physics import Card, CardParts, Machine, MachineParts


def build_machine(identity: dict[str, Any], seed: int = 0) -> Machine:
    """A cold rig with every card of its identity, at the default power limit."""
    ambient_c = float(identity["machine"]["ambient_c"])
    cards = [build_card(identity, own, seed) for own in identity["cards"]]
    machine = Machine(parts=_machine_parts(identity), cards=cards, coolant_c=ambient_c, room_c=ambient_c)
    machine.cpu_temp_c = ambient_c + machine.parts.cpu_r_c_per_w * machine.cpu_w
    return machine


def build_card(identity: dict[str, Any], own: dict[str, Any], seed: int) -> Card:
    """One card, cold. Its conductance is what makes it settle where the class says that it settles."""
    common = identity["card"]
    coolant_c = float(identity["loop"]["settled_coolant_c"])
    parts = CardParts(
        slot=int(own["slot"]),
        idle_w=float(own["idle_w"]),
        burn_w=float(own["burn_w"]),
        settled_temp_c=float(own["settled_temp_c"]),
        conductance_w_per_c=float(own["burn_w"]) / (float(own["settled_temp_c"]) - coolant_c),
        stagnant_w_per_c=float(common["stagnant_w_per_c"]),
        capacity_j_per_c=float(common["capacity_j_per_c"]),
        temp_target_c=float(common["temp_target_c"]),
        temp_slowdown_c=float(common["temp_slowdown_c"]),
        temp_shutdown_c=float(common["temp_shutdown_c"]),
        sm_idle_mhz=int(common["sm_idle_mhz"]),
        sm_burn_mhz=int(common["sm_burn_mhz"]),
        burn_gflops=float(common["burn_gflops"]) * float(own["gflops_factor"]),
        hotspot_over_c=float(common.get("hotspot_over_core_c", 0.0)),
        fan_curve=tuple((float(temp_c), float(pct)) for temp_c, pct in common.get("fan_curve", ())),
    )
    return Card(
        parts=parts,
        temp_c=float(identity["machine"]["ambient_c"]),
        limit_w=float(common["power_default_w"]),
        power_w=parts.idle_w,
        sm_mhz=parts.sm_idle_mhz,
        noise=random.Random(f"{seed}:{own['uuid']}"),  # noqa: S311 (sensor noise, to be repeatable)
    )


def _machine_parts(identity: dict[str, Any]) -> MachineParts:
    machine, cpu, loop = identity["machine"], identity["cpu"], identity["loop"]
    rise_c = float(loop["settled_coolant_c"]) - float(machine["ambient_c"])
    return MachineParts(
        ambient_c=float(machine["ambient_c"]),
        coolant_conductance_w_per_c=sum(float(card["burn_w"]) for card in identity["cards"]) / rise_c,
        coolant_capacity_j_per_c=float(loop["capacity_j_per_c"]),
        cpu_idle_w=float(cpu["idle_w"]),
        cpu_full_w=float(cpu["full_w"]),
        cpu_r_c_per_w=float(cpu["r_c_per_w"]),
        cpu_tau_s=float(cpu["tau_s"]),
        rest_w=float(machine["rest_w"]),
        rest_per_w=float(machine["rest_per_w"]),
        supply_efficiency=tuple((float(x), float(y)) for x, y in machine["supply_efficiency"]),
    )
