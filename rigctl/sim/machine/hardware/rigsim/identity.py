"""Who a rig is: the class's template plus what differs from rig to rig, seeded so that a run can be repeated."""

from __future__ import annotations

import copy
import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

CLASSES = Path(__file__).parent / "classes"
SERIAL_DIGITS = 13
"""Of a board's serial number; GeForce boards tell none."""


def load_template(rig_class: str) -> dict[str, Any]:
    """Read the template of a rig class; FileNotFoundError when there is none of that name."""
    template: dict[str, Any] = json.loads((CLASSES / f"{rig_class}.json").read_text(encoding="utf-8"))
    return template


def make_identity(template: dict[str, Any], rig: str, seed: int = 0) -> dict[str, Any]:
    """Give one rig of a class its own card UUIDs, board serial and hostname; same rig and seed, same identity."""
    identity = copy.deepcopy(template)
    identity["rig"] = rig
    identity["machine"]["serial"] = _digest(seed, rig, "machine")[:12].upper()
    for card in identity["cards"]:
        digest = _digest(seed, rig, f"slot{card['slot']}")
        card["uuid"] = f"GPU-{uuid.UUID(hex=digest[:32], version=4)}"
        if template["card"].get("has_serial"):
            card["serial"] = str(int(digest[32:46], 16) % 10**SERIAL_DIGITS).zfill(SERIAL_DIGITS)
    return identity


def load_identity(path: Path, *, rig: str, rig_class: str = "dual_3090ti", seed: int = 0) -> dict[str, Any]:
    """Read the rig's identity; where there is none yet, make it from the class and keep it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(make_identity(load_template(rig_class), rig, seed), indent=1), encoding="utf-8")
    identity: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return identity


def _digest(seed: int, rig: str, part: str) -> str:
    return hashlib.sha256(f"{seed}:{rig}:{part}".encode()).hexdigest()
