"""A rig's whole spec: every figure with the place and the words that it comes from, and what is not known yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rigctl.spec.rows import ROWS

if TYPE_CHECKING:
    from rigctl.model.rig import Rig

_PARTS = ("parts", "limits", "wall_meter", "training", "compute", "software")
ROLE_VARIABLES = "the role variables (docs/roles.md)"


@dataclass(frozen=True)
class Shown:
    """One figure."""

    key: str
    value: Any
    source: str


def show(rig: Rig) -> list[Shown]:
    """Return every figure that the rig's spec sets, in the order of the file."""
    found: list[Shown] = []
    for part in _PARTS:
        model = getattr(rig.spec, part)
        if model is None:
            continue
        for name, value in model.model_dump(mode="json", exclude_none=True).items():
            key = f"{part}.{name}"
            found.append(Shown(key, value, ROLE_VARIABLES if part == "software" else _source(rig, key, name, model)))
    return found


def to_learn(rig: Rig) -> list[str]:
    """Return the figures that the spec does not set and a run could show."""
    absent = []
    for row in ROWS:
        part, name = row.key.split(".")
        model = getattr(rig.spec, part)
        if model is not None and getattr(model, name) is None:
            absent.append(row.key)
    return absent


def _source(rig: Rig, key: str, name: str, model: Any) -> str:
    stated = rig.spec.sources.get(key)
    if stated is not None:
        return stated
    return "" if name in model.model_fields_set else "rigctl's default"
