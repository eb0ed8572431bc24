"""What `nvidia-smi topo -m` says of each pair of cards, or why it says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rigctl.parse import ParseError, smi, topo

if TYPE_CHECKING:
    from rigctl.model.reading import CommandReply, GpuFacts, Readings

NOT_ASKED = "nvidia-smi was not asked"


class Matrix(NamedTuple):
    """The matrix, or the trouble with it and what to do."""

    topology: topo.Topology | None
    trouble: str = ""
    fix: str = ""

    def between(self, one: GpuFacts, other: GpuFacts) -> str | None:
        """Return the word for a pair, such as `NV4`; nvidia-smi counts as NVML does."""
        if self.topology is None:
            return None
        low, high = sorted((one.index, other.index))
        return self.topology.relations.get((low, high))


def read_matrix(readings: Readings, reply: CommandReply | None) -> Matrix:
    """Read the reply to `nvidia-smi topo -m`; None where it was not asked."""
    if reply is None:
        return Matrix(None, NOT_ASKED)
    if reply.exit_status < 0:
        return Matrix(None, reply.stderr, f"rigctl doctor {readings.rig}")
    if failure := smi.failure(reply.stdout + reply.stderr, reply.exit_status):
        return Matrix(None, f"{failure.what} ({failure.said})", failure.fix.format(rig=readings.rig))
    try:
        return Matrix(topo.parse(reply.stdout))
    except ParseError as error:
        return Matrix(None, str(error), f"compare with `nvidia-smi topo -m` on {readings.rig}; report this form")
