"""How much work a workload is: floating point operations and bytes, by the formulae that published figures use."""

from __future__ import annotations

GIGA, TERA = 1e9, 1e12
TRAIN_PASSES = 3
"""Forward and backward together cost three forward passes; four where activations are computed twice."""


def matmul_flops(n: int) -> float:
    """Operations of a product of two n × n matrices: n multiplications and n additions for each element."""
    return 2.0 * n**3


def streamed_bytes(elements: int, size: int) -> float:
    """Bytes that a vector times a number moves: each element is read once and written once."""
    return 2.0 * elements * size


def copied_bytes(elements: int, size: int) -> float:
    """Bytes that a copy brings over a bus."""
    return 1.0 * elements * size


def layer_flops(sequences: int, seq_len: int, hidden: int) -> float:
    """Operations of one forward pass of a Transformer layer (matrix products only).

    A sequence of s tokens and a width of h: attention 4·h·s² + 8·s·h², feed-forward 16·s·h².
    """
    return float(sequences) * (4.0 * hidden * seq_len**2 + 24.0 * seq_len * hidden**2)


def model_flops(layers: int, hidden: int, vocab: int, seq_len: int) -> float:
    """Operations of one forward pass of a whole model over one sequence: its layers, and the head 2·s·h·v."""
    return layers * layer_flops(1, seq_len, hidden) + 2.0 * seq_len * hidden * vocab
