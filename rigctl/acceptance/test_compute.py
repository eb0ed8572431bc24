"""What the cards compute by themselves and together, whether their memory holds, and what DCGM says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.checks import across, compute, gpu_memory, joules, losses, second_opinion, training

if TYPE_CHECKING:
    from rigctl.acceptance.plugin import Judge
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Readings
    from rigctl.model.spec import RigSpec


@pytest.mark.check("throughput.matmul_fp32")
def test_matmul_fp32(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Each card multiplies single-precision matrices at its pace."""
    judge(compute.rate("throughput.matmul_fp32", spec, readings, baseline))


@pytest.mark.check("throughput.matmul_fp16")
def test_matmul_fp16(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """So does it in FP16."""
    judge(compute.rate("throughput.matmul_fp16", spec, readings, baseline))


@pytest.mark.check("throughput.matmul_bf16")
def test_matmul_bf16(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """So does it in BF16."""
    judge(compute.rate("throughput.matmul_bf16", spec, readings, baseline))


@pytest.mark.check("throughput.layer")
def test_layer(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Each card computes a Transformer layer at its pace."""
    judge(compute.rate("throughput.layer", spec, readings, baseline))


@pytest.mark.check("throughput.gpu_memory")
def test_gpu_memory(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Each card's memory is as fast as declared."""
    judge(compute.rate("throughput.gpu_memory", spec, readings, baseline))


@pytest.mark.check("throughput.host_to_device")
def test_host_to_device(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Copies from the host to each card are as fast as declared."""
    judge(compute.rate("throughput.host_to_device", spec, readings, baseline))


@pytest.mark.check("throughput.device_to_host")
def test_device_to_host(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """So are copies back."""
    judge(compute.rate("throughput.device_to_host", spec, readings, baseline))


@pytest.mark.check("memory.gpu_pattern")
def test_gpu_pattern(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each card's memory holds what is written into it."""
    judge(gpu_memory.gpu_memory(spec, readings))


@pytest.mark.check("throughput.train_each")
def test_train_each(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Each card trains at its pace, and no twin is faster."""
    judge(training.each(spec, readings, baseline))


@pytest.mark.check("throughput.train_all")
def test_train_all(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """All cards together train at their pace."""
    judge(training.together(spec, readings, baseline))


@pytest.mark.check("throughput.scaling")
def test_scaling(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """The exchange of gradients costs little."""
    judge(training.scaling(spec, readings, baseline))


@pytest.mark.check("throughput.across")
def test_across(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Several rigs train together at their pace."""
    judge(across.across(spec, readings, baseline))


@pytest.mark.check("throughput.p2p_gain")
def test_p2p_gain(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """P2P brings what it should."""
    judge(training.p2p_gain(spec, readings, baseline))


@pytest.mark.check("throughput.loss")
def test_loss(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Training computes the same again, and the same on every card."""
    judge(losses.loss(spec, readings))


@pytest.mark.check("throughput.tokens_per_joule")
def test_tokens_per_joule(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Training brings enough for its energy."""
    judge(joules.tokens_per_joule(spec, readings, baseline))


@pytest.mark.check("measure.second_opinion")
def test_second_opinion(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """DCGM finds nothing either."""
    judge(second_opinion.second_opinion(spec, readings))
