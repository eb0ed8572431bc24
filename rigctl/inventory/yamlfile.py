"""Literal YAML: plain data only, and every error names file, line and key."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from rigctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Key = tuple[str | int, ...]

_TEMPLATE_MARKS = ("{{", "{%", "{#")
_NO_KEY = "a mapping or a list cannot be a key; a template ({{ … }}) without quotes reads so, and a spec takes none"
_VAULT_HEAD = "$ANSIBLE_VAULT"
_LITERAL_HINT = (
    "write the figure itself: a spec is plain data; what differs on one rig goes to host_vars/RIG/ under rig_spec_host"
)


@dataclass(frozen=True)
class Tagged:
    """A value with a tag of Ansible's (`!vault`, `!unsafe`), kept as it stands."""

    tag: str


class _Loader(yaml.SafeLoader):
    """A safe loader that keeps Ansible's tags and refuses a key that is written twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, _NO_KEY, key_node.start_mark)
            if key_node.value in seen and key_node.value != "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key_node.value!r} is written twice", key_node.start_mark
                )
            seen.add(key_node.value)
        return super().construct_mapping(node, deep=deep)


def _construct_tagged(_loader: yaml.SafeLoader, suffix: str, _node: yaml.Node) -> Tagged:
    return Tagged(suffix)


_Loader.add_multi_constructor("!", _construct_tagged)


def read_yaml(path: Path) -> Any:
    """Read one YAML file; None for an empty one and for one that is vaulted as a whole.

    Raises:
        UsageError: the file cannot be read or is no YAML; with its line.
    """
    text = _read_text(path)
    if text.startswith(_VAULT_HEAD):
        return None
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as error:
        raise UsageError(f"{describe_yaml_error(path, error)}", "correct the YAML in that line") from error


def describe_yaml_error(path: Path, error: yaml.YAMLError) -> str:
    """Say where `path` is no YAML and why, in one line."""
    mark = getattr(error, "problem_mark", None)
    place = f"{path}:{mark.line + 1}" if mark else str(path)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"{place}: not valid YAML: {problem}"


def require_literal(path: Path, root: str, data: Any) -> None:
    """Refuse templates, tagged values and figures that are no number anywhere under `root`.

    Raises:
        UsageError: with file, line and key of the first one.
    """
    for key, value in walk(data):
        dotted = dotted_key((root, *key))
        if isinstance(value, str) and any(mark in value for mark in _TEMPLATE_MARKS):
            raise UsageError(
                f"{where(path, (root, *key))}: {dotted}: template in a literal field: {value}", _LITERAL_HINT
            )
        if isinstance(value, Tagged):
            raise UsageError(f"{where(path, (root, *key))}: {dotted}: !{value.tag} in a literal field", _LITERAL_HINT)
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{where(path, (root, *key))}: {dotted}: {value} is no figure", _LITERAL_HINT)


def walk(data: Any, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Yield every leaf of nested mappings and lists with its key."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from walk(value, (*key, str(name)))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from walk(value, (*key, index))
    else:
        yield key, data


def dotted_key(key: Key) -> str:
    """`('rig_spec', 'limits', 'x')` → `rig_spec.limits.x`."""
    return ".".join(str(part) for part in key)


def where(path: Path, key: Key) -> str:
    """`path:line` of `key`, of the deepest part of it that the file holds; `path` alone when it holds none."""
    node = yaml.compose(_read_text(path), Loader=_Loader)
    line: int | None = None
    for part in key:
        child = _child(node, part)
        if child is None:
            break
        line, node = child
    return str(path) if line is None else f"{path}:{line + 1}"


def _child(node: yaml.Node | None, part: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            if key_node.value == str(part):
                return key_node.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part].start_mark.line, node.value[part]
    return None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"{path}: cannot be read: {reason}", "check the file and its permissions") from error
