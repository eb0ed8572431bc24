"""Throughput: gpu-burn's rate, the CPU burner's verification, and training at the spec's pace."""

from __future__ import annotations

import json
import math
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from rigctl.checks import load
from rigctl.checks.burn import Burn, burns
from rigctl.checks.cards import each_card
from rigctl.checks.curve import Curve, read_curve
from rigctl.checks.rates import Rate, declared, history, judge_rate
from rigctl.checks.say import Say
from rigctl.parse import ParseError, stress_ng

if TYPE_CHECKING:
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import ProfileSpec, RigSpec, TrainingSpec
    from rigctl.model.verdict import CheckVerdict

_SETTLED = 2 / 3
_EARLY = (0.15, 0.50)
"""Where drift begins: every worker has started, and nothing is hot yet."""
_DRIFT_NEEDS_S = 120
"""Coolant and memory take minutes to warm up: a shorter burn tells no drift, only the noise of its few rows."""
_MINUTE_S = 60.0
_SHORT = 0.95
MOST_TOKENS_PER_S = 1e8
"""No rig trains the smallest of our models as fast."""
_STRESS_NG_FAILED = 2
"""stress-ng(1), exit status: one or more stressors failed, which with --verify means wrong sums. Every other one
(wrong options, no resources, killed) says nothing of the CPU.
"""


