"""What the cards compute: each limit from both sides, history and twins, what cannot be, and what follows from what."""

from __future__ import annotations

import json

import pytest

from rigctl.checks import compute, gpu_memory, joules, losses, rates, second_opinion, throughput, training
from rigctl.checks.say import Say
from rigctl.model.baseline import Baseline, Recent
from rigctl.model.peaks import MOST_OF_PEAK, PEAKS
from rigctl.model.verdict import Verdict

from . import healthy as h
from . import healthy_compute as c
from .test_healthy import all_verdicts

CARD1, CARD2 = h.SLOT1, h.SLOT2
FP16 = "throughput.matmul_fp16"
PASS, FAIL, ERROR, WARN, SKIP, BLIND = (
    Verdict.PASS,
    Verdict.FAIL,
    Verdict.ERROR,
    Verdict.WARN,
    Verdict.SKIP,
    Verdict.BLIND,
)


def told(**files):
    return h.readings(logs=h.with_logs(**{f"{name}__json": text for name, text in files.items()}))


def of(check, text, spec=None, baseline=None):
    return {v.subject: v for v in compute.rate(check, spec or h.spec(), told(compute=text), baseline)}


def computing(**changes):
    return h.spec(compute=h.spec().compute.model_copy(update=changes))


def trained(**changes):
    return told(train_all=c.train_all(**changes))


def asking(**changes):
    return h.spec(training=h.spec().training.model_copy(update=changes))


def accepted(check, found, subject=h.UUIDS[1]):
    base = h.baseline()
    return base.model_copy(update={"recent": (Recent(check=check, subject=subject, found=tuple(found)),)})


@pytest.mark.parametrize(("rate", "verdict"), [(75.6, PASS), (75.59, FAIL)])
def test_a_declared_floor_is_kept_by_what_reaches_it(rate, verdict):
    text = c.compute(*(c.card(i, matmul_fp16=rate) for i in range(2)))
    assert of(FP16, text)[CARD2].verdict is verdict


@pytest.mark.parametrize(("rate", "verdict"), [(90.0, PASS), (89.99, FAIL)])
def test_a_card_keeps_up_with_its_own_accepted_runs(rate, verdict):
    bare = computing(min_matmul_fp16_tflops=None)
    text = c.compute(c.card(0, matmul_fp16=90), c.card(1, matmul_fp16=rate))
    found = of(FP16, text, bare, accepted(FP16, [100.0]))[CARD2]
    assert found.verdict is verdict
    assert found.expected == 90.0
    assert "accepted run" in found.source


@pytest.mark.parametrize(
    ("runs", "floor"),
    [
        ([80.0] * 4, 72.0),  # too few to know how far repeats differ
        ([80.0] * 5, 77.6),  # alike: 3 %
        ([80.0, 80.0, 80.0, 80.0, 81.0], 78.0),  # below 3 %: 2 × 1/80 = 2.5 %, so 3 %: 77.6
        ([80.0, 80.0, 80.0, 80.0, 82.0], 76.0),  # 2 × 2/80
        ([80.0, 80.0, 80.0, 80.0, 90.0], 72.0),  # never more than 10 %
        ([80.0, 50.0, 81.0], 72.0),  # the median: one bad run says little
    ],
)
def test_from_five_runs_on_their_own_range_says_how_far_a_rate_may_fall(runs, floor):
    found = rates.history(h.spec(), accepted(FP16, runs), FP16, h.UUIDS[1])
    assert found.least == pytest.approx(77.6 if floor == 78.0 else floor)
    assert rates.history(h.spec(), None, FP16) is None
    assert rates.history(h.spec(), h.baseline(), FP16) is None


@pytest.mark.parametrize(("rate", "verdict"), [(76.5, PASS), (76.4, FAIL)])
def test_a_card_keeps_up_with_its_twin(rate, verdict):
    text = c.compute(c.card(0, matmul_fp16=85), c.card(1, matmul_fp16=rate))
    found = of(FP16, text)[CARD2]
    assert found.verdict is verdict
    assert "twin" in found.reason or verdict is PASS


