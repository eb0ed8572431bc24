"""Readings at an edge: as many samples as a check needs and not one more, figures that are just as they may be."""

from __future__ import annotations

from . import healthy as h


def shown(count, step="gpu_burn", **absent):
    """The healthy samples; card 2 shows what `absent` names in the last `count` ones of its time in `step` only."""
    busy = [s.seq for s in h.samples() if s.step == step and (step == "idle" or s.gpus[1].util_pct == 100)]
    hidden = set(busy[: len(busy) - count])
    return h.readings(
        samples=h.with_gpu_samples(lambda gpu, s: absent if gpu.slot == 2 and s.seq in hidden else {}, (step,))
    )


def idle_but(count, step="gpu_burn", seconds=None):
    """The healthy samples; both cards work in the last `count` ones of `step` only."""
    busy = [s.seq for s in h.samples() if s.step == step and s.gpus[1].util_pct == 100]
    hidden = set(busy[: len(busy) - count])
    return h.readings(samples=h.with_gpu_samples(lambda _, s: {"util_pct": 0} if s.seq in hidden else {}, (step,)))


def sampled(count, step="gpu_burn", **absent):
    """The healthy samples; the rig itself shows what `absent` names in the last `count` busy ones of `step` only."""
    busy = [s.seq for s in h.samples() if s.step == step and s.gpus[1].util_pct == 100]
    hidden = set(busy[: len(busy) - count])
    return h.readings(samples=tuple(s.model_copy(update=absent) if s.seq in hidden else s for s in h.samples()))


def burning(**changes):
    """Card 2 shows `changes` while the GPU burn loads it."""
    return h.readings(
        samples=h.with_gpu_samples(lambda gpu, _: changes if gpu.slot == 2 and gpu.util_pct == 100 else {})
    )
