"""Rigs that train together: each rig of the run gets one step more, in which all of them meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rigctl.errors import UsageError
from rigctl.model.spec import AcrossSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rigctl.model.rig import Rig

STEP = "train_across"
ADDRESS, PORT = "rig_across_address", "rig_across_port"
VARIABLES = (ADDRESS, PORT)
DEFAULT_PORT = 29_400
"""torchrun's own."""
_LOOPBACK = ("localhost", "127.", "::1")
_MOST_PORT = 65_535


def meeting(fleet: Sequence[Rig], profile: str, variables: Mapping[str, Mapping[str, Any]]) -> tuple[Rig, ...]:
    """Return the rigs with the step in which they train together, in `profile`.

    Args:
        fleet: The rigs of the run; they meet at the first.
        profile: The profile that is asked for.
        variables: `rig_across_address` and `rig_across_port` of each rig, where the inventory has them.

    Raises:
        UsageError: there are no two of them, they are built or trained differently, or the first cannot be found.
    """
    names = tuple(rig.name for rig in fleet)
    if len(fleet) < 2:  # noqa: PLR2004 - rigs
        raise UsageError(f"--across: {names[0]} would train with no other rig", "name two rigs or more")
    classes = sorted({rig.rig_class for rig in fleet})
    if len(classes) > 1:
        raise UsageError(f"--across: the rigs are of {len(classes)} classes: {', '.join(classes)}", "name one class")
    without = [rig.name for rig in fleet if rig.spec.training is None]
    if without:
        raise UsageError(f"--across: the spec of {without[0]} names no training workload", "see training in its spec")
    address, port = _place(fleet[0], variables.get(names[0], {}))
    return tuple(
        _with_step(rig, profile, AcrossSpec(rigs=names, rank=rank, address=address, port=port))
        for rank, rig in enumerate(fleet)
    )


def _place(first: Rig, variables: Mapping[str, Any]) -> tuple[str, int]:
    address, port = variables.get(ADDRESS) or first.login.address, variables.get(PORT) or DEFAULT_PORT
    if not isinstance(address, str) or address.startswith(_LOOPBACK):
        raise UsageError(
            f"{first.name}: no other rig finds it at {address!r}", f"set {ADDRESS} to its address in the rigs' network"
        )
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port <= _MOST_PORT:
        raise UsageError(f"{first.name}: {PORT}: {port!r} is no port", f"such as {DEFAULT_PORT}")
    return address, port


def _with_step(rig: Rig, profile: str, across: AcrossSpec) -> Rig:
    profiles = dict(rig.profiles)
    if profile in profiles:
        asked = profiles[profile]
        names = tuple(name for name in asked.workloads if name != STEP)
        profiles[profile] = asked.model_copy(update={"workloads": (*names, STEP)})
    return rig.model_copy(update={"spec": rig.spec.model_copy(update={"across": across}), "profiles": profiles})