def test_the_median_of_the_other_cards_counts_and_cards_of_another_model_do_not():
    spec, known = h.spec(), {"a": 100.0, "b": 90.0, "c": 10.0, "d": 95.0}
    floor = rates.twins(spec, known, "c")
    assert floor.least == pytest.approx(95 * 0.9)
    assert "twins" in floor.words
    assert rates.twins(spec, {"a": 100.0}, "a") is None
    other = h.gpu(1, name="NVIDIA GeForce RTX 3090")
    assert rates.alike([h.gpu(0), other], {h.UUIDS[0]: 80.0, h.UUIDS[1]: 70.0}, other) == {h.UUIDS[1]: 70.0}


def test_without_any_floor_a_rate_is_shown_and_nothing_judged_it():
    say = Say("throughput.layer", unit="TFLOP/s")
    alone = rates.judge_rate(say, rates.Rate(60.0, ""), (None, None, None), "fix", "rig1")
    assert alone.verdict is WARN
    assert alone.found == 60.0
    twin = rates.Floor(50.0, "as its twin does 55", "twins")
    assert rates.judge_rate(say, rates.Rate(60.0, ""), (None, None, twin), "fix", "rig1").verdict is WARN
    assert rates.judge_rate(say, rates.Rate(49.0, ""), (None, None, twin), "fix", "rig1").verdict is FAIL
    own = rates.Floor(50.0, "as declared", "spec")
    loose = rates.judge_rate(say, rates.Rate(60.0, "x", settled=False), (own, None), "fix", "rig1")
    assert (loose.verdict, "come to rest" in loose.reason) == (WARN, True)
    slow = rates.judge_rate(say, rates.Rate(40.0, "x", settled=False), (own, None), "fix", "rig1")
    assert slow.verdict is FAIL


def test_the_tightest_floor_is_the_one_that_is_told():
    floors = (rates.Floor(50.0, "as declared", "spec"), rates.Floor(55.0, "after 60", "history"))
    found = rates.judge_rate(Say("throughput.layer", unit="TFLOP/s"), rates.Rate(52.0, ""), floors, "fix", "rig1")
    assert (found.verdict, found.expected, found.source) == (FAIL, 55.0, "history")


PEAK = PEAKS[h.MODEL].fp16_tflops
LIMIT = MOST_OF_PEAK * PEAK
BAD_FIGURES = [
    c.figure(LIMIT + 0.01),
    c.figure(80.0, blocks=[80.0, 80.0, 80.0]),
    c.figure(80.0, blocks=[70.0, 71.0, 72.0]),
    c.figure(80.0, blocks=[81.0, 82.0, 83.0]),
    c.figure(80.0, blocks=[79.0, 81.0]),
    c.figure(-80.0),
    c.figure(0.0),
    c.figure(1e6),
    c.figure(80.0, blocks=["N/A"] * 3),
    c.figure(80.0, settled=None),
    {"blocks": [79.0, 80.0, 81.0], "settled": True},
]


@pytest.mark.parametrize("figure", BAD_FIGURES)
def test_what_cannot_have_been_measured_is_an_error(figure):
    found = of(FP16, c.compute(c.card(0), c.card(1, matmul_fp16=figure)))
    assert {v.verdict for subject, v in found.items() if subject != CARD1} == {ERROR}
    assert all(v.fix for v in found.values() if v.verdict is ERROR)


@pytest.mark.parametrize("blocks", [[80.0, 80.5, 81.0], [79.0, 79.5, 80.0]])
def test_a_median_may_be_the_first_or_the_last_of_its_blocks(blocks):
    found = of(FP16, c.compute(c.card(0), c.card(1, matmul_fp16=c.figure(80.0, blocks=blocks))))
    assert found[CARD2].verdict is PASS


def test_the_peak_itself_with_its_margin_can_be():
    found = of(FP16, c.compute(c.card(0, matmul_fp16=LIMIT), c.card(1, matmul_fp16=LIMIT)))
    assert found[CARD2].verdict is PASS
    assert "125% of the card's 80" in found[CARD2].reason


