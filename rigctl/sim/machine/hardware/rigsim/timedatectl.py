"""`timedatectl` of a simulated rig: the real one would tell of the host's clock, which no rig keeps."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .state import read_state

if TYPE_CHECKING:
    from .paths import Paths

_WORDS = {"NTP": "clock.service", "NTPSynchronized": "clock.synchronised"}


def timedatectl(paths: Paths, arguments: list[str]) -> int:
    """`show [--property=NAME …] [--value]` and the status; settings are refused."""
    told = read_state(paths.state)
    values = {name: "yes" if told.get(key, "1") == "1" else "no" for name, key in _WORDS.items()}
    command = next((word for word in arguments if not word.startswith("-") and word not in _WORDS), "status")
    if command == "status":
        sys.stdout.write(f"System clock synchronized: {values['NTPSynchronized']}\n")
        sys.stdout.write(f"              NTP service: {'active' if values['NTP'] == 'yes' else 'inactive'}\n")
        return 0
    if command != "show":
        sys.stderr.write(f"timedatectl: {command} is not simulated\n")
        return 1
    asked = [word.rpartition("=")[2] for word in arguments if word.rpartition("=")[2] in _WORDS] or list(_WORDS)
    plain = "--value" in arguments
    sys.stdout.write("".join(f"{values[name] if plain else f'{name}={values[name]}'}\n" for name in asked))
    return 0
