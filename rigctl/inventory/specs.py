"""Spec files, host exceptions, profiles and role variables → the spec of one rig."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from rigctl.errors import UsageError
from rigctl.inventory.explain import explain
from rigctl.inventory.parts import SPEC_KEY, SpecPart, defining_file, place_in
from rigctl.inventory.yamlfile import Key, dotted_key, require_literal, walk
from rigctl.model.spec import ProfileSpec, RigSpec, SoftwareSpec, SpecFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rigctl.inventory.ansible_view import AnsibleView

PROFILES = "rig_profiles"
CLASS_PREFIX = "class_"

ROLE_VARIABLES = {
    "nvidia_driver_branch": "driver_branch",
    "cuda_version": "cuda_version",
    "cuda_allow_unrunnable": "cuda_allow_unrunnable",
    "pytorch_version": "torch_version",
    "pytorch_build": "torch_build",
    "nvidia_driver_power_limit_w": "power_limit_w",
    "gpu_burn_dir": "gpu_burn_dir",
    "pytorch_venv": "torch_venv",
}
"""Role variable → field of `SoftwareSpec`."""


def rig_class_of(host: str, view: AnsibleView) -> str:
    """Return the one `class_*` group of `host`.

    Raises:
        UsageError: it is in none, or in two.
    """
    classes = sorted(g for g in view.groups.get(host, ()) if g.startswith(CLASS_PREFIX))
    if len(classes) == 1:
        return classes[0]
    if not classes:
        raise UsageError(
            f"{view.path}: {host} is in no rig class",
            "put it into one group class_*, or leave it out of the pattern: 'class_*' takes only rigs",
        )
    raise UsageError(
        f"{view.path}: {host} is in {len(classes)} rig classes: {', '.join(classes)}",
        "a rig has one class; exceptions of one rig go to host_vars/RIG/ under rig_spec_host",
    )


def build_spec(rig_class: str, written: SpecPart, exceptions: SpecPart | None, software: SoftwareSpec) -> RigSpec:
    """Put class file, host exceptions and role variables together.

    Raises:
        UsageError: unknown key, wrong type, missing key or a limit without a source; with file, line and key.
    """
    try:
        SpecFile.model_validate(written.data)
    except ValidationError as error:
        raise explain(error, SpecFile, written.place, SPEC_KEY) from error
    _require_figures(written)
    _require_sources(written, written.data)
    merged = written.data
    if exceptions is not None:
        _require_sources(exceptions, exceptions.data)
        merged = _merge(written.data, exceptions.data)
        stated = _named_sources(merged.get("sources", {}), exceptions)
        merged = {**merged, "sources": stated}
    try:
        spec = SpecFile.model_validate(merged)
    except ValidationError as error:
        part = exceptions or written
        raise explain(error, SpecFile, part.place, part.key) from error
    _require_sound_links(spec, exceptions or written)
    return RigSpec(
        rig_class=rig_class.removeprefix(CLASS_PREFIX),
        origin=written.origin,
        software=software,
        **{name: getattr(spec, name) for name in SpecFile.model_fields},
    )


def build_profiles(host: str, view: AnsibleView) -> dict[str, ProfileSpec]:
    """Read the variable `rig_profiles`.

    Raises:
        UsageError: it is missing, not literal, or one of its profiles has an unknown, missing or wrong key.
    """
    data = view.variables[host].get(PROFILES)
    path = defining_file(PROFILES, host, view)
    if not isinstance(data, dict) or not data:
        raise UsageError(
            f"{path}: {host}: {PROFILES} is {'not set' if data is None else 'no mapping of profiles'}",
            f"define {PROFILES} in {view.folder / 'group_vars' / 'all'}, as the starter inventory does",
        )
    require_literal(path, PROFILES, data)
    profiles = {}
    for name, body in data.items():
        try:
            profiles[name] = ProfileSpec.model_validate(body)
        except ValidationError as error:
            place = partial(_profile_place, path, name)
            raise explain(error, ProfileSpec, place, f"{PROFILES}.{name}") from error
    return profiles


def build_software(host: str, view: AnsibleView, values: Mapping[str, Any]) -> SoftwareSpec:
    """Turn resolved role variables into the spec's software part.

    Raises:
        UsageError: one is missing or has the wrong type; with the file that sets it.
    """
    fields: dict[str, Any] = {}
    for variable, field in ROLE_VARIABLES.items():
        value = values.get(variable)
        if field == "power_limit_w":
            fields[field] = None if value in (None, "") else value
        elif isinstance(value, int) and not isinstance(value, bool):
            fields[field] = str(value)
        elif isinstance(value, float):
            raise UsageError(
                f"{defining_file(variable, host, view)}: {variable}: {value} is a number, which loses zeros",
                f'write it in quotes: {variable}: "{value}"',
            )
        else:
            fields[field] = value
    names = {field: variable for variable, field in ROLE_VARIABLES.items()}
    try:
        return SoftwareSpec.model_validate(fields)
    except ValidationError as error:
        variable = names[str(error.errors()[0]["loc"][0])]
        path = defining_file(variable, host, view)
        raise explain(error, SoftwareSpec, lambda _key: place_in(path, (variable,)), host, names) from error


def _profile_place(path: Path, name: str, key: Key) -> str:
    return place_in(path, (PROFILES, name, *key))


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _require_figures(written: SpecPart) -> None:
    """Refuse a key of the class without a figure: a limit that is lost by a slip would judge nothing."""
    for key, value in walk(written.data):
        if value is None:
            raise UsageError(
                f"{written.place(key)}: {written.key}.{dotted_key(key)}: nothing is written there",
                "write the bare figure; leave the whole key out where it is not known yet",
            )


def _require_sources(part: SpecPart, data: dict[str, Any]) -> None:
    """Every limit that a file sets names its source in the same file, and every source names a key that exists."""
    sources = data.get("sources") or {}
    limits = [key for key, _ in walk(data.get("limits") or {}, ("limits",))]
    limits += [("settings", key) for key in data.get("settings") or {}]
    for name in ("training", "compute"):
        part_of = data.get(name)
        limits += [(name, key) for key in (part_of if isinstance(part_of, dict) else ()) if key.startswith("min_")]
    for key in limits:
        if not sources.get(dotted_key(key)):
            raise UsageError(
                f"{part.place(key)}: {part.key}.{dotted_key(key)} has no source",
                f"say where its figure comes from: {part.key}.sources: {{{dotted_key(key)}: …}}",
            )
    for name in sources:
        if not _is_spec_key(name):
            raise UsageError(
                f"{part.place(('sources', name))}: {part.key}.sources names {name}, and a spec has no such key",
                "name a dotted key of the spec, such as limits.max_settled_gpu_temp_c",
            )


def _is_spec_key(dotted: str) -> bool:
    model: Any = SpecFile
    for part in dotted.split("."):
        fields = getattr(model, "model_fields", {})
        if part not in fields:
            return False
        model = _model_in(fields[part].annotation)
    return True


def _model_in(annotation: Any) -> Any:
    """Return the model inside `X | None`; None for plain values."""
    options = getattr(annotation, "__args__", (annotation,))
    return next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), None)


def _named_sources(sources: dict[str, str], exceptions: SpecPart) -> dict[str, str]:
    """Mark the sources of figures that the rig's own file sets, so that a verdict shows where its limit stands."""
    changed = exceptions.data.get("sources") or {}
    return {key: f"{exceptions.origin}: {text}" if key in changed else text for key, text in sources.items()}


def _require_sound_links(spec: SpecFile, part: SpecPart) -> None:
    if spec.parts.nvswitch_links is not None and spec.parts.links:
        raise UsageError(
            f"{part.place(('parts', 'links'))}: {part.key}.parts: links and nvswitch_links are both set",
            "with NVSwitches every pair is joined alike: remove parts.links",
        )
    for index, link in enumerate(spec.parts.links):
        key: Key = ("parts", "links", index, "slots")
        first, second = link.slots
        if first == second or not {first, second} <= set(range(1, spec.parts.gpu_count + 1)):
            raise UsageError(
                f"{part.place(key)}: {part.key}.{dotted_key(key)}: slots {first} and {second} are no pair of "
                f"{spec.parts.gpu_count} cards",
                "slots count from 1 in PCI bus order",
            )