def test_an_absurd_twin_is_no_twin():
    found = of(FP16, c.compute(c.card(0, matmul_fp16=900.0), c.card(1)))
    assert (found[CARD1].verdict, found[CARD2].verdict) == (ERROR, PASS)


OTHERS = {
    "another device": c.compute(device="cpu"),
    "another card": c.compute(c.card(0), c.card(1) | {"uuid": "GPU-0000"}),
    "one card twice": c.compute(c.card(0), c.card(0)),
    "a card less": c.compute(c.card(0)),
    "a figure less": c.compute(c.card(0), c.card(1) | {"figures": {}}),
    "its own error": json.dumps({"error": "torch: CUDA error", "hint": "see kernel.xid"}),
    "nothing": "{}",
    "no JSON": "Traceback",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_another_device_or_card_and_broken_answers_are_errors(text):
    found = of(FP16, text)
    assert ERROR in {v.verdict for v in found.values()}
    assert CARD2 not in found or found[CARD2].verdict is ERROR


def test_a_card_that_torch_does_not_name_counts_by_its_slot():
    found = of(FP16, c.compute(*(c.card(i) | {"uuid": None} for i in range(2))))
    assert {v.verdict for v in found.values()} == {PASS}


def test_on_the_processor_there_is_one_figure_and_no_twin():
    spec = computing(device="cpu", min_matmul_fp16_tflops=0.5)
    one = c.card(0, matmul_fp16=0.6) | {"slot": None, "uuid": None}
    assert of(FP16, c.compute(one, device="cpu"), spec)["rig"].verdict is PASS
    assert of(FP16, c.compute(one, device="cuda"), spec)["rig"].verdict is ERROR
    assert of(FP16, c.compute(one, one, device="cpu"), spec)["rig"].verdict is ERROR


# The memory test


def of_memory(**changes):
    text = c.gpu_memory(c.tested(0), c.tested(1, **changes))
    return {v.subject: v for v in gpu_memory.gpu_memory(h.spec(), told(gpu_memory=text))}[CARD2]


ONE_ERROR = [{"pattern": "walking ones, turn 3", "address": 4096, "expected": "00000200", "found": "00000000"}]


def test_one_wrong_word_fails_and_is_located():
    bits = [0] * 32
    bits[9] = 1
    found = of_memory(wrong_words=1, wrong_bits=bits, errors=ONE_ERROR)
    assert (found.verdict, found.found) == (FAIL, 1)
    for word in ("0x1000", "walking ones, turn 3", "00000000 instead of 00000200", "bit 9 alone"):
        assert word in found.reason
    bits[3] = 2
    assert "2 bits of a word" in of_memory(wrong_words=1, wrong_bits=bits, errors=ONE_ERROR).reason


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"tested_mib": 0.8 * 24564}, PASS),
        ({"tested_mib": 0.8 * 24564 - 1}, ERROR),
        ({"tested_mib": 24564.0}, PASS),
        ({"tested_mib": 24565.0}, ERROR),
        ({"wrong_words": 250, "compared_bytes": 1000}, FAIL),
        ({"wrong_words": 251, "compared_bytes": 1000}, ERROR),
        ({"compared_bytes": 0}, ERROR),
        ({"wrong_words": -1}, ERROR),
        ({"wrong_words": None}, ERROR),
        ({"tested_mib": "N/A"}, ERROR),
    ],
)
def test_memory_is_tested_in_all_but_a_small_rest(changes, verdict):
    text = c.gpu_memory(c.tested(0), c.tested(1, **changes))
    found = {v.subject: v for v in gpu_memory.gpu_memory(h.spec(), told(gpu_memory=text))}
    assert found.get(CARD2, found.get("rig")).verdict is verdict


def test_memory_that_nvml_does_not_tell_is_that_which_torch_sees():
    text = c.gpu_memory(*(c.tested(i, total_mib=21504.0) for i in range(2)))
    silent = h.facts(gpus=tuple(h.gpu(i, memory_mib=None) for i in range(2)))
    readings = told(gpu_memory=text).model_copy(update={"facts": silent})
    assert {v.verdict for v in gpu_memory.gpu_memory(h.spec(), readings)} == {PASS}


