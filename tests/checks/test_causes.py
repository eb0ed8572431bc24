"""People are shown the cause first: what a fault does to a whole rig follows from one verdict."""

from __future__ import annotations

import itertools

import pytest

from rigctl.checks.causes import BAD, RULES, _its_waiver, with_causes
from rigctl.model.reading import DriverFacts, GpuFacts, KernelMessage, LinkFacts, RigEvent
from rigctl.model.verdict import CheckVerdict, Verdict

from . import healthy as h
from .test_fail import FALLEN, three_links
from .test_healthy import all_verdicts


def causes(verdicts):
    return [v.key for v in verdicts if v.verdict in BAD and v.caused_by is None]


def bad(verdicts):
    return {v.key: v for v in verdicts if v.verdict in BAD}


ALWAYS = ("restored.json", "counters.jsonl", "probes.json", "clock.json")
SELF = {"clock.json": h.logs()["clock.json"]}
"""What the controller itself notes of every rig that it reached."""
"""What the rig writes after the load, however that ended."""


def pump_dead():
    """Card 2 heats up until the guard stops the burn at 85 °C, 25 s into the plan; nothing is loaded afterwards."""
    stop = h.guard_stop("gpu_burn", 25.0, reason="temperature", slot=2, found=85.0, limit=85.0, uuid=h.UUIDS[1])

    def heat(card, sample):
        t = sample.t_wall_s - h.T0
        if t >= 25:
            return {"util_pct": 0, "power_w": 20.0, "throttle": 1, "temp_c": 50.0}
        return {"temp_c": 40 + 3 * (t - 9)} if card.slot == 2 else {}

    samples = tuple(
        s.model_copy(update={"step": s.step if s.t_wall_s - h.T0 < 25 else "after"})
        for s in h.with_gpu_samples(heat, ("gpu_burn", "all_burn", "train"))
    )
    log = h.burn_log().split("\tSummary")[0]
    logs = {"gpu_burn.log": log, **{name: h.logs()[name] for name in (*ALWAYS, "cpu_burn.yaml")}}
    return h.readings(samples=samples, events=stop, logs=logs)


def card_missing():
    """Card 2 is not there: the driver shows one card, whose links are down."""
    alone = h.gpu(0, links=tuple(LinkFacts(link=n, active=False) for n in range(4)))
    samples = tuple(
        s.model_copy(update={"gpus": s.gpus[:1], "wall_power_w": 760.0 if s.step == "all_burn" else s.wall_power_w})
        for s in h.samples()
    )
    rows = [h.row(p, done=(400,), rates=(26_900,), errors=("0 ",)) for p in (20.0, 50.0, 80.0, 100.0)]
    log = h.burn_log(rows, ("OK",))
    return h.readings(
        facts=h.facts(gpus=(alone,)), samples=samples, logs=h.with_logs(gpu_burn__log=log, all_burn__log=log)
    )


def driver_mismatch():
    """Driver 535's library over the loaded 515: NVML cannot be asked, so nothing was put to work."""
    driver = DriverFacts(loaded="515.105.01", library="535.247.01", nvml_error="Driver/library version mismatch")
    return h.readings(facts=h.facts(driver=driver, gpus=()), samples=(), events=(), logs=SELF)


def fell_off_the_bus():
    """Card 2 leaves the bus in the burn: Xid 79, no valid sample, the guard stops, and nvidia-smi hangs for good."""
    stop = h.guard_stop("gpu_burn", 25.0, reason="no_valid_sample", slot=2, found=5.2, limit=5)
    lost = h.with_gpu_samples(lambda c, s: {"error": "GPU is lost"} if c.slot == 2 and s.t_wall_s > h.T0 + 20 else {})
    samples = tuple(s if s.t_wall_s - h.T0 < 25 else s.model_copy(update={"step": "after"}) for s in lost)
    logs = h.without_logs("train.json", "p2p.json", "all_burn.log", "all_burn_cpu.yaml")
    waits = "process 4711 is in state D in os_acquire_rwlock_write and resists SIGKILL"
    logs |= {
        "gpu_burn.log": h.burn_log().split("\tSummary")[0],
        "probes.json": h.probes(seconds=22.0, exit_status=None, stuck=waits),
        "counters.jsonl": h.counters(error="the driver did not answer within 5 s", cards=[]),
        "restored.json": '{"restored": [], "failed": ["the driver did not answer within 20 s"]}',
    }
    return h.readings(
        samples=samples, events=stop, logs=logs, kernel=(KernelMessage(t_wall_s=h.T0 + 20, message=FALLEN),)
    )


