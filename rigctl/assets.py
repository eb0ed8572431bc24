"""Where the roles, playbooks and the starter inventory are: in a checkout or inside the installed wheel."""

from __future__ import annotations

from pathlib import Path

from rigctl.errors import UsageError

_PACKAGE = Path(__file__).resolve().parent
_PLACES = (_PACKAGE / "_ansible", _PACKAGE.parent)
"""The wheel's copy first: an installed package must not pick up a folder that happens to lie beside it."""


def roles_dir() -> Path:
    """The folder that holds one folder per role.

    Raises:
        UsageError: the installation is damaged.
    """
    return _find("roles", landmark="nvidia_driver/defaults/main.yml")


def playbooks_dir() -> Path:
    """The folder that holds `site.yml`.

    Raises:
        UsageError: the installation is damaged.
    """
    return _find("playbooks", landmark="site.yml")


def starter_inventory_dir() -> Path:
    """The example park, from which the inventory of simulated rigs is made.

    Raises:
        UsageError: the installation is damaged.
    """
    return _find("inventory", landmark="rigs.yml")


def _find(name: str, *, landmark: str) -> Path:
    for place in _PLACES:
        if (place / name / landmark).is_file():
            return place / name
    raise UsageError(
        f"the folder {name}/ of rigctl is missing (looked in {' and '.join(str(place) for place in _PLACES)})",
        "install rigctl again, or run it from a complete checkout",
    )
