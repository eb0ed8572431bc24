"""A draft as a spec file: the form in which a person reads, corrects and commits it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from rigctl.model.spec import ComputeSpec, LimitsSpec, PartsSpec, TrainingSpec, WallMeterSpec

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rigctl.spec.learn import Draft

_WIDTH = 112
_MODELS: dict[str, type[BaseModel]] = {
    "parts": PartsSpec,
    "limits": LimitsSpec,
    "wall_meter": WallMeterSpec,
    "training": TrainingSpec,
    "compute": ComputeSpec,
}
"""The parts of a spec file, in their order; their keys stand in the order of the model."""


def as_yaml(draft: Draft) -> str:
    """Return the file, `group_vars/class_X/spec.yml`, with what could not be learned said at its end."""
    spec: dict[str, Any] = {part: _ordered(part, draft.spec[part]) for part in _MODELS if part in draft.spec}
    spec["sources"] = {key: draft.sources[key] for key in _in_order(spec, draft.sources)}
    body = yaml.dump({"rig_spec": spec}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return "---\n" + _about(draft) + body + _missing(draft)


def _ordered(part: str, body: dict[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in _MODELS[part].model_fields if name in body}


def _about(draft: Draft) -> str:
    lines = [
        f"Drafted by rigctl spec learn from {draft.rig} (class {draft.rig_class}), {_runs(draft)}.",
        "Read every figure, correct what one rig cannot know of its class, then commit it.",
    ]
    if draft.despite:
        lines.append(f"The rig stood against these checks, and that was accepted: {', '.join(draft.despite)}.")
    return "".join(f"# {line}\n" for line in lines)


def _runs(draft: Draft) -> str:
    return f"run {draft.runs[0]}" if len(draft.runs) == 1 else f"runs {', '.join(draft.runs)}"


def _missing(draft: Draft) -> str:
    return "".join(f"# not learned: {key}: {why}\n" for key, why in draft.missing.items())


def _in_order(spec: dict[str, Any], sources: dict[str, str]) -> list[str]:
    """Return the sources in the order of their keys in the file."""
    keys = [f"{part}.{name}" for part, body in spec.items() if isinstance(body, dict) for name in body]
    return [key for key in keys if key in sources]


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, and keeps pairs of slots on one line, as people write them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - the base's words
        super().increase_indent(flow, indentless=False)


def _represent_list(dumper: yaml.SafeDumper, data: list[Any]) -> yaml.Node:
    plain = all(isinstance(one, int) for one in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=plain)


_Dumper.add_representer(list, _represent_list)
