"""`rig_power`: how a rig's supply is switched; templates and vaulted passwords are resolved by Ansible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rigctl.errors import UsageError
from rigctl.inventory.explain import explain
from rigctl.inventory.yamlfile import dotted_key
from rigctl.model.power import Power

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.inventory.yamlfile import Key

POWER_KEY = "rig_power"
_FORMS = {
    "url": "is no address such as http://192.0.2.101",
    "mac": "is no hardware address such as 52:54:00:12:34:56",
}
_HINT = "docs/power.md shows each form; it belongs to host_vars/RIG/"


def power_of(host: str, values: Mapping[str, Any]) -> Power | None:
    """Read one rig's `rig_power`; None where it has none.

    Raises:
        UsageError: an unknown, missing or wrong key; with rig and key.
    """
    written = values.get(POWER_KEY)
    if written is None:
        return None

    def place(_key: Key) -> str:
        return host

    try:
        return Power.model_validate(written)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = dotted_key((POWER_KEY, *first["loc"]))
        last = str(first["loc"][-1]) if first["loc"] else ""
        if last == "password" and first["type"] != "missing":
            # Whatever stands there, it is not for the screen.
            raise UsageError(f"{host}: {key} is no text", "write it in quotes, vaulted") from None
        if first["type"] == "string_pattern_mismatch":
            raise UsageError(f"{host}: {key}: {first['input']!r} {_FORMS[last]}", _HINT) from error
        if first["type"] == "value_error":
            # What our own model says of the whole: pydantic puts its own words before it.
            raise UsageError(f"{host}: {key} {first['msg'].partition(', ')[2]}", _HINT) from error
        raise explain(error, Power, place, POWER_KEY) from error