def rebooted():
    """The rig goes off in the burn."""
    events = tuple(e for e in h.events() if e.t_wall_s < h.T0 + 25)
    logs = SELF | {"gpu_burn.log": h.burn_log().split("\tSummary")[0], "cpu_burn.yaml": h.logs()["cpu_burn.yaml"]}
    samples = tuple(s for s in h.samples() if s.t_wall_s < h.T0 + 25)
    return h.readings(boot_id_after="another", samples=samples, events=events, logs=logs)


def controller_killed():
    """The guard did not hear from the controller."""
    stop = h.guard_stop("gpu_burn", 25.0, reason="controller_lost", found=10.4, limit=10)
    samples = tuple(s if s.t_wall_s < h.T0 + 25 else s.model_copy(update={"step": "after"}) for s in h.samples())
    logs = h.without_logs("train.json", "all_burn.log", "all_burn_cpu.yaml")
    logs |= {"gpu_burn.log": h.burn_log().split("\tSummary")[0]}
    return h.readings(samples=samples, events=stop, logs=logs)


@pytest.mark.parametrize(
    ("readings", "topo", "cause", "verdict"),
    [
        (pump_dead(), None, f"thermals.settled_gpu_temp[{h.SLOT2}]", Verdict.FAIL),
        (card_missing(), "\tGPU0\tCPU Affinity\nGPU0\t X \t0-23\n", "topology.gpu_count[rig]", Verdict.FAIL),
        (driver_mismatch(), "Failed to initialize NVML: Driver/library version mismatch\n",
         "software.driver_version[rig]", Verdict.FAIL),
        (fell_off_the_bus(), None, f"kernel.xid[{h.SLOT2}]", Verdict.FAIL),
        (rebooted(), None, "kernel.same_boot[rig]", Verdict.FAIL),
        (controller_killed(), None, "thermals.guard[rig]", Verdict.ERROR),
    ],
    ids=["pump_dead", "card_missing", "driver_mismatch", "fell_off_the_bus", "rebooted", "controller_killed"],
)  # fmt: skip
def test_one_cause_is_shown_and_all_else_follows(readings, topo, cause, verdict):
    reply = h.reply(topo, exit_status=18 if topo.startswith("Failed") else 0) if topo else None
    verdicts = all_verdicts(readings=readings, topo=reply, nvlink=h.reply("") if topo else None)
    assert causes(verdicts) == [cause]
    assert bad(verdicts)[cause].verdict is verdict
    assert len(bad(verdicts)) > 3
    assert {v.caused_by for v in bad(verdicts).values()} == {None, cause}


def test_three_links_are_a_cause_by_themselves():
    readings = h.readings(facts=h.facts(gpus=(three_links(0), three_links(1))))
    verdicts = all_verdicts(readings=readings, topo=h.reply(h.TOPO.replace("NV4", "NV3")))
    assert list(bad(verdicts)) == ["topology.nvlink[slot1-slot2]"]


def test_slow_copies_and_a_refused_access_follow_from_the_links_between_the_two_cards():
    readings = h.readings(
        facts=h.facts(
            gpus=(three_links(0), three_links(1)), pairs=(h.facts().pairs[0].model_copy(update={"read": "CNS"}),)
        ),
        logs=h.with_logs(p2p__json=h.p2p(one_way_gb_per_s=[39.0, 39.1], both_ways_gb_per_s=75.0)),
    )
    verdicts = all_verdicts(readings=readings, topo=h.reply(h.TOPO.replace("NV4", "NV3")))
    assert causes(verdicts) == ["topology.nvlink[slot1-slot2]"]
    assert {"topology.p2p_access[slot1-slot2]", "throughput.p2p_one_way[slot1-slot2]"} <= set(bad(verdicts))