def burn_gflops(spec: RigSpec, readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """Each card's median rate in the last third of the GPU burn, and how far it fell from the burn's beginning."""
    least = spec.limits.min_burn_gflops
    say = Say("throughput.burn_gflops", "rig", least, "Gflop/s", spec.source("limits.min_burn_gflops"))
    burn = next((burn for burn in burns(readings, profile) if burn.step == "gpu_burn"), None)

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        if burn is None or burn.log is None:
            return say.error(*load.why_no_load(readings, "gpu_burn"))
        worker = next((card.index for card in burn.log.cards if card.uuid == gpu.uuid), None)
        rates = [] if worker is None else burn.log.gflops(worker, from_percent=burn.percent(_SETTLED))
        if worker is None or not rates:
            reason = "gpu-burn reported no rate of the card in the burn's last third"
            return say.error(reason, f"see gpu_burn.log of {readings.rig} in the run directory")
        found = median(rates)
        if least is not None and found < least:
            reason = f"{found:,.0f} Gflop/s in the burn's last third, at least {least:,.0f} were expected"
            return say.failed(reason, found, "see temperature, throttle reasons and power limit first, then PCIe lanes")
        begin, end = (burn.percent(share) for share in _EARLY)
        first = burn.log.gflops(worker, from_percent=begin, to_percent=end)
        drifted = _drift(say, spec, burn.asked_s, first, found)
        if drifted := drifted or _settled_drift(say, spec, readings, gpu, burn):
            return drifted
        reason = f"{found:,.0f} Gflop/s in the burn's last third"
        return say.unlearned(reason, found, readings.rig) if least is None else say.passed(reason, found)

    return each_card(say, spec, readings, judge)


def _settled_drift(say: Say, spec: RigSpec, readings: Readings, gpu: GpuFacts, burn: Burn) -> CheckVerdict | None:
    """Say that the rate fell from the first settled minute to the last one, in a burn that shows both."""
    curve = read_curve(readings, "gpu_burn", gpu.uuid)
    if burn.log is None or not isinstance(curve, Curve) or not curve.steady:
        return None
    begin_s, end_s = curve.steady_after_s, curve.seconds
    if end_s - begin_s < 2 * _MINUTE_S:
        return None
    worker = next((card.index for card in burn.log.cards if card.uuid == gpu.uuid), None)
    spans = ((begin_s, begin_s + _MINUTE_S), (end_s - _MINUTE_S, end_s))
    rates = [
        [] if worker is None else burn.log.gflops(worker, from_percent=low, to_percent=high)
        for low, high in ((100 * low_s / burn.asked_s, 100 * high_s / burn.asked_s) for low_s, high_s in spans)
    ]
    return _drift(say, spec, burn.asked_s, rates[0], median(rates[1])) if rates[1] else None


def _drift(say: Say, spec: RigSpec, asked_s: float, first: list[float], found: float) -> CheckVerdict | None:
    """Say that the rate fell further than the spec allows; a short burn is over before anything is warm."""
    most = spec.limits.max_burn_gflops_drift
    if most is None or not first or median(first) <= 0 or asked_s < _DRIFT_NEEDS_S:
        return None
    drift = 1 - found / median(first)
    if drift <= most:
        return None
    reason = f"the rate fell by {drift:.1%} during the burn, to {found:,.0f} Gflop/s; {most:.1%} is the limit"
    drifted = Say(say.check, say.subject, most, "share", spec.source("limits.max_burn_gflops_drift"))
    return drifted.failed(reason, drift, "heat builds up: check the cooling, then the room")


def cpu_burn(readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """stress-ng checked its own sums, found no error, and ran as long as asked, in every step that burns the CPU."""
    say = Say("throughput.cpu_burn", expected="no error", source="stress-ng --verify checks its own sums")
    files = {"cpu_burn": "cpu_burn", "all_burn": "all_burn_cpu"}
    steps = [step for step in files if load.asked_seconds(profile, step) > 0]
    for step in steps:
        if bad := _cpu_step(say, readings, step, files[step], load.asked_seconds(profile, step)):
            return [bad]
    ops = [_metrics(readings, files[step]) for step in steps]
    rates = ", ".join(f"{m.bogo_ops_per_s:,.0f} bogo-ops/s in {step}" for m, step in zip(ops, steps, strict=True) if m)
    return [say.passed(f"no error: {rates}", "no error")]


def _cpu_step(say: Say, readings: Readings, step: str, stem: str, asked_s: float) -> CheckVerdict | None:
    exited = next((e for e in load.events(readings, "load_exited", step) if e.detail.get("load") == "cpu"), None)
    look = f"see {stem}.log of {readings.rig} in the run directory"
    stopped = load.events(readings, "guard_stopped", step)
    status = exited.detail.get("exit_status") if exited else None
    if status == _STRESS_NG_FAILED:
        reason = f"stress-ng ended with status {status} in step {step}{_complaint(readings, stem)}"
        return say.failed(
            reason, f"status {status}", "CPU or memory computed wrongly: undo overclocks, run a memory test"
        )
    if exited is None or stopped or exited.detail.get("overran"):
        no_load = load.why_no_load(readings, step)
        return say.error(no_load.reason, no_load.fix)
    if status != 0:
        return say.error(f"stress-ng ended with status {status} in step {step}{_complaint(readings, stem)}", look)
    return _cpu_work(say, readings, step, stem, asked_s)


def _cpu_work(say: Say, readings: Readings, step: str, stem: str, asked_s: float) -> CheckVerdict | None:
    """What stress-ng's own report lacks, if anything."""
    look = f"see {stem}.log of {readings.rig} in the run directory"
    try:
        metrics = _metrics(readings, stem)
    except ParseError as error:
        return say.error(str(error), look)
    if metrics is None or metrics.bogo_ops <= 0:
        return say.error(f"stress-ng reported no work in step {step}", look)
    if metrics.wall_s < asked_s * _SHORT:
        return say.error(f"stress-ng ran {metrics.wall_s:.0f} s in step {step}, asked were {asked_s:.0f} s", look)
    return None


def _metrics(readings: Readings, stem: str) -> stress_ng.StressorMetrics | None:
    found = stress_ng.parse(readings.logs.get(f"{stem}.yaml", ""))
    return next((metrics for metrics in found if metrics.stressor.startswith("cpu")), None)


def _complaint(readings: Readings, stem: str) -> str:
    lines = readings.logs.get(f"{stem}.log", "").splitlines()
    said = next((line.strip() for line in lines if "fail" in line.lower() or "error" in line.lower()), "")
    return f": {said[:200]}" if said else ""


def training(spec: RigSpec, readings: Readings, baseline: Baseline | None = None) -> list[CheckVerdict]:
    """Training runs at the spec's pace and its own, on the device that the spec names and on no other."""
    asked, key = spec.training, "training.min_tokens_per_s"
    say = Say("throughput.training", unit="tokens/s", source=spec.source(key))
    if asked is None:
        return [say.skipped("the spec names no training workload")]
    trained = trained_tokens(say, spec, readings)
    if not isinstance(trained, Trained):
        return [trained]
    about = f"{asked.model} on {asked.device}" + ("; the floor is provisional" if asked.provisional else "")
    floors = (declared(spec, key, asked.min_tokens_per_s), history(spec, baseline, say.check))
    return [judge_rate(say, Rate(trained.tokens_per_s, about), floors, _slow(asked), readings.rig)]


class Trained(NamedTuple):
    """What step `train` showed."""

    tokens_per_s: float
    uuid: str | None
    """Of the card, where this version of torch tells it."""


def trained_tokens(say: Say, spec: RigSpec, readings: Readings) -> Trained | CheckVerdict:
    """Return what step `train` showed, or the verdict that there is nothing to judge."""
    trained, bad = _train_json(say, readings)
    if trained is None or spec.training is None:
        return bad or say.error(*_no_training(readings))
    if misfit := _other_workload(spec.training, trained):
        fix = f"rigctl accept {readings.rig}; the workload is never run on another device instead"
        return say.error(misfit, fix)
    found, uuid = trained["tokens_per_s"], trained.get("device_uuid")
    if not 0 < found < MOST_TOKENS_PER_S:
        return say.error(f"{found:g} tokens/s are no rate", f"see train.log of {readings.rig} in the run directory")
    return Trained(float(found), uuid if isinstance(uuid, str) else None)


def _train_json(say: Say, readings: Readings) -> tuple[dict[str, Any] | None, CheckVerdict | None]:
    """Return what training wrote, or the verdict that there is nothing to judge."""
    text = readings.logs.get("train.json")
    if not text:
        return None, None
    look = f"see train.log of {readings.rig} in the run directory"
    try:
        trained = json.loads(text)
    except ValueError:
        return None, say.error("train.json is no JSON", look)
    if not isinstance(trained, dict):
        return None, say.error("train.json has an unknown form", look)
    if "error" in trained:
        return None, say.error(f"training failed: {trained['error']}", str(trained.get("hint") or look))
    figures = [trained.get("tokens_per_s"), trained.get("loss_last")]
    if not all(isinstance(f, int | float) and math.isfinite(f) for f in figures):
        return None, say.error("training reported no finite rate and loss", look)
    return trained, None


def _no_training(readings: Readings) -> load.NoLoad:
    """Say why training wrote nothing: it was not begun, was killed, or ended by itself, and then how."""
    exited = next(iter(load.events(readings, "load_exited", "train")), None)
    if exited is None or exited.detail.get("overran") or load.events(readings, "guard_stopped"):
        return load.why_no_load(readings, "train")
    reason = f"training ended with status {exited.detail.get('exit_status')} and wrote no figures"
    return load.NoLoad(reason, f"see train.log of {readings.rig} in the run directory")


def _other_workload(asked: TrainingSpec, trained: dict[str, Any]) -> str | None:
    for key, wanted in (("device", asked.device), ("model", asked.model)):
        if str(trained.get(key, "")).partition(":")[0] != wanted:
            return f"training ran with {key} {trained.get(key)!r}, the spec names {wanted!r}"
    return None


def _slow(asked: TrainingSpec) -> str:
    if asked.device == "cpu":
        return "is something else running, or is the CPU held back by quota, governor or heat?"
    return "see temperature, throttle reasons and power limit first, then PCIe lanes; compare the two cards"
