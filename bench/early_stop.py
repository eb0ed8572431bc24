"""Whether a burn that ends early gets the verdict of the whole ten minutes, and how much time that saves.

Hundreds of burns through the physics, in process, judged by the same checks: healthy rigs in cold and warm rooms, with
some dust and some age, and every fault of the cooling in every degree. Faults that begin in the middle of a burn are
not among them: what begins after the end nobody sees, and `full` and `soak` never end early for that reason.
"""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any

from bench.figure import Figure, figure
from rigctl.checks import burn as oracle
from rigctl.checks import cooling, early, fans, power, thermals, throughput
from rigctl.model.baseline import Baseline
from rigctl.model.baseline import Figure as Known
from rigctl.model.spec import LimitsSpec, PartsSpec, ProfileSpec, RigSpec, SoftwareSpec
from rigctl.sim.burns import Burn, cut
from rigctl.sim.machine.hardware.rigsim.identity import load_template, make_identity

if TYPE_CHECKING:
    from bench.stage import Stage
    from rigctl.model.reading import Readings
    from rigctl.model.verdict import CheckVerdict

NAME = "early_stop"
CASES = 200
RIGS = 20
HEALTHY_SHARE = 0.6
BURN_S = 600.0
EVERY_S = 10
PROFILE = ProfileSpec(
    idle_seconds=30,
    cpu_burn_seconds=0,
    gpu_burn_seconds=BURN_S,
    all_burn_seconds=0,
    train=False,
    sample_hz=1,
    early_stop=True,
)
LIMIT_W = 480.0
SPEC = RigSpec(
    rig_class="dual_3090ti",
    parts=PartsSpec(gpu_count=2, gpu_model="NVIDIA GeForce RTX 3090 Ti", min_gpu_memory_mib=24564),
    limits=LimitsSpec(
        max_settled_gpu_temp_c=65,
        guard_max_gpu_temp_c=85,
        max_gpu_temp_spread_c=8,
        max_gpu_c_per_w=0.10,
        max_rest_temp_c=35,
        min_power_share_of_limit=0.90,
        min_burn_gflops=25_000,
        max_burn_gflops_drift=0.03,
    ),
    software=SoftwareSpec(
        driver_branch="515",
        cuda_version="11.7",
        torch_version="auto",
        torch_build="auto",
        gpu_burn_dir="/opt/gpuburn",
        torch_venv="/opt/torch",
    ),
)
"""As the shipped class of the reference rig."""


