"""Comparisons of the compute steps at their edge: rates, losses, memory, training, the second opinion."""

from __future__ import annotations

import json

import pytest

from rigctl.checks import across, compute, gpu_memory, joules, losses, rates, second_opinion, training
from rigctl.checks.load import NoLoad
from rigctl.checks.rates import Floor, Rate, judge_rate
from rigctl.checks.say import Say
from rigctl.model.baseline import Recent
from rigctl.model.peaks import MOST_OF_PEAK
from rigctl.model.verdict import Verdict

from . import healthy as h
from . import healthy_compute as c
from .edges import idle_but
from .test_thermals import of

PASS, FAIL, ERROR, WARN, SKIP = Verdict.PASS, Verdict.FAIL, Verdict.ERROR, Verdict.WARN, Verdict.SKIP
SAY = Say("throughput.layer", unit="TFLOP/s")
LAYER = "throughput.layer"


def told(step, text):
    return h.readings(logs=h.logs() | {f"{step}.json": text})


def past(*found, check=LAYER, subject="rig"):
    recent = (Recent(check=check, subject=subject, found=found),)
    return h.baseline().model_copy(update={"recent": recent})


@pytest.mark.parametrize(
    ("found", "least", "words"),
    [
        ((100.0,), 90.0, "in 1 accepted run"),
        ((100.0,) * 2, 90.0, "in 2 accepted runs"),
        ((100.0,) * 4, 90.0, "in 4 accepted runs"),
        ((100.0,) * 5, 97.0, "in 5 accepted runs"),
        ((98.0, 100.0, 100.0, 100.0, 100.0), 96.0, "after 100 in 5 accepted runs"),
        ((90.0, 100.0, 100.0, 100.0, 100.0), 90.0, "in 5 accepted runs"),
    ],
)
def test_from_five_accepted_runs_on_their_range_says_how_far_a_rate_may_fall(found, least, words):
    floor = rates.history(h.spec(), past(*found), LAYER)
    assert floor is not None
    assert floor.least == pytest.approx(least)
    assert floor.words.endswith(words) or words in floor.words
    assert floor.words.endswith("run") is (len(found) == 1)


def test_without_accepted_runs_there_is_no_history():
    assert rates.history(h.spec(), None, LAYER) is None
    assert rates.history(h.spec(), past(1.0, check="throughput.scaling"), LAYER) is None


def test_twins_are_the_other_cards():
    assert rates.twins(h.spec(), {"a": 10.0}, "a") is None
    one = rates.twins(h.spec(), {"a": 10.0, "b": 100.0}, "a")
    two = rates.twins(h.spec(), {"a": 10.0, "b": 100.0, "c": 100.0}, "a")
    assert one is not None
    assert two is not None
    assert (one.least, one.words, two.words) == (90.0, "as its twin do 100", "as its twins do 100")
    gpus = (h.gpu(0), h.gpu(1, name="another"))
    assert rates.alike(gpus, dict.fromkeys(h.UUIDS, 1.0), gpus[0]) == {h.UUIDS[0]: 1.0}
    assert rates.alike(gpus, {h.UUIDS[1]: 1.0}, gpus[0]) == {}


@pytest.mark.parametrize(
    ("rate", "floors", "verdict"),
    [
        (Rate(10.0, ""), (Floor(10.0, "", ""), None), PASS),
        (Rate(9.99, ""), (Floor(10.0, "", ""), None), FAIL),
        (Rate(10.0, "", settled=False), (Floor(10.0, "", ""), None), WARN),
        (Rate(9.0, ""), (Floor(8.0, "", ""), Floor(10.0, "", "")), FAIL),
        (Rate(9.0, ""), (None, None, Floor(10.0, "", "")), FAIL),
        (Rate(11.0, ""), (None, None, Floor(10.0, "", "")), WARN),
        (Rate(11.0, ""), (None, None, None), WARN),
        (Rate(11.0, ""), (None, Floor(10.0, "", ""), Floor(10.0, "", "")), PASS),
    ],
)
def test_the_tightest_floor_judges_a_rate(rate, floors, verdict):
    assert judge_rate(SAY, rate, floors, "y", "rig1").verdict is verdict


