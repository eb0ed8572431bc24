"""`rig_waivers`: the accepted deviations of one rig, read literally."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rigctl.checks.catalogue import CATALOGUE, USER
from rigctl.checks.waivers import CHECK as WAIVERS
from rigctl.errors import UsageError
from rigctl.inventory.explain import explain
from rigctl.inventory.parts import find_key
from rigctl.inventory.yamlfile import where
from rigctl.model.waiver import Waiver, WrittenWaiver

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.inventory.ansible_view import AnsibleView
    from rigctl.inventory.yamlfile import Key

WAIVERS_KEY = "rig_waivers"


def waivers_of(host: str, view: AnsibleView) -> tuple[Waiver, ...]:
    """Read the waivers of one rig, in their order; none where it has none.

    Raises:
        UsageError: the list is not literal, stands elsewhere than in `host_vars`, or one of them has an unknown,
            missing or wrong key, names no check, or says the same as another one; with file, line and key.
    """
    found = find_key(view.folder, "host_vars", host, WAIVERS_KEY)
    if found is None:
        if WAIVERS_KEY in view.variables[host]:
            raise UsageError(
                f"{view.path}: {host}: {WAIVERS_KEY} is set outside of plain files in host_vars/{host}/",
                f"move it to {view.folder / 'host_vars' / host / 'waivers.yml'}: a waiver is of one rig",
            )
        return ()
    path, data = found
    if not isinstance(data, list):
        raise UsageError(
            f"{where(path, (WAIVERS_KEY,))}: {WAIVERS_KEY} is no list",
            "write one entry per accepted deviation below it",
        )
    origin = path.relative_to(view.folder).as_posix()
    waivers = tuple(_waiver(path, origin, index, entry) for index, entry in enumerate(data))
    _require_apart(path, waivers)
    return waivers


def _waiver(path: Path, origin: str, index: int, entry: Any) -> Waiver:
    def place(key: Key) -> str:
        return where(path, (WAIVERS_KEY, index, *key))

    root = f"{WAIVERS_KEY}.{index}"
    try:
        written = WrittenWaiver.model_validate(entry)
    except ValidationError as error:
        raise explain(error, WrittenWaiver, place, root) from error
    known = written.check in CATALOGUE or written.check.startswith(USER)
    if not known or written.check == WAIVERS:
        close = get_close_matches(written.check, [one for one in CATALOGUE if one != WAIVERS], n=1)
        hint = f"did you mean {close[0]}?" if close else "docs/checks.md lists every check"
        raise UsageError(f"{place(('check',))}: {root}.check: no check {written.check!r} can be waived", hint)
    return Waiver(**written.model_dump(), origin=origin)


def _require_apart(path: Path, waivers: tuple[Waiver, ...]) -> None:
    seen: set[str] = set()
    for index, waiver in enumerate(waivers):
        if waiver.about in seen:
            raise UsageError(
                f"{where(path, (WAIVERS_KEY, index))}: {WAIVERS_KEY}.{index}: {waiver.about} is waived twice",
                "keep one of the two, with the date that holds",
            )
        seen.add(waiver.about)