def test_memory_of_another_device_is_an_error():
    (found,) = gpu_memory.gpu_memory(h.spec(), told(gpu_memory=c.gpu_memory(device="cpu")))
    assert found.verdict is ERROR


# Training on all cards


def each(spec=None, baseline=None, **changes):
    return {v.subject: v for v in training.each(spec or h.spec(), trained(**changes), baseline)}


@pytest.mark.parametrize(("rate", "verdict"), [(7146.0, PASS), (7145.0, FAIL)])
def test_a_card_trains_as_fast_as_its_twin(rate, verdict):
    found = each(alone=[c.alone(0, tokens_per_s=7940.0), c.alone(1, tokens_per_s=rate)])
    assert found[CARD2].verdict is verdict
    assert "of its dense peak" in found[CARD2].reason


@pytest.mark.parametrize(
    ("check", "changes", "verdict"),
    [
        (training.together, {"together": c.together(12_065.0)}, PASS),
        (training.together, {"together": c.together(12_064.9)}, FAIL),
        (training.scaling, {"together": c.together(0.81 * 15_820)}, PASS),
        (training.scaling, {"together": c.together(0.8099 * 15_820)}, FAIL),
        (training.scaling, {"together": c.together(1.1 * 15_820)}, PASS),
        (training.scaling, {"together": c.together(1.101 * 15_820)}, ERROR),
        (training.p2p_gain, {"without_p2p": c.together(15_030 / 1.04)}, PASS),
        (training.p2p_gain, {"without_p2p": c.together(15_030 / 1.0399)}, FAIL),
        (training.p2p_gain, {"without_p2p": None}, ERROR),
        (training.together, {"together": c.together(-1.0)}, ERROR),
        (training.together, {"together": c.together(5e7)}, ERROR),
        (training.together, {"together": None}, ERROR),
        (training.together, {"model": "gpt_tiny"}, ERROR),
        (training.together, {"device": "cpu"}, ERROR),
        (training.together, {"ranks": 3}, ERROR),
        (training.together, {"ranks": 1}, ERROR),
    ],
)
def test_all_cards_together(check, changes, verdict):
    (found,) = check(h.spec(), trained(**changes), None)
    assert found.verdict is verdict, found
    assert found.fix or verdict is PASS


def test_history_holds_for_the_rig_as_a_whole():
    bare = asking(min_all_tokens_per_s=None)
    known = accepted("throughput.train_all", [20_000.0], "rig")
    (found,) = training.together(bare, trained(), known)
    assert (found.verdict, found.expected) == (FAIL, 18_000.0)
    (unknown,) = training.together(bare, trained(), None)
    assert unknown.verdict is WARN


def test_tokens_per_joule_of_all_cards_are_told_where_power_was_read():
    samples = tuple(one.model_copy(update={"step": "train_all"}) if one.step == "train" else one for one in h.samples())
    readings = trained().model_copy(update={"samples": samples})
    (found,) = training.together(h.spec(), readings, None)
    assert f"{15_030 / 885:.3g} tokens/J at the cards" in found.reason
    assert f"{15_030 / 1110:.3g} tokens/J at the wall" in found.reason
    few = tuple(one for one in samples if one.step != "train_all" or 1059 <= one.t_mono_s < 1060)
    (found,) = training.together(h.spec(), readings.model_copy(update={"samples": few}), None)
    assert "tokens/J" not in found.reason


@pytest.mark.parametrize(
    "spec",
    [h.spec(training=None), asking(device="cpu"), h.spec(parts={"gpu_count": 1})],
    ids=["no training", "on the CPU", "one card"],
)
def test_nothing_to_train_together_is_a_skip(spec):
    for check in (training.each, training.together, training.scaling, training.p2p_gain):
        assert {v.verdict for v in check(spec, trained(), None)} == {SKIP}
    assert {v.verdict for v in losses.loss(spec, trained())} == {SKIP}