def figure(rate, *blocks):
    return compute._Figure(rate=rate, blocks=blocks, settled=True)


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (figure(10, 10, 11, 12), ""),
        (figure(12, 10, 11, 12), ""),
        (figure(9.9, 10, 11, 12), "median"),
        (figure(12.1, 10, 11, 12), "median"),
        (figure(10, 10, 10, 10), "stood still"),
        (figure(10, 10, 10, 10.1), ""),
    ],
)
def test_a_rate_lies_within_its_blocks_and_blocks_differ(found, wrong):
    said = compute._absurd(found, compute.FIGURES["throughput.host_to_device"], None)
    assert (wrong in said, said == "") == (True, wrong == "")


@pytest.mark.parametrize(("more", "wrong"), [(0.0, False), (0.1, True)])
def test_no_card_does_more_than_its_peak(monkeypatch, more, wrong):
    monkeypatch.setattr(compute, "_peak", lambda *_: 100.0)
    most = MOST_OF_PEAK * 100.0 + more
    said = compute._absurd(figure(most, most - 1, most, most + 1), compute.FIGURES[LAYER], h.gpu(1))
    assert ("at most" in said) is wrong


def test_only_what_is_bounded_by_a_peak_is_held_against_it():
    assert compute._peak(compute.FIGURES[LAYER], None) is None
    assert compute._peak(compute.FIGURES[LAYER], h.gpu(1, name="a card nobody knows")) is None
    assert compute._peak(compute.FIGURES["throughput.host_to_device"], h.gpu(1)) is None
    assert (compute._peak(compute.FIGURES[LAYER], h.gpu(1)) or 0) > 0


def on_a_processor(**changes):
    """The compute step on the processor, which has no card behind it."""
    card = {"slot": None, "name": "processor", "figures": {"layer": c.figure(1.0)}}
    spec = h.spec(compute=h.spec().compute.model_copy(update={"device": "cpu", "min_layer_tflops": 0.5}))
    return compute.rate(LAYER, spec, told("compute", c.compute(card, device="cpu")), changes.get("baseline"))


def test_on_the_processor_there_is_one_subject_without_twins():
    (found,) = on_a_processor()
    assert (found.subject, found.verdict) == ("rig", PASS)
    (slower,) = on_a_processor(baseline=past(2.0))
    assert slower.verdict is FAIL


def test_a_cards_own_history_judges_it():
    slow = past(*(70.0,) * 2, subject=h.UUIDS[1])
    assert of(compute.rate(LAYER, h.spec(), h.readings(), slow)).verdict is FAIL
    assert of(compute.rate(LAYER, h.spec(), h.readings(), past(*(70.0,) * 2))).verdict is PASS


def test_a_card_without_the_figure_is_an_error_and_no_twin():
    card = c.card(0)
    del card["figures"]["layer"]
    found = compute.rate(LAYER, h.spec(), told("compute", c.compute(card, c.card(1))), None)
    assert [v.verdict for v in found] == [ERROR, PASS]
    other = c.card(1, layer=40.0) | {"slot": 2}
    twin = compute.rate(LAYER, h.spec(), told("compute", c.compute(c.card(0), other)), None)
    assert [v.verdict for v in twin] == [PASS, FAIL]


def test_what_cannot_be_is_no_twin():
    absurd = c.figure(60.0) | {"rate": 60.0, "blocks": [600.0, 700.0, 800.0]}
    found = compute.rate(LAYER, h.spec(), told("compute", c.compute(c.card(0), c.card(1, layer=absurd))), None)
    assert [v.verdict for v in found] == [PASS, ERROR]
    assert compute._rates(h.readings(), compute._Computed.model_validate_json(c.compute()), compute.FIGURES[LAYER]) == {
        h.UUIDS[0]: 60.2,
        h.UUIDS[1]: pytest.approx(59.598),
    }
    assert "as its twin" not in found[0].source


def test_memory_counts_against_what_nvml_says_of_the_card():
    whole = c.tested(1, tested_mib=24_564.0)
    for more, verdict in ((0.0, PASS), (0.5, ERROR)):
        text = c.gpu_memory(c.tested(0), whole | {"tested_mib": 24_564.0 + more})
        assert of(gpu_memory.gpu_memory(h.spec(), told("gpu_memory", text))).verdict is verdict
    unknown = h.readings(
        facts=h.facts(gpus=(h.gpu(0), h.gpu(1, memory_mib=None))),
        logs=h.logs() | {"gpu_memory.json": c.gpu_memory(c.tested(0), whole)},
    )
    assert of(gpu_memory.gpu_memory(h.spec(), unknown)).verdict is ERROR


