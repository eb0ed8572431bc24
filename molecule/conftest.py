"""What the testinfra tests of all scenarios ask with."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from testinfra.host import Host


@pytest.fixture(scope="session")
def expected() -> SimpleNamespace:
    """The scenario's expected.json: `driver`, the exact version, and `toolkit`, as `11.7`."""
    path = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]) / "expected.json"
    return SimpleNamespace(**json.loads(path.read_text(encoding="utf-8")))


@pytest.fixture
def installed(host: Host) -> Callable[[str], dict[str, str]]:
    """A pattern of names → the packages that are installed, held ones too, with their versions."""

    def ask(pattern: str) -> dict[str, str]:
        form = "${db:Status-Abbrev}/${Package}/${Version}\\n"
        rows = host.check_output("dpkg-query -W -f %s %s", form, pattern).splitlines()
        found = (row.split("/") for row in rows)
        return {name: version for state, name, version in found if state[1] == "i"}

    return ask
