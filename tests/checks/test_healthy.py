"""Every check passes on the healthy rig, so that what the other tests break is what makes them fail."""

from __future__ import annotations

from rigctl.checks import (
    across,
    brake,
    burn,
    clock,
    compute,
    cooling,
    counters,
    cpu,
    disk,
    ecc,
    energy,
    fabric,
    fans,
    gpu_memory,
    guard,
    host_memory,
    identity,
    joules,
    kernel,
    links,
    losses,
    machine,
    measure,
    network,
    numa,
    p2p,
    power,
    probes,
    second_opinion,
    software,
    switched,
    thermals,
    throughput,
    topology,
    training,
)
from rigctl.checks.catalogue import CATALOGUE
from rigctl.checks.causes import with_causes
from rigctl.model.verdict import CheckVerdict, Verdict

from . import healthy as h

BLIND_ON_GEFORCE = {"thermals.hotspot_temp", "thermals.memory_temp", "memory.ecc", "memory.remapped_rows"}
NOT_BUILT_IN = {"topology.fabric_manager"}
SKIPPED_AT_FIRST = {"identity.settings", "identity.machine", "identity.cards", "identity.card_firmware"}


def all_verdicts(  # noqa: PLR0913 - what a run knows of a rig, each part replaced by some test
    spec=None, readings=None, profile=h.PROFILE, topo=None, nvlink=None, *, baseline=None
) -> tuple[CheckVerdict, ...]:
    spec, readings = spec or h.spec(), readings or h.readings()
    topo, nvlink = topo or h.reply(h.TOPO), nvlink or h.reply(h.NVLINK)
    parts = [
        measure.reached(readings),
        probes.answers(spec, readings),
        kernel.same_boot(readings),
        software.driver_version(spec, readings, h.reply(h.PACKAGES), "515.105.01"),
        machine.settings(spec, readings, baseline),
        machine.machine(readings, baseline),
        identity.modules(spec, readings, baseline),
        disk.space(spec, readings),
        disk.health(spec, readings, baseline),
        disk.size(spec, readings),
        network.link(spec, readings, baseline),
        topology.gpu_count(spec, readings),
        topology.gpu_model(spec, readings),
        identity.known_cards(spec, readings, baseline),
        identity.card_firmware(spec, readings, baseline),
        topology.gpu_memory(spec, readings),
        fabric.fabric_manager(spec, readings),
        links.pairs(spec, readings, topo),
        links.speed(spec, readings, nvlink),
        counters.nvlink_errors(spec, readings),
        p2p.access(spec, readings),
        p2p.same_bytes(spec, readings),
        numa.numa(spec, readings),
        counters.aer_port(spec, readings),
        counters.aer_card(spec, readings),
        counters.pcie_replays(spec, readings),
        topology.pcie_gen(spec, readings, profile),
        topology.pcie_width(spec, readings, profile),
        host_memory.host_memory(spec, readings),
        ecc.ecc_errors(spec, readings, profile, baseline),
        ecc.remapped_rows(spec, readings, profile),
        clock.offset(spec, readings),
        clock.time_sync(spec, readings),
        kernel.no_xid(readings),
        fans.fans(spec, readings, baseline),
        cooling.resistance(spec, readings, baseline),
        cooling.rest_temp(spec, readings, profile),
        thermals.settled_gpu_temp(spec, readings),
        cooling.card_spread(spec, readings),
        thermals.steady_state(spec, readings, profile),
        thermals.memory_temp(spec, readings),
        guard.guard(spec, readings),
        thermals.throttle(spec, readings, profile),
        thermals.cpu_temp(spec, readings, profile),
        thermals.hotspot_temp(spec, readings),
        fans.fan_speed(spec, readings),
        power.limit(spec, readings),
        power.idle(spec, readings, baseline),
        power.share_of_limit(spec, readings),
        power.wall(spec, readings, profile),
        energy.residual(spec, readings, profile),
        brake.brake(spec, readings),
        switched.step_load(spec, readings, profile, baseline),
        switched.idle_to_load(spec, readings, profile),
        software.gpu_burn_build(spec, readings, {"gpu_burn": True, "compare.fatbin": True}),
        burn.oracle(spec, readings, profile),
        throughput.burn_gflops(spec, readings, profile),
        throughput.cpu_burn(readings, profile),
        cpu.clock(spec, readings, profile, baseline),
        disk.speed(spec, readings, baseline),
        software.torch(spec, readings, h.reply(f"{readings.facts.tools.torch if readings.facts else ''}\n")),
        p2p.one_way(spec, readings),
        p2p.both_ways(spec, readings),
        losses.loss(spec, readings),
        *(compute.rate(check, spec, readings, baseline) for check in compute.FIGURES),
        gpu_memory.gpu_memory(spec, readings),
        throughput.training(spec, readings, baseline),
        joules.tokens_per_joule(spec, readings, baseline),
        training.each(spec, readings, baseline),
        training.p2p_gain(spec, readings, baseline),
        training.scaling(spec, readings, baseline),
        training.together(spec, readings, baseline),
        across.across(spec, readings, baseline),
        second_opinion.second_opinion(spec, readings),
        software.cuda_toolkit(spec, readings),
        measure.telemetry(readings, profile),
        measure.left_as_found(readings),
    ]
    return with_causes([verdict for part in parts for verdict in part], readings)


def test_a_healthy_rig_passes_every_check_and_is_blind_to_what_its_cards_do_not_show():
    verdicts = all_verdicts()
    assert {v.check for v in verdicts} == {info.id for info in CATALOGUE.values() if not info.afterwards}
    skipped = {v.check for v in verdicts if v.verdict is Verdict.SKIP}
    assert skipped == SKIPPED_AT_FIRST | NOT_BUILT_IN
    assert {v.check for v in verdicts if v.verdict is not Verdict.PASS} - skipped == BLIND_ON_GEFORCE
    assert all(v.verdict is Verdict.BLIND for v in verdicts if v.check in BLIND_ON_GEFORCE)
    assert all(v.reason for v in verdicts)


def test_every_bad_verdict_says_what_to_do():
    nothing = h.readings(facts=None, samples=(), events=(), logs={}, kernel=(), kernel_read=False, boot_id_after=None)
    for verdict in all_verdicts(readings=nothing):
        if verdict.check in {"measure.reached"} | NOT_BUILT_IN:
            continue
        assert verdict.verdict is Verdict.ERROR, verdict
        assert verdict.fix, verdict


def test_keys_are_unique():
    keys = [v.key for v in all_verdicts()]
    assert len(keys) == len(set(keys))
