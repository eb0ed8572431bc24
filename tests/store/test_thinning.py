"""Thinned telemetry: extremes of every sensor and the times of every step stay true, and it is small."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rigctl.model.reading import GpuSample, Sample
from rigctl.store.thinning import SPANS, STEP_SAMPLES, thinned

PLAIN = ("cpu_temp_c", "wall_power_w", "cpu_throttles")
OF_CARD = ("temp_c", "power_w", "sm_mhz", "fan_rpm")


def sample(seq: int, step: str = "gpu_burn", **more: Any) -> Sample:
    chance = random.Random(seq)  # noqa: S311 - a pattern, no secret
    gpus = tuple(
        GpuSample(
            uuid=f"GPU-{slot}",
            slot=slot,
            temp_c=50 + chance.random() * 30,
            power_w=300 + chance.random() * 180,
            sm_mhz=chance.randrange(1200, 2100),
            fan_rpm=chance.randrange(900, 2200) if slot == 1 else None,
            throttle=chance.choice([0, 4, 32]),
            pcie_gen=1 if chance.random() < 0.02 else 4,
            pcie_width=16,
            links_active=(True, chance.random() > 0.01),
        )
        for slot in (1, 2)
    )
    known: dict[str, Any] = {
        "cpu_temp_c": 40 + chance.random() * 20,
        "wall_power_w": 1000 + chance.random() * 200,
        "cpu_throttles": seq // 100,
        "fans_rpm": {"nct6798 fan1": chance.randrange(800, 1500)},
    }
    return Sample(
        seq=seq, t_mono_s=10 + seq / 2, t_wall_s=1e9 + seq / 2, boot_id="b", step=step, gpus=gpus, **(known | more)
    )


def figures(samples: tuple[Sample, ...], name: str) -> list[float]:
    return [value for one in samples if (value := getattr(one, name)) is not None]


def of_card(samples: tuple[Sample, ...], uuid: str, name: str) -> list[Any]:
    cards = (card for one in samples for card in one.gpus if card.uuid == uuid)
    return [value for card in cards if (value := getattr(card, name)) is not None]


def spans(samples: tuple[Sample, ...], begin: float, end: float) -> list[tuple[Sample, ...]]:
    width = (end - begin) / SPANS
    found: list[list[Sample]] = [[] for _ in range(SPANS)]
    for one in samples:
        found[min(int((one.t_mono_s - begin) / width), SPANS - 1)].append(one)
    return [tuple(one) for one in found]


BURN = tuple(sample(seq) for seq in range(3600))


def test_so_many_samples_of_a_step_are_kept() -> None:
    assert len(thinned(BURN)) == STEP_SAMPLES == 120
    two = (*BURN, *(sample(seq, "all_burn") for seq in range(3600, 5400)))
    assert len(thinned(two)) == 240


def test_each_span_keeps_the_lowest_and_the_highest_of_every_sensor() -> None:
    kept = thinned(BURN)
    begin, end = BURN[0].t_mono_s, BURN[-1].t_mono_s
    for before, after in zip(spans(BURN, begin, end), spans(kept, begin, end), strict=True):
        for name in PLAIN:
            assert (min(figures(before, name)), max(figures(before, name))) == (
                min(figures(after, name)), max(figures(after, name)),
            ), name  # fmt: skip
        for uuid in ("GPU-1", "GPU-2"):
            for name in OF_CARD:
                was, now = of_card(before, uuid, name), of_card(after, uuid, name)
                assert (min(was, default=None), max(was, default=None)) == (
                    min(now, default=None), max(now, default=None),
                ), name  # fmt: skip
        fans = [one.fans_rpm["nct6798 fan1"] for one in before]
        assert {one.fans_rpm["nct6798 fan1"] for one in after} == {min(fans), max(fans)}


def test_what_was_never_measured_is_not_invented() -> None:
    assert of_card(thinned(BURN), "GPU-2", "fan_rpm") == []
    blind = tuple(sample(seq, wall_power_w=None if 1000 <= seq < 2000 else 1100.0) for seq in range(3600))
    silent = [one for one in thinned(blind) if 520 < one.t_mono_s < 1000]
    assert silent
    assert {one.wall_power_w for one in silent} == {None}


def test_a_rise_stays_a_rise() -> None:
    rising = tuple(sample(seq, cpu_temp_c=30 + seq / 100) for seq in range(3600))
    falling = tuple(sample(seq, cpu_temp_c=90 - seq / 100) for seq in range(3600))
    up, down = (figures(thinned(samples), "cpu_temp_c") for samples in (rising, falling))
    assert up == sorted(up)
    assert down == sorted(down, reverse=True)


def test_steps_begin_and_end_when_they_did() -> None:
    kept = thinned(BURN)
    assert (kept[0].t_mono_s, kept[-1].t_mono_s) == (BURN[0].t_mono_s, BURN[-1].t_mono_s)
    assert [one.seq for one in kept] == sorted({one.seq for one in kept})


def test_short_steps_stay_as_they_are() -> None:
    short = BURN[:STEP_SAMPLES]
    assert thinned(short) == short
    assert thinned(()) == ()


@pytest.mark.parametrize("other", [{"boot_id": "c"}, {"part": 2}, {"step": "all_burn"}])
def test_boots_plans_and_steps_are_not_mixed(other: dict[str, Any]) -> None:
    half = len(BURN) // 2
    mixed = (*BURN[:half], *(one.model_copy(update=other) for one in BURN[half:]))
    kept = thinned(mixed)
    assert len(kept) == 2 * STEP_SAMPLES
    assert kept[STEP_SAMPLES - 1].t_mono_s == mixed[half - 1].t_mono_s
    assert kept[STEP_SAMPLES].t_mono_s == mixed[half].t_mono_s


def test_states_of_a_card_are_kept_at_their_worst() -> None:
    kept = thinned(BURN)
    for uuid in ("GPU-1", "GPU-2"):
        assert min(of_card(kept, uuid, "pcie_gen")) == 1
        assert of_card(kept, uuid, "pcie_gen").count(4) > of_card(kept, uuid, "pcie_gen").count(1)
        assert (True, False) in of_card(kept, uuid, "links_active")
        assert max(of_card(kept, uuid, "throttle")) == 36, "both reasons came within one span"


def test_a_clock_that_stood_or_ran_backwards_loses_no_extreme() -> None:
    stood = tuple(one.model_copy(update={"t_mono_s": 5.0}) for one in BURN)
    back = tuple(reversed(BURN))
    for odd in (stood, back):
        kept = thinned(odd)
        assert len(kept) < len(odd)
        assert max(figures(kept, "cpu_temp_c")) == max(figures(odd, "cpu_temp_c"))
        assert min(figures(kept, "cpu_temp_c")) == min(figures(odd, "cpu_temp_c"))