def test_cards_that_nothing_joins_have_no_p2p_to_gain_from():
    none = h.spec().parts.links[0].model_copy(update={"kind": "none", "links": 0})
    for links in ((), (none,)):
        (found,) = training.p2p_gain(h.spec(parts={"links": links}), trained(), None)
        assert found.verdict is SKIP
    (found,) = training.p2p_gain(h.spec(parts={"links": (), "nvswitch_links": 12}), trained(), None)
    assert found.verdict is PASS


# Losses


def losses_of(**changes):
    return {v.subject: v for v in losses.loss(h.spec(), trained(alone=[c.alone(0), c.alone(1, **changes)]))}[CARD2]


L = c.LOSSES


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"repeated_losses": [L[0], L[1] * 1.00101]}, FAIL),
        ({"repeated_losses": [L[0], L[1] * 1.00099]}, WARN),
        ({"repeated_losses": [L[0], L[1] * (1 + 1e-12)]}, WARN),
        ({"losses": [L[0], L[1], L[2], L[3] * 1.002]}, FAIL),
        ({"losses": [L[0], L[1], L[2], L[3] * 1.0005]}, WARN),
        ({"losses": [L[3], L[2], L[1], L[3]], "repeated_losses": [L[3]]}, FAIL),
        ({"losses": [L[3], L[2], L[1], L[0]], "repeated_losses": [L[3]]}, FAIL),
        ({"losses": list(L[:3])}, ERROR),
        ({"repeated_losses": [*L, 9.0]}, ERROR),
        ({"repeated_losses": list(L)}, PASS),
        ({}, PASS),
    ],
)
def test_losses_repeat_bit_by_bit_and_fall(changes, verdict):
    found = losses_of(**changes)
    assert found.verdict is verdict, found
    assert found.fix or verdict is PASS


@pytest.mark.parametrize("bad", [[0.0, 1.0], [-1.0, 1.0], ["N/A", 1.0], [1.0]])
def test_losses_that_are_no_figures_are_an_error(bad):
    readings = trained(alone=[c.alone(0), c.alone(1, losses=bad)])
    assert {v.verdict for v in losses.loss(h.spec(), readings)} == {ERROR}


def test_cards_that_hold_different_weights_fail():
    found = {v.subject: v for v in losses.loss(h.spec(), trained(weights_agree=False))}
    assert found[losses.TOGETHER].verdict is FAIL
    assert found[CARD1].verdict is PASS


def test_a_card_of_another_model_is_no_twin():
    facts = h.facts(gpus=(h.gpu(0), h.gpu(1, name="NVIDIA GeForce RTX 3090")))
    readings = trained(alone=[c.alone(0), c.alone(1, losses=[9.0, 8.0], repeated_losses=[9.0])])
    found = losses.loss(h.spec(), readings.model_copy(update={"facts": facts}))
    assert {v.verdict for v in found} == {PASS}


# Tokens per joule


def per_joule(power_w, spec=None, count=None):
    def change(gpu, sample):
        return {"power_w": power_w} if gpu.util_pct == 100 else {}

    readings = h.readings(samples=h.with_gpu_samples(change, ("train",)))
    if count is not None:
        busy = [one for one in readings.samples if one.step == "train" and one.gpus[0].util_pct == 100]
        rest = [one for one in readings.samples if one not in busy[count:]]
        readings = readings.model_copy(update={"samples": tuple(rest)})
    (found,) = joules.tokens_per_joule(spec or h.spec(), readings, None)
    return found


@pytest.mark.parametrize(
    ("power_w", "verdict"),
    [(7790.4 / 13.9, PASS), (7790.4 / 13.899, FAIL), (None, ERROR), (0.0, ERROR), (-5.0, ERROR)],
)
def test_tokens_per_joule_from_both_sides(power_w, verdict):
    assert per_joule(power_w).verdict is verdict


def test_few_samples_are_no_measurement():
    assert per_joule(440.0, count=2).verdict is ERROR
    assert per_joule(440.0).verdict is PASS