def verdicts(readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Judge all that a GPU burn alone shows."""
    return [
        *fans.fans(SPEC, readings, baseline),
        *cooling.resistance(SPEC, readings, baseline),
        *cooling.rest_temp(SPEC, readings, PROFILE),
        *thermals.settled_gpu_temp(SPEC, readings),
        *cooling.card_spread(SPEC, readings),
        *thermals.steady_state(SPEC, readings, PROFILE),
        *thermals.throttle(SPEC, readings, PROFILE),
        *power.share_of_limit(SPEC, readings),
        *throughput.burn_gflops(SPEC, readings, PROFILE),
        *oracle.oracle(SPEC, readings, PROFILE),
    ]


def baseline_of(readings: Readings) -> Baseline:
    """Return what a healthy burn of the same rig has shown."""
    assert readings.facts is not None  # noqa: S101 - a burn always tells
    uuids = {gpu.subject: gpu.uuid for gpu in readings.facts.gpus}
    known = tuple(
        Known(check=v.check, subject=uuids.get(v.subject, v.subject), found=float(v.found), unit=v.unit)
        for v in verdicts(readings, None)
        if isinstance(v.found, int | float)
    )
    return Baseline(
        run_id="accepted",
        profile="standard",
        ended_at="2026-11-01T02:00:00Z",
        facts=readings.facts,
        figures=known,
        runs=1,
    )


def identity_of(rig: int) -> dict[str, Any]:
    """Return one rig of the class: no two cards draw or cool quite alike."""
    made = copy.deepcopy(make_identity(load_template("dual_3090ti"), f"rig{rig}", seed=rig))
    varied = random.Random(rig)  # noqa: S311 - board variance, to be repeatable
    for card in made["cards"]:
        card["burn_w"] *= varied.uniform(0.99, 1.01)
        card["settled_temp_c"] += varied.uniform(-1.5, 1.5)
        card["gflops_factor"] *= varied.uniform(0.99, 1.01)
    return made


def case(number: int) -> tuple[tuple[tuple[str, dict[str, str]], ...], float, float]:
    """Return the faults, room and power limit of one night."""
    chance = random.Random(f"night {number}")  # noqa: S311 - nights, to be repeatable
    room_c = chance.uniform(16, 30)
    if chance.random() < HEALTHY_SHARE:
        age = (
            ("air_blocked", {"pct": str(chance.randint(80, 100))}),
            ("pump_weak", {"pct": str(chance.randint(85, 100))}),
        )
        return age, room_c, LIMIT_W
    faults: list[tuple[str, dict[str, str]]] = [
        ("pump_weak", {"pct": str(chance.randint(15, 70))}),
        ("plate_badly_seated", {"pct": str(chance.randint(35, 90)), "slot": str(chance.randint(1, 2))}),
        ("air_blocked", {"pct": str(chance.randint(10, 70))}),
        ("room_warm", {"celsius": str(chance.randint(28, 42))}),
        ("fan_stuck", {}),
        ("tachometer_lies", {}),
        ("limit", {}),
    ]
    name, words = chance.choice(faults)
    if name == "limit":
        return (), room_c, float(chance.randint(300, 470))
    return ((name, words),), room_c, LIMIT_W


def ended(whole: Readings, baseline: Baseline) -> tuple[Readings, float]:
    """Return the burn as it would have ended, and after how many seconds."""
    begin = whole.of_step("gpu_burn")[0].t_mono_s
    for seconds in range(int(early.LEAST_S), int(BURN_S), EVERY_S):
        so_far = cut(whole, seconds, "so far").model_copy(update={"events": ()})
        if early.certain(SPEC, PROFILE, so_far, baseline) is not None:
            return cut(whole, seconds, "its verdict was certain"), float(seconds)
    return whole, whole.of_step("gpu_burn")[-1].t_mono_s - begin + 1


def same(one: list[CheckVerdict], other: list[CheckVerdict]) -> bool:
    """Whether every check says the same of every subject."""
    return {v.key: v.verdict for v in one} == {v.key: v.verdict for v in other}


def measure(stage: Stage) -> list[Figure]:
    """Compare all nights; needs no rig of the stage."""
    del stage
    return compare(CASES)


def compare(cases: int) -> list[Figure]:
    """Burn, end early, compare."""
    rigs = [identity_of(rig) for rig in range(min(RIGS, cases))]
    known = [baseline_of(Burn(identity, limit_w=LIMIT_W, seed=rig).run()) for rig, identity in enumerate(rigs)]
    agreed, seconds, good = 0, [], 0
    for number in range(cases):
        rig = number % len(rigs)
        faults, room_c, limit_w = case(number)
        whole = Burn(rigs[rig], faults, room_c=room_c, limit_w=limit_w, seed=1000 + number).run()
        short, ended_s = ended(whole, known[rig])
        full = verdicts(whole, known[rig])
        agreed += same(full, verdicts(short, known[rig]))
        good += all(v.verdict.value in ("pass", "blind", "skip") for v in full)
        seconds.append(ended_s / BURN_S)
    how = (
        f"{cases} burns of ten minutes through the physics of simulated rigs, in process ({good} of them well, the "
        "others with a fault of the cooling or a low power limit, in every degree), judged whole and ended early by "
        "the same checks; faults that begin in the middle of a burn are not among them"
    )
    return [
        figure("early stop: same verdicts as the whole burn", [100 * agreed / cases], "%", how, goal=("≥", 99)),
        figure("early stop: share of the burn's time", [100 * share for share in seconds], "%", how, goal=("≤", 50)),
    ]
