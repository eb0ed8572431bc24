"""One form of JSON for everything that rigctl writes, so that equal records are equal bytes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

SIGNIFICANT_DIGITS = 12
"""Digits kept of a float: more than any sensor has, fewer than the noise of adding floats in another order."""


def dumps(value: Any, *, indent: int | None = 2) -> str:
    """Return `value` (a model or plain data) as canonical JSON: sorted keys, floats in one form, no NaN.

    Raises:
        ValueError: when a float is not finite, because JSON has no word for it.
    """
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    text = json.dumps(_canonical(plain), sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent)
    # A lone surrogate can come out of a rig's JSON and has no UTF-8 form.
    return text.encode("utf-8", "replace").decode("utf-8")


def digest(value: Any) -> str:
    """Return 16 hex digits that differ where `value` does, as `dumps` writes it."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()[:16]


def _canonical(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _canonical(value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        return {str(key): _canonical(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(inner) for inner in value]
    if isinstance(value, float):
        return _one_form(value)
    return value


def _one_form(value: float) -> float:
    if not math.isfinite(value):
        message = f"a record cannot hold the figure {value}"
        raise ValueError(message)
    rounded = float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    return 0.0 if rounded == 0 else rounded