def test_joules_follow_the_card_that_trained():
    def change(gpu, _sample):
        return {"power_w": 400.0 if gpu.slot == 2 else 500.0} if gpu.util_pct == 100 else {}

    text = json.dumps(json.loads(h.logs()["train.json"]) | {"device_uuid": h.UUIDS[1]})
    samples = h.with_gpu_samples(change, ("train",))
    readings = h.readings(samples=samples, logs=h.with_logs(train__json=text))
    (found,) = joules.tokens_per_joule(h.spec(), readings, None)
    assert found.found == round(7790.4 / 400, 3)
    assert CARD2 in found.reason
    assert joules.tokens_per_joule(h.spec(training=None), readings, None)[0].verdict is SKIP
    assert joules.tokens_per_joule(asking(device="cpu"), readings, None)[0].verdict is SKIP


@pytest.mark.parametrize(("rate", "verdict"), [(0.0, ERROR), (1e8, ERROR), (9.9e7, PASS)])
def test_a_rate_of_training_is_positive_and_possible(rate, verdict):
    text = json.dumps(json.loads(h.logs()["train.json"]) | {"tokens_per_s": rate})
    (found,) = throughput.training(h.spec(), told(train=text))
    assert found.verdict is verdict


def test_training_on_one_card_keeps_to_its_history():
    known = accepted("throughput.training", [9_000.0], "rig")
    (found,) = throughput.training(h.spec(), h.readings(), known)
    assert (found.verdict, found.expected) == (FAIL, 8_100.0)


# DCGM


def opinion(text):
    return {v.subject: v for v in second_opinion.second_opinion(h.spec(), told(dcgm=text))}


def test_dcgms_words_for_each_card():
    found = opinion(c.diagnosis("Pass", "Fail"))
    assert (found[CARD1].verdict, found[CARD2].verdict) == (PASS, FAIL)
    assert "GPU Memory: memory mismatch" in found[CARD2].reason
    assert opinion(c.diagnosis("Warn", "Pass"))[CARD1].verdict is WARN
    assert opinion(c.diagnosis("Skip", "Pass"))[CARD1].verdict is BLIND
    assert opinion(c.diagnosis("Skip", "Skip"))["rig"].verdict is BLIND
    assert opinion(c.diagnosis(installed=False))["rig"].verdict is SKIP


@pytest.mark.parametrize(
    "text",
    [
        c.diagnosis(output="Error: unable to establish a connection to the specified host: localhost"),
        c.diagnosis(output='{"DCGM GPU Diagnostic": {"runtime_error": "no GPUs"}}'),
        c.diagnosis(output=""),
        json.dumps({"error": "dcgmi diag did not end in 5 s", "hint": "restart it"}),
        "{}",
    ],
)
def test_a_diagnosis_that_is_none_is_an_error(text):
    found = opinion(text)["rig"]
    assert found.verdict is ERROR
    assert found.fix


def test_what_dcgm_says_of_the_rig_stands_beside_the_cards():
    software = {"category": "Deployment", "tests": [{"name": "Denylist", "results": [{"status": "Fail"}]}]}
    root = json.loads(json.loads(c.diagnosis())["output"])["DCGM GPU Diagnostic"]
    root["test_categories"].append(software)
    found = opinion(c.diagnosis(output=json.dumps({"DCGM GPU Diagnostic": root})))
    assert (found[second_opinion.NO_CARD].verdict, found[CARD1].verdict) == (FAIL, PASS)


def test_what_dcgm_passes_beside_the_cards_is_compared_with_what_fails_of_the_rig():
    ours = Say("kernel.xid").failed("Xid 79", 79, "fix")
    theirs = Say(second_opinion.CHECK, second_opinion.NO_CARD).passed("1 tests of DCGM passed", "pass")
    assert second_opinion.with_disagreement([ours, theirs])[1].verdict is WARN
    elsewhere = Say("kernel.xid", CARD1).failed("Xid 79", 79, "fix")
    assert second_opinion.with_disagreement([elsewhere, theirs])[1].verdict is PASS


