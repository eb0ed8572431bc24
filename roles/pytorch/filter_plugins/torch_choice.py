"""Which PyTorch goes with a driver and a Python: chosen from the tables in `files/`, never from prose."""

from __future__ import annotations

import csv
import io
from typing import Any

from ansible.errors import AnsibleFilterError

Row = dict[str, str]


def version_key(text: str) -> tuple[int, ...]:
    """`2.10.1` sorts after `2.9.0`; a build tag behind `+` does not count."""
    return tuple(int(part) for part in text.split("+", maxsplit=1)[0].split("."))


def rows(table: str) -> list[Row]:
    """A CSV file's text as rows."""
    return list(csv.DictReader(io.StringIO(table)))


def torch_choice(tables: dict[str, str], rig: dict[str, str], asked: dict[str, str]) -> dict[str, str]:
    """The PyTorch to install.

    Args:
        tables: texts of `torch_builds.csv` (builds), `torch_pythons.csv` (pythons), `driver_branches.csv` (drivers).
        rig: `driver` ("515" or "515.105.01", empty where there is none) and `python` ("3.10").
        asked: `version` ("auto" or "2.0.1") and `build` ("auto", "cpu" or a CUDA tag such as "cu117").

    Returns:
        version, build, index_url, and why these.

    Raises:
        AnsibleFilterError: nothing in the tables fits; the message says what would have to change.
    """
    version, build = asked["version"], asked["build"]
    builds = [row for row in rows(tables["builds"]) if version in {"auto", row["torch"]}]
    if build == "cpu":
        return _cpu_choice(builds, tables, rig, version)
    if not rig["driver"]:
        _refuse(asked, rig, "no NVIDIA driver is loaded; provision the driver first, or set pytorch_build: cpu")
    fit = [row for row in builds if build in {"auto", row["build"]}]
    if not fit:
        _refuse(asked, rig, "the table has no such build; set both to auto to have them chosen")
    fit = [row for row in fit if _python_fits(tables["pythons"], row["torch"], rig["python"])]
    if not fit:
        _refuse(asked, rig, f"no such build is for Python {rig['python']}; set pytorch_python to another Python")
    needed = min((row["min_driver"] for row in fit), key=version_key)
    fit = [row for row in fit if _driver_fits(row["min_driver"], rig["driver"])]
    if not fit:
        _refuse(asked, rig, f"it needs driver {needed} or newer; set nvidia_driver_branch, or both to auto")
    return _newest(fit, _max_cuda(tables["drivers"], rig["driver"]))


def _newest(fit: list[Row], max_cuda: tuple[int, ...]) -> dict[str, str]:
    """Builds for the branch's own CUDA come before those that live on minor-version compatibility.

    The latter run, but cannot have PTX compiled by the driver.
    """
    native = [row for row in fit if version_key(row["cuda"]) <= max_cuda]
    best = max(native or fit, key=lambda row: (version_key(row["torch"]), version_key(row["cuda"])))
    why = "native" if native else "minor-version compatibility, no PTX compiled by the driver"
    return {"version": best["torch"], "build": best["build"], "index_url": best["index_url"], "why": why}


def _cpu_choice(builds: list[Row], tables: dict[str, str], rig: dict[str, str], version: str) -> dict[str, str]:
    if version == "auto":
        known = [row["torch"] for row in builds if _python_fits(tables["pythons"], row["torch"], rig["python"])]
        if not known:
            _refuse({"version": version, "build": "cpu"}, rig, f"no version in the table is for Python {rig['python']}")
        version = max(known, key=version_key)
    elif not _python_fits(tables["pythons"], version, rig["python"]):
        _refuse({"version": version, "build": "cpu"}, rig, f"it is not for Python {rig['python']}; set pytorch_python")
    index_url = builds[0]["index_url"] if builds else rows(tables["builds"])[0]["index_url"]
    base = index_url.rstrip("/").rsplit("/", maxsplit=1)[0]
    return {"version": version, "build": "cpu", "index_url": f"{base}/cpu/", "why": "asked for"}


def _python_fits(pythons: str, torch: str, python: str) -> bool:
    minor = ".".join(torch.split("+", maxsplit=1)[0].split(".")[:2])
    return any(
        row["torch_minor"] == minor
        and version_key(row["min_python"]) <= version_key(python) <= version_key(row["max_python"])
        for row in rows(pythons)
    )


def _driver_fits(min_driver: str, driver: str) -> bool:
    """A bare branch ("525") stands for its newest release."""
    least, have = version_key(min_driver), version_key(driver)
    return have >= (least if len(have) > 1 else least[:1])


def _max_cuda(drivers: str, driver: str) -> tuple[int, ...]:
    """The branch's highest CUDA; for a branch newer than the table, that of the newest one in it before."""
    branch = int(driver.split(".", maxsplit=1)[0])
    known = [row for row in rows(drivers) if int(row["branch"]) <= branch]
    if not known:
        raise AnsibleFilterError(f"driver branch {branch} is older than every branch in the table of branches")
    return version_key(max(known, key=lambda row: int(row["branch"]))["max_cuda"])


def _refuse(asked: dict[str, str], rig: dict[str, str], why: str) -> None:
    raise AnsibleFilterError(
        f"no PyTorch for pytorch_version: {asked['version']}, pytorch_build: {asked['build']}, driver "
        f"{rig['driver'] or 'none'}, Python {rig['python']}: {why}"
    )


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Any]:
        """The filters by name."""
        return {"torch_choice": torch_choice}
