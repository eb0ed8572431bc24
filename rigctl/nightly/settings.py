"""Reading `rig_nightly`, `rig_circuits` and `rig_circuit` from the inventory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from rigctl.errors import UsageError
from rigctl.inventory import load_fleet, load_variables
from rigctl.inventory.explain import explain
from rigctl.model.nightly import CircuitSpec, NightlySpec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rigctl.model.rig import Rig

NIGHTLY, CIRCUITS, CIRCUIT, DRAIN = "rig_nightly", "rig_circuits", "rig_circuit", "rig_drain"
_SHOWN = "docs/nightly.md shows an example"
_BUDGETS = TypeAdapter(dict[str, CircuitSpec])


@dataclass(frozen=True)
class Park:
    """The rigs and how they want their nights."""

    fleet: tuple[Rig, ...]
    spec: NightlySpec
    budgets: dict[str, float]
    """What each circuit bears, W."""
    circuit: dict[str, str]
    """The circuit of each rig that names one."""
    drains: dict[str, dict[str, Any]]
    """`rig_drain` of each rig, as written."""


def load_park(inventory: Path | None, pattern: str) -> Park:
    """Read the park.

    Raises:
        UsageError: the inventory or one of its settings is wrong; file or rig, and key, are named.
    """
    fleet = load_fleet(inventory, pattern)
    variables = load_variables(inventory, pattern, (NIGHTLY, CIRCUITS, CIRCUIT, DRAIN))
    spec = _one(variables, NIGHTLY)
    if spec is None:
        raise UsageError(f"the inventory has no {NIGHTLY}", f"write it into group_vars/all; {_SHOWN}")
    night = _nightly(spec)
    for rig in fleet:
        for profile in (night.profile, night.deep_profile):
            if profile is not None and profile not in rig.profiles:
                known = ", ".join(sorted(rig.profiles)) or "none"
                raise UsageError(f"{NIGHTLY}: {rig.name} has no profile {profile!r}", f"rig_profiles has: {known}")
    circuit = {rig: str(values[CIRCUIT]) for rig, values in variables.items() if values.get(CIRCUIT) not in (None, "")}
    budgets = _circuits(_one(variables, CIRCUITS) or {})
    unused = sorted(set(budgets) - set(circuit.values()))
    if unused and pattern == "all":
        raise UsageError(
            f"{CIRCUITS}: no rig is on circuit {', '.join(unused)}", f"set {CIRCUIT} of its rigs, or take it out"
        )
    drains = {rig: values.get(DRAIN) or {} for rig, values in variables.items()}
    return Park(fleet, night, budgets, circuit, drains)


def _one(variables: Mapping[str, Mapping[str, Any]], name: str) -> Any:
    """A setting of the whole park: the same for all rigs."""
    found = {rig: values[name] for rig, values in variables.items() if values.get(name) is not None}
    if not found:
        return None
    first, value = next(iter(found.items()))
    other = next((rig for rig, known in found.items() if known != value), None)
    if other is not None:
        raise UsageError(f"{name} of {first} and {other} differ", "it holds for the whole park: group_vars/all")
    return value


def _nightly(written: Any) -> NightlySpec:
    try:
        return NightlySpec.model_validate(written)
    except ValidationError as error:
        raise explain(error, NightlySpec, lambda _key: "inventory", NIGHTLY) from error


def _circuits(written: Any) -> dict[str, float]:
    try:
        return {name: spec.max_w for name, spec in _BUDGETS.validate_python(written).items()}
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in (CIRCUITS, *first["loc"]))
        raise UsageError(
            f"inventory: {key}: {first['msg']}", f"such as breaker-4: {{max_w: 2300}}; {_SHOWN}"
        ) from error