def test_a_disagreement_is_shown_both_ways():
    ours = Say("throughput.layer", CARD2).failed("slow", 1.0, "fix")
    elsewhere = Say("identity.cards", CARD1).failed("swapped", None, "fix")
    good, bad = (Say(second_opinion.CHECK, CARD2), Say(second_opinion.CHECK, CARD1))
    found = second_opinion.with_disagreement(
        [ours, elsewhere, good.passed("2 tests of DCGM passed", "pass"), bad.failed("DCGM: PCIe", "fail", "fix")]
    )
    assert found[:2] == [ours, elsewhere]
    assert found[2].verdict is WARN
    assert "throughput.layer" in found[2].reason
    assert found[2].fix
    assert (found[3].verdict, "none of our own" in found[3].reason) == (FAIL, True)
    both = second_opinion.with_disagreement([ours, good.failed("DCGM: memory", "fail", "fix")])
    assert both[1].reason == "DCGM: memory"
    assert second_opinion.with_disagreement([good.passed("2 tests of DCGM passed")])[0].verdict is PASS


# What follows from what


def causes(**changes):
    verdicts = all_verdicts(readings=h.readings(**changes), baseline=h.baseline())
    return {v.key: v.caused_by for v in verdicts if v.verdict in (FAIL, ERROR)}


def test_memory_that_does_not_hold_is_why_sums_and_losses_are_wrong():
    bad = c.tested(1, wrong_words=4)
    alone = [c.alone(0), c.alone(1, repeated_losses=[10.94, 10.2])]
    logs = h.with_logs(gpu_memory__json=c.gpu_memory(c.tested(0), bad), train_all__json=c.train_all(alone=alone))
    found = causes(logs=logs)
    assert found[f"memory.gpu_pattern[{CARD2}]"] is None
    assert found[f"throughput.loss[{CARD2}]"] == f"memory.gpu_pattern[{CARD2}]"


def test_few_lanes_are_why_copies_are_slow():
    few = h.with_gpu_samples(lambda gpu, _: {"pcie_width": 4} if gpu.slot == 2 and gpu.util_pct == 100 else {})
    logs = h.with_logs(compute__json=c.compute(c.card(0), c.card(1, host_to_device=6.0)))
    found = causes(samples=few, logs=logs)
    assert found[f"throughput.host_to_device[{CARD2}]"] == f"topology.pcie_width[{CARD2}]"


def test_a_throttled_card_is_why_it_computes_slowly_and_all_wait_for_it():
    held = h.with_gpu_samples(lambda gpu, _: {"throttle": 0x44} if gpu.slot == 2 and gpu.util_pct == 100 else {})
    alone = [c.alone(0), c.alone(1, tokens_per_s=5_000.0)]
    slow = c.train_all(alone=alone, together=c.together(9_900.0), without_p2p=c.together(8_000.0))
    logs = h.with_logs(compute__json=c.compute(c.card(0), c.card(1, matmul_fp16=50.0)), train_all__json=slow)
    found = causes(samples=held, logs=logs)
    reason = f"thermals.throttle[{CARD2}]"
    assert found[f"{FP16}[{CARD2}]"] == found[f"throughput.train_each[{CARD2}]"] == reason
    assert found["throughput.train_all[rig]"] == reason


def test_p2p_that_brings_nothing_is_why_cards_scale_badly():
    slow = c.train_all(together=c.together(11_000.0), without_p2p=c.together(11_000.0))
    found = causes(logs=h.with_logs(train_all__json=slow))
    assert found["throughput.p2p_gain[rig]"] is None
    assert found["throughput.scaling[rig]"] == found["throughput.train_all[rig]"] == "throughput.p2p_gain[rig]"


def test_a_baseline_keeps_what_the_last_runs_showed():
    base = Baseline(run_id="r", profile="full", ended_at="2026-11-29T23:20:00Z", facts=h.facts(), runs=1)
    assert base.recent_of(FP16) == ()
    assert accepted(FP16, [80.0, 81.0]).recent_of(FP16, h.UUIDS[1]) == (80.0, 81.0)
    assert accepted(FP16, [80.0, 81.0]).recent_of(FP16, h.UUIDS[0]) == ()
