"""What the inventory says of a rig for upgrades: how it is taken out of use, and with whom it is never out together."""

from __future__ import annotations

from collections import defaultdict
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rigctl.errors import UsageError
from rigctl.inventory.explain import explain
from rigctl.inventory.yamlfile import dotted_key
from rigctl.model.upgrade import CommandDrain, Group, NoDrain, SlurmDrain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.inventory.yamlfile import Key
    from rigctl.model.upgrade import DrainSpec

DRAIN, GROUPS = "rig_drain", ("rig_circuit", "rig_switch")
SETTINGS = (DRAIN, *GROUPS)
_KINDS: dict[str, type[SlurmDrain | CommandDrain | NoDrain]] = {
    "slurm": SlurmDrain,
    "command": CommandDrain,
    "none": NoDrain,
}
_NO_WORDS = ("tuple_type", "too_short")
_SHOWN = "docs/upgrade.md shows each kind of rig_drain"


def drains_of(variables: Mapping[str, Mapping[str, Any]]) -> dict[str, DrainSpec]:
    """Read each rig's `rig_drain`; nothing hands work to a rig that has none.

    Raises:
        UsageError: an unknown kind, an unknown, missing or wrong key, or two rigs that would be one in Slurm.
    """
    drains = {rig: _drain_of(rig, values.get(DRAIN)) for rig, values in variables.items()}
    seen: dict[str, str] = {}
    for rig, spec in drains.items():
        if isinstance(spec, SlurmDrain):
            node = spec.node or rig
            if node in seen:
                raise UsageError(
                    f"{rig}: {DRAIN}.node: {seen[node]} is {node} in Slurm too",
                    "leave node out where it is the rig's own name, else say it in host_vars/RIG/",
                )
            seen[node] = rig
    return drains


def groups_of(variables: Mapping[str, Mapping[str, Any]]) -> tuple[Group, ...]:
    """Rigs with the same circuit, or behind the same switch.

    Raises:
        UsageError: a name that is neither text nor a number.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for rig, values in variables.items():
        for name in GROUPS:
            if values.get(name) not in (None, ""):
                found[f"{name} {_name_of(rig, name, values[name])}"].append(rig)
    return tuple(Group(name=name, rigs=tuple(rigs)) for name, rigs in found.items() if len(rigs) > 1)


def _name_of(rig: str, key: str, written: Any) -> str:
    """The group's name; `4` and `"4"` are the same circuit."""
    if isinstance(written, str) or (isinstance(written, int) and not isinstance(written, bool)):
        return str(written).strip()
    raise UsageError(f"{rig}: {key}: {written!r} is no name", f"one name a rig, such as {key}: breaker-4")


def _drain_of(rig: str, written: Any) -> DrainSpec:
    if written is None:
        return NoDrain()
    if not isinstance(written, dict):
        raise UsageError(f"{rig}: {DRAIN}: {written!r} is no mapping", f"write `kind: slurm` below it; {_SHOWN}")
    if "kind" not in written:
        raise UsageError(f"{rig}: {DRAIN}.kind: missing", f"one of {', '.join(_KINDS)}; {_SHOWN}")
    model = _KINDS.get(written["kind"]) if isinstance(written["kind"], str) else None
    if model is None:
        close = get_close_matches(written["kind"], _KINDS, n=1) if isinstance(written["kind"], str) else []
        hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(_KINDS)}; {_SHOWN}"
        raise UsageError(f"{rig}: {DRAIN}.kind: {written['kind']!r} is no kind", hint)

    def place(_key: Key) -> str:
        return rig

    try:
        return model.model_validate(written)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] in _NO_WORDS:
            key = dotted_key((DRAIN, *first["loc"]))
            raise UsageError(f"{rig}: {key}: {first['input']!r} is no list of words", _SHOWN) from error
        raise explain(error, model, place, DRAIN) from error