@pytest.mark.parametrize(("tested", "verdict"), [(12_282.0, PASS), (12_281.9, ERROR)])
def test_memory_in_the_declared_share(tested, verdict):
    spec = h.spec(compute=h.spec().compute.model_copy(update={"min_tested_memory_share": 0.5}))
    text = c.gpu_memory(c.tested(0), c.tested(1, tested_mib=tested))
    assert of(gpu_memory.gpu_memory(spec, told("gpu_memory", text))).verdict is verdict


@pytest.mark.parametrize(("wrong", "verdict"), [(0, PASS), (1, FAIL), (25, FAIL), (26, ERROR)])
def test_no_more_words_are_wrong_than_were_compared(wrong, verdict):
    text = c.gpu_memory(c.tested(0), c.tested(1, compared_bytes=100, wrong_words=wrong))
    assert of(gpu_memory.gpu_memory(h.spec(), told("gpu_memory", text))).verdict is verdict


@pytest.mark.parametrize(
    ("bits", "words"), [([0, 3, 0], "; bit 1 alone"), ([1, 3, 0], "; 2 bits of a word"), ([0, 0, 0], "GB")]
)
def test_wrong_bits_are_named(bits, words):
    card = gpu_memory._Card(**c.tested(1, wrong_words=3, wrong_bits=bits))
    assert gpu_memory._located(card).endswith(words)


@pytest.mark.parametrize(("count", "verdict"), [(8, PASS), (5, ERROR)])
def test_three_settled_samples_tell_a_trainings_power(count, verdict):
    (found,) = joules.tokens_per_joule(h.spec(), idle_but(count, "train"), None)
    assert found.verdict is verdict


@pytest.mark.parametrize(("watts", "verdict"), [(0.0, ERROR), (None, ERROR), (0.1, PASS)])
def test_one_sample_without_power_is_a_gap(watts, verdict):
    last = [s.seq for s in h.samples() if s.step == "train" and s.gpus[0].util_pct == 100][-1]
    samples = h.with_gpu_samples(lambda _, s: {"power_w": watts} if s.seq == last else {}, ("train",))
    (found,) = joules.tokens_per_joule(h.spec(), h.readings(samples=samples), None)
    assert found.verdict is verdict


def test_the_card_that_torch_names_has_drawn_the_power():
    named = json.loads(h.logs()["train.json"]) | {"device_uuid": h.UUIDS[1]}
    for text, subject in ((h.logs()["train.json"], h.SLOT1), (json.dumps(named), h.SLOT2)):
        (found,) = joules.tokens_per_joule(h.spec(), h.readings(logs=h.with_logs(train__json=text)), None)
        assert subject in found.reason


def alone(own=(10.0, 9.0), again=(10.0,), **changes):
    return training.Alone(**c.alone(1, losses=list(own), repeated_losses=list(again), **changes))


@pytest.mark.parametrize(
    ("card", "twin", "verdict"),
    [
        (alone(), None, PASS),
        (alone(), alone(), PASS),
        (alone(again=(10.0, 9.0)), None, PASS),
        (alone(again=(10.0, 9.0, 8.0)), None, ERROR),
        (alone(), alone((10.0, 9.0, 8.0)), ERROR),
        (alone((10.0, 10.0)), None, FAIL),
        (alone((10.0, 9.999)), None, PASS),
        (alone((1000.0, 900.0), (1001.0,)), None, WARN),  # apart by 0.001, which is rounding
        (alone((1000.0, 900.0), (1001.1,)), None, FAIL),
        (alone((1000.0, 900.0), (1000.0,)), alone((1001.0, 900.0)), WARN),
        (alone((1000.0, 900.0), (1000.0,)), alone((1001.1, 900.0)), FAIL),
    ],
)
def test_losses_repeat_fall_and_agree(card, twin, verdict):
    assert losses._of_card(Say("throughput.loss"), card, twin, "rig1").verdict is verdict


def test_a_twin_is_another_card_of_the_same_model():
    all_told = training.Trained.model_validate_json(c.train_all())
    one, two = all_told.alone
    assert losses._twin(h.readings(), all_told, one, h.gpu(0)) == two
    assert losses._twin(h.readings(), all_told, two, h.gpu(1)) == one
    assert losses._twin(h.readings(), all_told, two, None) is None
    other = h.readings(facts=h.facts(gpus=(h.gpu(0, name="another"), h.gpu(1))))
    assert losses._twin(other, all_told, two, h.gpu(1)) is None
    assert "as its twin did" in of(losses.loss(h.spec(), h.readings())).reason
    assert "as its twin did" not in losses._of_card(Say("throughput.loss"), one, None, "rig1").reason