def test_errors_of_the_port_explain_the_cards_own_and_its_replays():
    aer = {"card": h.device(RxErr=900), "ports": [h.device("0000:00:02.1", BadTLP=900)]}
    logs = h.with_logs(counters__jsonl=h.counters({"aer": aer, "pcie_replays": 900}))
    verdicts = all_verdicts(readings=h.readings(logs=logs))
    assert causes(verdicts) == [f"topology.aer_port[{h.SLOT2}]"]
    assert len(bad(verdicts)) == 3


def test_a_driver_that_never_answered_is_the_cause_of_all_that_nobody_could_measure():
    probe = h.facts().probes[0].model_copy(update={"exit_status": None, "seconds": 42.0, "stuck": "process 7 is stuck"})
    driver = DriverFacts(loaded="515.105.01", library="515.105.01", nvml_error="no answer within 40 s")
    facts = h.facts(driver=driver, gpus=(), pairs=(), places=(), probes=(probe,))
    verdicts = all_verdicts(readings=h.readings(facts=facts, samples=(), events=(), logs=SELF))
    assert causes(verdicts) == ["measure.probes[NVML]"]


def test_a_missing_burner_and_a_hot_cpu_are_two_causes():
    hot = h.with_samples(("cpu_burn",), cpu_temp_c=99.0)
    lacking = h.facts(tools=h.facts().tools.model_copy(update={"torch": None}))
    events = (
        *(e for e in h.events() if e.step != "train"),
        RigEvent(seq=99, t_mono_s=0, t_wall_s=h.T0, event="error", step="train", detail={"needs": "torch"}),
    )
    readings = h.readings(samples=hot, facts=lacking, events=events, logs=h.without_logs("train.json"))
    assert set(causes(all_verdicts(readings=readings))) == {"thermals.cpu_temp[rig]", "software.torch[rig]"}


def changed(readings, **changes):
    return readings.model_copy(update=changes)


@pytest.mark.parametrize("broken", [controller_killed, rebooted], ids=["controller_killed", "rebooted"])
def test_what_was_measured_and_is_bad_does_not_follow_from_a_burn_that_was_cut_short(broken):
    readings = broken()
    errors = h.burn_log([h.row(30.0, errors=("0 ", "12  (WARNING!)"))]).split("\tSummary")[0]
    braked = tuple(
        s.model_copy(update={"gpus": tuple(g.model_copy(update={"throttle": 0x80, "pcie_width": 4}) for g in s.gpus)})
        for s in readings.samples
    )
    verdicts = all_verdicts(readings=changed(readings, samples=braked, logs=readings.logs | {"gpu_burn.log": errors}))
    own = {f"throughput.gpu_burn[{h.SLOT2}]", f"power.brake[{h.SLOT2}]", f"topology.pcie_width[{h.SLOT2}]"}
    assert own <= set(causes(verdicts))


@pytest.mark.parametrize("broken", [controller_killed, rebooted, pump_dead], ids=["controller", "rebooted", "pump"])
def test_a_burn_that_was_cut_short_settled_at_nothing_and_passes_no_limit(broken):
    verdicts = all_verdicts(h.spec(limits={"wall_power_gpu_burn_w": 1120.0}), broken())
    settled = {"thermals.settled_gpu_temp", "power.share_of_limit", "power.wall", "thermals.cpu_temp"}
    judged = [v for v in verdicts if v.check in settled]
    assert {v.check for v in judged} == settled
    assert Verdict.PASS not in {v.verdict for v in judged}


def every_set_of_bad_verdicts():
    """Every pair and triple of rules' causes, each on both cards: chains must end whatever goes wrong together."""
    # What only leads to an expired waiver is no chain: nothing follows from that.
    checks = list(dict.fromkeys(rule.cause for rule in RULES if rule.follows is not _its_waiver))
    for combination in itertools.combinations(checks, 3):
        for verdict in BAD:
            yield [
                CheckVerdict(check=check, subject=subject, verdict=verdict, reason="x")
                for check in combination
                for subject in (h.SLOT1, h.SLOT2, "rig")
            ]


def test_causes_never_run_in_circles():
    readings = h.readings()
    for verdicts in every_set_of_bad_verdicts():
        found = with_causes(verdicts, readings)
        roots = {v.key for v in found if v.caused_by is None}
        assert roots
        assert all(v.caused_by in roots for v in found if v.caused_by)


def test_gpu_facts_are_what_the_tests_think():
    assert isinstance(h.gpu(0), GpuFacts)
