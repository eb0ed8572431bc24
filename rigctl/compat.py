"""What goes with what: a question to the tables of the role `compat`, answered with the reason and the source.

The rules are the role's own (`roles/compat/filter_plugins/compat.py`), so that roles and program cannot differ.
"""

from __future__ import annotations

import importlib.util
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from rigctl import assets
from rigctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.rig import Rig


@dataclass(frozen=True)
class Asked:
    """What is given; empty for what is asked."""

    driver: str = ""
    """A branch such as `515`, or a version such as `515.105.01`."""
    cuda: str = ""
    """A toolkit such as `11.7`."""
    torch: str = ""
    """A PyTorch such as `2.0.1`, or with its build `2.0.1+cu117`."""
    python: str = ""
    """A Python such as `3.10`."""


@dataclass(frozen=True)
class Partner:
    """One driver, toolkit or PyTorch, and how it goes with what is given."""

    name: str
    fits: bool
    why: str
    source: str


@dataclass(frozen=True)
class Answer:
    """What goes with what is given."""

    asked: Asked
    drivers: tuple[Partner, ...]
    """By branch, oldest first."""
    toolkits: tuple[Partner, ...]
    torch: tuple[Partner, ...]
    refusals: tuple[str, ...]
    """Why what is given does not go together; nothing where it does."""
    choice: str
    """The PyTorch that the role `pytorch` would take; empty where none fits or no driver is given."""
    choice_why: str

    def as_data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


@cache
def rules() -> Any:
    """The role's own module: its tables and its rules."""
    path = assets.roles_dir() / "compat" / "filter_plugins" / "compat.py"
    spec = importlib.util.spec_from_file_location("rigctl_role_compat", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be loaded", "install rigctl again")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refuse_wishes(fleet: Sequence[Rig]) -> None:
    """Refuse, before any SSH, a fleet whose inventory asks for what does not go together.

    Raises:
        UsageError: with the first such rig and what would have to change.
    """
    for rig in fleet:
        software = rig.spec.software
        said = rules().compat_refusals(
            {
                "driver": software.driver_branch,
                "cuda": [software.cuda_version],
                "torch": software.torch_version,
                "build": software.torch_build,
                "python": "",
                "allow_cuda": software.cuda_allow_unrunnable,
            }
        )
        if said:
            raise UsageError(
                f"{rig.name}: {' '.join(said)}",
                "see what goes together: rigctl compat; then correct the role variables in the inventory",
            )


def look_up(asked: Asked) -> Answer:
    """Answer from the tables.

    Raises:
        UsageError: a version that does not exist; with the nearest ones.
    """
    _refuse_unknown(asked)
    choice, choice_why = _choice(asked)
    return Answer(
        asked=asked,
        drivers=_drivers(asked),
        toolkits=_toolkits(asked),
        torch=_torch(asked),
        refusals=tuple(_refusals(asked)),
        choice=choice,
        choice_why=choice_why,
    )


def _refuse_unknown(asked: Asked) -> None:
    table = rules().rows
    known = {
        "driver": [row["branch"] for row in table("drivers")],
        "cuda": [row["cuda"] for row in table("toolkits")],
        "torch": [row["torch"] for row in table("builds")],
    }
    for name, versions in known.items():
        given = getattr(asked, name)
        if not given:
            continue
        try:
            wanted = rules().branch_of(given) if name == "driver" else given.partition("+")[0]
            said = rules().unknown({"cuda": "CUDA toolkit", "torch": "PyTorch"}.get(name, name), wanted, versions)
        except ValueError as error:
            raise UsageError(f"--{name} {given} is not a version", f"such as --{name} {versions[-1]}") from error
        if said:
            raise UsageError(said.rstrip("."), f"the table knows: {', '.join(dict.fromkeys(versions))}")


def _choice(asked: Asked) -> tuple[str, str]:
    if not asked.driver:
        return "", ""
    version, _, build = asked.torch.partition("+")
    wish = {"version": version or "auto", "build": build or "auto"}
    try:
        found = rules().torch_choice({"driver": asked.driver, "python": asked.python}, wish)
    except rules().AnsibleFilterError as error:
        return "", str(error)
    return f"{found['version']}+{found['build']}", str(found["why"])


def _refusals(asked: Asked) -> list[str]:
    version, _, build = asked.torch.partition("+")
    said = []
    if asked.driver and asked.cuda:
        said.append(rules().toolkit_refusal(asked.cuda, asked.driver))
    builds = [row for row in rules().rows("builds") if row["torch"] == version and build in {"", row["build"]}]
    if asked.torch and not builds:
        said.append(f"There is no build {build} of PyTorch {version}.")
    if builds and asked.driver and not any(rules().driver_fits(row["min_driver"], asked.driver) for row in builds):
        least = min((row["min_driver"] for row in builds), key=rules().version_key)
        said.append(f"PyTorch {asked.torch} does not run on driver {asked.driver}: it needs {least} or newer.")
    if builds and asked.python and not rules().python_fits(version, asked.python):
        said.append(f"PyTorch {version} is not published for Python {asked.python}.")
    return [one for one in said if one]


def _drivers(asked: Asked) -> tuple[Partner, ...]:
    """Branches by what the given toolkit and PyTorch need."""
    version, _, build = asked.torch.partition("+")
    builds = [row for row in rules().rows("builds") if row["torch"] == version and build in {"", row["build"]}]
    needs = [rules().needed_driver(asked.cuda)] if asked.cuda else []
    needs += [min((row["min_driver"] for row in builds), key=rules().version_key)] if builds else []
    least = max((need for need in needs if need), key=rules().version_key, default="")
    found = []
    for row in rules().rows("drivers"):
        if asked.driver and row["branch"] != rules().branch_of(asked.driver):
            continue
        fits = not least or rules().driver_fits(least, row["branch"])
        why = f"CUDA {row['max_cuda']} at most natively"
        if least:
            why += f"; {least} or newer is needed"
        found.append(Partner(row["branch"], fits, why, row["source"]))
    return tuple(found)


def _toolkits(asked: Asked) -> tuple[Partner, ...]:
    """The newest release of each toolkit."""
    newest = {row["cuda"]: row for row in rules().rows("toolkits")}
    return tuple(
        _partner(row["cuda"], row, asked.driver, f"came with driver {row['driver']}")
        for row in newest.values()
        if asked.cuda in {"", row["cuda"]}
    )


def _torch(asked: Asked) -> tuple[Partner, ...]:
    version, _, build = asked.torch.partition("+")
    found = []
    for row in rules().rows("builds"):
        other = version not in {"", row["torch"]} or build not in {"", row["build"]}
        if other or asked.cuda not in {"", row["cuda"]}:
            continue
        one = _partner(f"{row['torch']}+{row['build']}", row, asked.driver, "")
        if asked.python and not rules().python_fits(row["torch"], asked.python):
            one = Partner(one.name, fits=False, why=f"not published for Python {asked.python}", source=row["source"])
        found.append(one)
    return tuple(found)


def _partner(name: str, row: dict[str, str], driver: str, about: str) -> Partner:
    need = f"needs driver {row['min_driver']} or newer"
    how = rules().how_it_runs(row["cuda"], row["min_driver"], driver) if driver else need
    why = "; ".join(part for part in (how or need, about) if part)
    return Partner(name, fits=bool(how), why=why, source=row["source"])