@pytest.mark.parametrize(("count", "verdict"), [(1, SKIP), (2, PASS)])
def test_two_cards_train_together(count, verdict):
    assert training.scaling(h.spec(parts={"gpu_count": count}), h.readings(), None)[0].verdict is verdict


@pytest.mark.parametrize("changes", [{"ranks": 3}, {"model": "gpt2"}, {"device": "cpu"}])
def test_another_training_than_asked_for_is_an_error(changes):
    found = training.scaling(h.spec(), told("train_all", c.train_all(**changes)), None)
    assert {v.verdict for v in found} == {ERROR}


@pytest.mark.parametrize(("share", "kind"), [(MOST_OF_PEAK, str), (MOST_OF_PEAK + 0.001, NoLoad), (None, str)])
def test_training_is_no_faster_than_the_card(monkeypatch, share, kind):
    monkeypatch.setattr(training, "mfu", lambda *_: share)
    said = training.speed(training.Trained.model_validate_json(c.train_all()), 1.0, "x", "bf16")
    assert isinstance(said, kind)
    assert ("peak" in str(said)) is (share is not None)


def energy(begin_s, end_s, **changes):
    """What is said of a training from `begin_s` to `end_s` whose step was sampled once a second from 0 on, 5 times."""
    first = h.samples()[0]
    cards = tuple(h.gpu_sample(i, 20).model_copy(update=changes) for i in range(2))
    samples = tuple(
        first.model_copy(
            update={"t_mono_s": float(t), "step": "train_all", "gpus": cards, "wall_power_w": changes.get("power_w")}
        )
        for t in range(5)
    )
    text = c.train_all(together=c.together(measured_mono_s=[begin_s, end_s]))
    return training._energy(h.readings(samples=samples), training.Trained.model_validate_json(text))


@pytest.mark.parametrize(("begin_s", "end_s", "said"), [(1, 3, True), (1.1, 3, False), (1, 2.9, False)])
def test_three_samples_from_begin_to_end_tell_the_energy(begin_s, end_s, said):
    assert ("tokens/J at the cards" in energy(begin_s, end_s)) is said


@pytest.mark.parametrize(("watts", "said"), [(0.1, True), (0.0, False), (None, False)])
def test_no_power_gives_no_tokens_per_joule(watts, said):
    assert ("at the cards" in energy(0, 4, power_w=watts)) is said
    assert ("at the wall" in energy(0, 4, power_w=watts)) is said


@pytest.mark.parametrize(("rate", "verdict"), [(11_000.0, PASS), (11_001.0, ERROR)])
def test_together_cards_are_hardly_faster_than_by_themselves(rate, verdict):
    each = [c.alone(i, tokens_per_s=5000.0) for i in range(2)]
    text = c.train_all(alone=each, together=c.together(rate))
    assert training.scaling(h.spec(), told("train_all", text), None)[0].verdict is verdict


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"together": c.together(0.7 * 2 * 15_030.0)}, PASS),
        ({"together": c.together(0.699 * 2 * 15_030.0)}, FAIL),
        ({"together": c.together(1.1 * 2 * 15_030.0)}, PASS),
        ({"together": c.together(1.101 * 2 * 15_030.0)}, ERROR),
        ({"weights_agree": False}, FAIL),
        ({"device": "cpu"}, ERROR),
        ({"model": "gpt_tiny"}, ERROR),
        ({"rigs": 3, "ranks": 6}, ERROR),
        ({"ranks": 5}, ERROR),
        ({"ranks": 2}, ERROR),
    ],
)
def test_rigs_that_train_together(changes, verdict):
    assert across.across(h.spec(), told("train_across", c.across(**changes)), None)[0].verdict is verdict


@pytest.mark.parametrize(
    ("spec", "verdict"),
    [
        (h.spec(across=None), SKIP),
        (h.spec(training=None), SKIP),
        (h.spec(across=h.spec().across.model_copy(update={"rigs": ("a", "b", "c")})), ERROR),
    ],
)
def test_rigs_train_together_where_that_is_asked(spec, verdict):
    assert across.across(spec, h.readings(), None)[0].verdict is verdict


