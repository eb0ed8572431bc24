"""People's own test files beside their inventory: `acceptance/test_*.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "acceptance"


def beside(inventory: Path) -> tuple[Path, ...]:
    """Return the folder `acceptance` beside an inventory, a file or a folder; nothing where it holds no test.

    Args:
        inventory: As it was named, or the default one.
    """
    folder = inventory.absolute().parent / FOLDER
    return (folder,) if any(folder.rglob("test_*.py")) else ()
