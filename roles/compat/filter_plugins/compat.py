"""What goes with what: driver, CUDA toolkit, PyTorch, Python; from the tables in `../files/`, never from prose.

Versions are text: "515" is a branch (and stands for its newest release), "515.105.01" a driver, "11.7" a toolkit.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError

Row = dict[str, str]

TABLES = {
    "builds": "torch_builds.csv",
    "pythons": "torch_pythons.csv",
    "drivers": "driver_branches.csv",
    "toolkits": "cuda_toolkits.csv",
}
NATIVE = "native"
MINOR = "minor-version compatibility, no PTX compiled by the driver"


@cache
def rows(table: str) -> tuple[Row, ...]:
    """One of `TABLES`."""
    path = Path(__file__).resolve().parent.parent / "files" / TABLES[table]
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def version_key(text: str) -> tuple[int, ...]:
    """`2.10.1` sorts after `2.9.0`; a build tag behind `+` does not count."""
    return tuple(int(part) for part in text.split("+", maxsplit=1)[0].split("."))


def branch_of(driver: str) -> str:
    """`515.105.01` → `515`."""
    return driver.split(".", maxsplit=1)[0]


def driver_fits(min_driver: str, driver: str) -> bool:
    """Whether a driver is new enough; a bare branch stands for its newest release."""
    least, have = version_key(min_driver), version_key(driver)
    return have >= (least if len(have) > 1 else least[:1])


def python_fits(torch: str, python: str) -> bool:
    """Whether a PyTorch release is published for a Python."""
    minor = ".".join(torch.split("+", maxsplit=1)[0].split(".")[:2])
    return any(
        row["torch_minor"] == minor
        and version_key(row["min_python"]) <= version_key(python) <= version_key(row["max_python"])
        for row in rows("pythons")
    )


def max_cuda(driver: str) -> tuple[int, ...]:
    """The branch's highest CUDA; for a branch newer than the table, that of the newest one in it before.

    Raises:
        AnsibleFilterError: the branch is older than the table.
    """
    known = [row for row in rows("drivers") if int(row["branch"]) <= int(branch_of(driver))]
    if not known:
        raise AnsibleFilterError(
            f"driver branch {branch_of(driver)} is older than every branch in the table of branches"
        )
    return version_key(max(known, key=lambda row: int(row["branch"]))["max_cuda"])


def needed_driver(cuda: str) -> str:
    """The least driver of a toolkit, by minor-version compatibility; empty for one that is not in the table."""
    return next((row["min_driver"] for row in rows("toolkits") if row["cuda"] == cuda), "")


def how_it_runs(cuda: str, min_driver: str, driver: str) -> str:
    """How something built with a CUDA runs on a driver: `NATIVE`, `MINOR`, or empty where it does not."""
    if not driver_fits(min_driver, driver):
        return ""
    return NATIVE if version_key(cuda) <= max_cuda(driver) else MINOR


def nearest(asked: str, known: list[str]) -> list[str]:
    """The known versions on both sides of one that is not known."""
    ordered = sorted(set(known), key=version_key)
    below = [one for one in ordered if version_key(one) < version_key(asked)]
    return [*below[-1:], *ordered[len(below) : len(below) + 1]]


def unknown(what: str, asked: str, known: list[str]) -> str:
    """Why a version cannot exist, with the nearest ones; empty for a known one, and for one newer than the table."""
    newest = max(known, key=version_key)
    if asked in known or version_key(asked) > version_key(newest):
        return ""
    return f'There is no {what} "{asked}"; the nearest are {" and ".join(nearest(asked, known))}.'


def toolkit_refusal(cuda: str, driver: str) -> str:
    """Why a toolkit is not for a driver, and what would be; empty where it runs."""
    missing = unknown("CUDA toolkit", cuda, [row["cuda"] for row in rows("toolkits")])
    needed = needed_driver(cuda)
    if missing or not needed or not driver or driver_fits(needed, driver):
        return missing
    able = [row["cuda"] for row in rows("toolkits") if driver_fits(row["min_driver"], driver)]
    best = max(able, key=version_key) if able else "none"
    return (
        f"CUDA {cuda} does not run on driver {driver}: it needs {needed} or newer, by NVIDIA's rule of minor-version "
        f"compatibility. The newest toolkit for this driver is {best}."
    )


def compat_refusals(wishes: dict[str, Any]) -> list[str]:
    """Why wishes do not go together; nothing where they do.

    Args:
        wishes: `driver` (branch or version), `cuda` (list of toolkits), `torch` and `build` as in `torch_choice`,
            `python` (empty where it is not known yet), `allow_cuda` (a toolkit may be newer than the driver can run).
    """
    driver = str(wishes["driver"])
    said = [unknown("driver branch", branch_of(driver), [row["branch"] for row in rows("drivers")])] if driver else []
    if any(said):
        return said
    said += ["" if wishes["allow_cuda"] else toolkit_refusal(str(cuda), driver) for cuda in wishes["cuda"]]
    if driver and wishes["torch"] and wishes["build"] not in {"cpu", "distribution"}:
        said.append(_torch_refusal(driver, wishes))
    return [one for one in said if one]


def _torch_refusal(driver: str, wishes: dict[str, Any]) -> str:
    try:
        torch_choice(
            {"driver": driver, "python": wishes["python"]}, {"version": wishes["torch"], "build": wishes["build"]}
        )
    except AnsibleFilterError as error:
        return f"{str(error)[:1].upper()}{str(error)[1:]}."
    return ""


def torch_choice(rig: dict[str, str], asked: dict[str, str]) -> dict[str, str]:
    """The PyTorch to install.

    Args:
        rig: `driver` ("515" or "515.105.01", empty where there is none) and `python` ("3.10"; empty: any).
        asked: `version` ("auto" or "2.0.1") and `build` ("auto", "cpu" or a CUDA tag such as "cu117").

    Returns:
        version, build, index_url, and why these.

    Raises:
        AnsibleFilterError: nothing in the tables fits; the message says what would have to change.
    """
    version, build, python = asked["version"], asked["build"], rig["python"]
    builds = [row for row in rows("builds") if version in {"auto", row["torch"]}]
    if build == "cpu":
        return _cpu_choice(builds, rig, version)
    if not rig["driver"]:
        _refuse(asked, rig, "no NVIDIA driver is loaded; provision the driver first, or set pytorch_build: cpu")
    fit = [row for row in builds if build in {"auto", row["build"]}]
    if not fit:
        _refuse(asked, rig, "the table has no such build; set both to auto to have them chosen")
    fit = [row for row in fit if not python or python_fits(row["torch"], python)]
    if not fit:
        _refuse(asked, rig, f"no such build is for Python {python}; set pytorch_python to another Python")
    needed = min((row["min_driver"] for row in fit), key=version_key)
    fit = [row for row in fit if driver_fits(row["min_driver"], rig["driver"])]
    if not fit:
        _refuse(asked, rig, f"it needs driver {needed} or newer; set nvidia_driver_branch, or both to auto")
    return newest(fit, rig["driver"])


def newest(fit: list[Row], driver: str) -> dict[str, str]:
    """Builds for the branch's own CUDA come before those that live on minor-version compatibility.

    The latter run, but cannot have PTX compiled by the driver.
    """
    native = [row for row in fit if how_it_runs(row["cuda"], row["min_driver"], driver) == NATIVE]
    best = max(native or fit, key=lambda row: (version_key(row["torch"]), version_key(row["cuda"])))
    why = NATIVE if native else MINOR
    return {"version": best["torch"], "build": best["build"], "index_url": best["index_url"], "why": why}


def _cpu_choice(builds: list[Row], rig: dict[str, str], version: str) -> dict[str, str]:
    asked = {"version": version, "build": "cpu"}
    if version == "auto":
        known = [row["torch"] for row in builds if python_fits(row["torch"], rig["python"])]
        if not known:
            _refuse(asked, rig, f"no version in the table is for Python {rig['python']}")
        version = max(known, key=version_key)
    elif not python_fits(version, rig["python"]):
        _refuse(asked, rig, f"it is not for Python {rig['python']}; set pytorch_python")
    index_url = (builds or rows("builds"))[0]["index_url"]
    base = index_url.rstrip("/").rsplit("/", maxsplit=1)[0]
    return {"version": version, "build": "cpu", "index_url": f"{base}/cpu/", "why": "asked for"}


def _refuse(asked: dict[str, str], rig: dict[str, str], why: str) -> None:
    raise AnsibleFilterError(
        f"no PyTorch for pytorch_version: {asked['version']}, pytorch_build: {asked['build']}, driver "
        f"{rig['driver'] or 'none'}, Python {rig['python'] or 'any'}: {why}"
    )


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Any]:
        """The filters by name."""
        return {
            "torch_choice": torch_choice,
            "compat_refusals": compat_refusals,
            "toolkit_refusal": toolkit_refusal,
        }