def test_with_how_many_of_what_a_rig_trained_is_said():
    (found,) = across.across(h.spec(), h.readings(), None)
    assert "2 rigs, 4 cards: 24,000 of 30,060 tokens/s" in found.reason


@pytest.mark.parametrize(("gpus", "lacks"), [(1, "train.json"), (2, "train_all.json")])
def test_what_a_rig_trains_by_itself_is_its_measure(gpus, lacks):
    spec = h.spec(parts={"gpu_count": gpus})
    text = c.across(ranks=2 * gpus, together=c.together(11_000.0))
    whole = {**h.readings().logs, "train_across.json": text}
    assert across.across(spec, h.readings(logs=whole), None)[0].verdict is (PASS if gpus == 1 else FAIL)
    del whole[lacks]
    assert across.across(spec, h.readings(logs=whole), None)[0].verdict is ERROR


def test_where_nothing_joins_the_cards_p2p_brings_nothing():
    none = h.spec().parts.links[0].model_copy(update={"kind": "none", "links": 0})
    for links, switches, verdict in (((none,), None, SKIP), ((), None, SKIP), ((), 12, PASS), (None, None, PASS)):
        parts = {"nvswitch_links": switches} | ({} if links is None else {"links": links})
        assert training.p2p_gain(h.spec(parts=parts), h.readings(), None)[0].verdict is verdict
    text = c.train_all(without_p2p=None)
    assert training.p2p_gain(h.spec(), told("train_all", text), None)[0].verdict is ERROR


@pytest.mark.parametrize(
    ("statuses", "verdicts"),
    [
        (("Pass", "Pass"), [PASS, PASS]),
        (("Pass", "Fail"), [PASS, FAIL]),
        (("Warn", "Pass"), [WARN, PASS]),
        (("Skip", "Skip"), [Verdict.BLIND]),
        (("Pass", "Skip"), [PASS, Verdict.BLIND]),
    ],
)
def test_dcgm_speaks_of_each_card(statuses, verdicts):
    found = second_opinion.second_opinion(h.spec(), told("dcgm", c.diagnosis(*statuses)))
    assert [v.verdict for v in found] == verdicts


OURS = Say("power.limit", h.SLOT2).failed("x", 1, "y")


@pytest.mark.parametrize(
    ("status", "ours", "verdict", "words"),
    [
        ("pass", OURS, WARN, "ours do not: power.limit"),
        ("pass", Say("power.limit", h.SLOT1).failed("x", 1, "y"), PASS, "tests of DCGM passed"),
        ("pass", Say("identity.cards", h.SLOT2).failed("x", 1, "y"), PASS, "tests of DCGM passed"),
        ("pass", Say("power.limit", h.SLOT2).error("x", "y"), PASS, "tests of DCGM passed"),
        ("fail", OURS, FAIL, "bad"),
        ("fail", Say("power.limit", h.SLOT2).passed("x", 1), FAIL, "none of our own checks fails here"),
    ],
)
def test_where_ours_and_dcgm_differ_both_are_said(status, ours, verdict, words):
    own = Say("measure.second_opinion", h.SLOT2)
    opinion = own.passed("3 tests of DCGM passed", "pass") if status == "pass" else own.failed("bad", "fail", "y")
    untouched, said = second_opinion.with_disagreement([ours, opinion])
    assert untouched == ours
    assert (said.verdict, said.reason.endswith(words)) == (verdict, True)


def test_a_program_that_could_not_measure_tells_why():
    for text, words in (
        ('{"error": "no torch"}', "no torch"),
        ("{}", "cannot be read"),
        ('{"x": 1}', "cannot be read"),
    ):
        (found,) = compute.rate(LAYER, h.spec(), told("compute", text), None)
        assert (found.verdict, words in found.reason) == (ERROR, True)
    (found,) = compute.rate(LAYER, h.spec(), told("compute", c.compute(error="it broke")), None)
    assert (found.verdict, found.reason) == (ERROR, "it broke")


@pytest.mark.parametrize(("uuid", "verdict"), [(None, PASS), (h.UUIDS[1], PASS), (h.UUIDS[0], ERROR)])
def test_a_card_is_the_one_that_torch_names_where_it_names_one(uuid, verdict):
    text = c.compute(c.card(0), c.card(1) | {"uuid": uuid})
    assert of(compute.rate(LAYER, h.spec(), told("compute", text), None)).verdict is verdict
