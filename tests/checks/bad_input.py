"""Readings as they come when something on the way is wrong: every figure of a rig's readings made bad in one way.

A driver that does not tell a figure says `N/A`, `[Unknown Error]` or `ERR!`: in our readings such a figure is None, and
the words stand in `missing`. In outputs of other programs and in the workloads' own files the words stand themselves.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from . import healthy as h

if TYPE_CHECKING:
    from rigctl.model.reading import Readings

STRUCTURE = {"index", "slot", "slots", "seq", "t_mono_s", "t_wall_s", "controller_wall_s", "link", "cards", "limit_s"}
"""What says where and when something was measured, and is no figure."""
KINDS = {
    "absent": None,
    "N/A": "N/A",
    "[Unknown Error]": "[Unknown Error]",
    "ERR!": "ERR!",
    "no number": "forty-two",
    "NaN": math.nan,
    "infinite": math.inf,
    "negative": -7.0,
    "absurd": 1e9,
}
NUMBER = re.compile(r"(?<![\w.:/-])-?\d+(\.\d+)?(?![\w:/])")


COUNTED = {
    "ecc": {"on": True, "corrected": 0, "uncorrected": 0, "lifetime_corrected": 0, "lifetime_uncorrected": 0},
    "remapped_rows": {"corrected": 0, "uncorrected": 0, "pending": False, "failed": False, "banks": {"max": 640}},
}


def outspoken() -> Readings:
    """A healthy rig whose cards tell everything that any card tells: memory, hot spot, ECC."""
    cards = tuple(h.gpu(i, ecc=COUNTED["ecc"], memory_max_temp_c=110.0) for i in range(2))
    lines = [json.loads(line) for line in h.counters().splitlines()]
    for line in lines:
        line["cards"] = [card | COUNTED for card in line["cards"]]
    return h.readings(
        facts=h.facts(gpus=cards),
        samples=h.with_gpu_samples(lambda *_: {"memory_temp_c": 84.0, "margin_c": 31.0}, ("gpu_burn", "all_burn")),
        logs=h.with_logs(counters__jsonl="".join(json.dumps(line) + "\n" for line in lines)),
    )


def readings(kind: str) -> tuple[Readings, str, str]:
    """The healthy rig's readings with every figure bad, and what `nvidia-smi topo -m` and `nvlink -s` say then."""
    put = KINDS[kind]
    well = outspoken()
    changed = {
        "facts": _bad(well.facts, _of_driver(put), str(put)),
        "samples": _bad(well.samples, _of_driver(put), str(put)),
        "logs": {name: _text(text, put) for name, text in well.logs.items()},
    }
    word = "" if put is None else f"{put:g}" if isinstance(put, float) else put
    topo, nvlink = re.sub(r"NV4", f"NV{word}", h.TOPO), re.sub(r"[\d.]+ GB/s", f"{word} GB/s", h.NVLINK)
    return well.model_copy(update=changed), topo, nvlink


def _of_driver(put):
    """The same figure as a reading of ours: words and what is no finite number were not measured."""
    return put if isinstance(put, float) and math.isfinite(put) else None


def _bad(value, put, why="", annotation=None, default=PydanticUndefined):
    if isinstance(value, BaseModel):
        fields = {name: field for name, field in type(value).model_fields.items() if name not in STRUCTURE}
        changed = {
            name: _bad(getattr(value, name), put, why, field.annotation, field.default)
            for name, field in fields.items()
        }
        if put is None and "missing" in fields:
            changed["missing"] = {name: why for name, found in changed.items() if found is None}
        return value.model_copy(update=changed)
    if isinstance(value, dict):
        kept = {key: found if key in STRUCTURE else _bad(found, put, why) for key, found in value.items()}
        return {key: found for key, found in kept.items() if found is not None or put is not None}
    if isinstance(value, tuple | list):
        return type(value)(_bad(one, put, why) for one in value)
    return _figure(value, put, annotation, value if default is PydanticUndefined else default)


def _figure(value, put, annotation, default):
    if isinstance(value, str) and value.startswith("{"):
        return _text(value, put)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if put is None:
        return None if annotation is None or type(None) in get_args(annotation) else default
    return int(put) if isinstance(value, int) else put


def _text(text, put):
    """A file of the spool with every figure bad: JSON, JSON by lines, or text."""
    try:
        return json.dumps(_leaf(json.loads(text), put))
    except ValueError:
        pass
    try:
        return "".join(json.dumps(_leaf(json.loads(line), put)) + "\n" for line in text.splitlines())
    except ValueError:
        word = "" if put is None else f"{put:g}" if isinstance(put, float) else put
        return NUMBER.sub(lambda _: word, text)


def _leaf(value, put):
    if isinstance(value, dict):
        return {key: found if _places(key, found) else _leaf(found, put) for key, found in value.items()}
    if isinstance(value, list):
        return [_leaf(one, put) for one in value]
    if isinstance(value, str) and value.startswith("{"):
        return _text(value, put)
    return value if isinstance(value, bool) or not isinstance(value, int | float) else put


def _places(key, found):
    """Whether `found` says where or when: a number, or a list of numbers, of such a name."""
    inside = found if isinstance(found, list) else [found]
    return key in STRUCTURE and not any(isinstance(one, dict) for one in inside)
