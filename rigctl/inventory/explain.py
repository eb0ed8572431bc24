"""Pydantic's findings in the words of people who write inventories."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from rigctl.errors import UsageError
from rigctl.inventory.yamlfile import Key, dotted_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel, ValidationError

_BARE = "write the bare number; the unit is in the key"
_BOUND = "check the figure and the unit in the key's name"
_LISTED = "docs/inventory.md lists every key with its unit"
_WORDS = {
    # pydantic's type of finding: (what is wrong with {value}, what to do)
    "missing": ("missing", f"add the key; {_LISTED}"),
    "int_type": ("{value!r} is not a whole number", _BARE),
    "int_from_float": ("{value!r} is not a whole number", _BARE),
    "float_type": ("{value!r} is not a number", _BARE),
    "greater_than": ("{value!r} is not greater than {gt}", _BOUND),
    "greater_than_equal": ("{value!r} is less than {ge}", _BOUND),
    "less_than": ("{value!r} is not less than {lt}", _BOUND),
    "less_than_equal": ("{value!r} is greater than {le}", _BOUND),
    "bool_type": ("{value!r} is neither true nor false", "write true or false, without quotes"),
    "string_type": ("{value!r} is not text", "write it in quotes"),
    "date_type": ("{value!r} is no date", "write the day bare, without quotes: 2026-12-31"),
    "string_pattern_mismatch": ("{value!r} says nothing", "write it in a few words"),
    "string_too_short": ("{value!r} says nothing", "write it in a few words, or leave the key out"),
    "literal_error": ("{value!r} is not {expected}", "choose one of these words"),
    "model_type": ("{value!r} is no mapping", "write keys and values below it"),
    "dict_type": ("{value!r} is no mapping", "write keys and values below it"),
}


def explain(
    error: ValidationError,
    model: type[BaseModel],
    place: Callable[[Key], str],
    root: str,
    names: Mapping[str, str] | None = None,
) -> UsageError:
    """Turn the first of `error`'s findings into one line with file and key; the others are counted.

    Args:
        error: what pydantic found.
        model: the model that was asked for, for suggestions.
        place: key → `file:line`.
        root: what stands before the key in the message.
        names: field → the name under which people know it.
    """
    # A mistyped key is also reported as missing: the mistyped one says more.
    findings = sorted(error.errors(include_url=False), key=lambda f: f["type"] != "extra_forbidden")
    first = findings[0]
    key: Key = first["loc"]
    known = (names or {}).get(dotted_key(key), dotted_key(key))
    name = f"{root}: {known}" if names else f"{root}.{known}" if known else root
    problem, hint = _in_words(first, model, key)
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return UsageError(f"{place(key)}: {name}: {problem}{more}", hint)


def _in_words(finding: Any, model: type[BaseModel], key: Key) -> tuple[str, str]:
    kind, value, context = finding["type"], finding["input"], finding.get("ctx", {})
    if kind == "extra_forbidden":
        return "unknown key", _suggest(model, key)
    problem, hint = _WORDS.get(kind, ("{value!r}: {message}", _LISTED))
    return problem.format(value=value, message=finding["msg"], **context), hint


def _suggest(model: type[BaseModel], key: Key) -> str:
    siblings = _fields_at(model, key[:-1])
    close = get_close_matches(str(key[-1]), siblings, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"known keys here: {', '.join(siblings)}"


def _fields_at(model: Any, key: Key) -> list[str]:
    for part in key:
        if isinstance(part, int):
            continue
        model = _inner_model(model.model_fields[part].annotation)
    return list(model.model_fields)


def _inner_model(annotation: Any) -> Any:
    """Return the model inside `X | None` or `tuple[X, …]`."""
    if hasattr(annotation, "model_fields"):
        return annotation
    return next(found for option in annotation.__args__ if (found := _inner_model_or_none(option)) is not None)


def _inner_model_or_none(option: Any) -> Any:
    if hasattr(option, "model_fields"):
        return option
    return _inner_model(option) if getattr(option, "__args__", ()) else None
