"""Software: what the roles were asked to install is what is loaded, installed and built."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rigctl.checks.cards import FACTS_FIX, cards
from rigctl.checks.say import Say
from rigctl.parse import ParseError, dpkg

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.model.reading import CommandReply, DriverFacts, Facts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

AUTO = "auto"
LEAST_BRANCH = {11: 450, 12: 525, 13: 580}
"""CUDA major version → least driver branch that runs it.

Source: docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.
"""
_VERSION = re.compile(r"\d+\.\d+")
"""How every version of PyTorch begins."""
_CUDA_TAG = re.compile(r"\+cu(\d{2})\d", re.ASCII)


def _provision(readings: Readings, role: str) -> str:
    return f"rigctl provision {readings.rig} --tags {role}"


def _role(variable: str) -> str:
    return f"the roles' variable {variable}"


def driver_version(
    spec: RigSpec, readings: Readings, packages: CommandReply | None = None, loaded_now: str | None = None
) -> list[CheckVerdict]:
    """Loaded module, library on disk, packages and the asked branch are one driver.

    `packages` answers `dpkg-query` for `libnvidia-compute*` and Debian's `libnvidia-ml1`; `loaded_now` is the module's
    version at verification.
    """
    branch = spec.software.driver_branch
    say = Say("software.driver_version", expected=branch, source=_role("nvidia_driver_branch"))
    facts = readings.facts
    if facts is None:
        return [say.error("the rig's facts were not read", FACTS_FIX.format(rig=readings.rig))]
    if bad := _not_loaded(say, readings, facts.driver) or _mismatch(say, readings, facts.driver):
        return [bad]
    loaded = facts.driver.loaded or ""
    if loaded_now is not None and loaded_now != loaded:
        reason = f"the driver changed during the run, from {loaded} to {loaded_now}"
        return [say.failed(reason, loaded_now, f"find out what upgraded it, then `rigctl accept {readings.rig}` again")]
    if loaded.partition(".")[0] != branch:
        reason = f"driver {loaded} is loaded, branch {branch} was asked for"
        return [say.failed(reason, loaded, _provision(readings, "nvidia_driver"))]
    if packages is not None:
        return [_packages(say, readings, loaded, packages)]
    return [say.passed(f"driver {loaded} is loaded, its library is the same", loaded)]


def _not_loaded(say: Say, readings: Readings, driver: DriverFacts) -> CheckVerdict | None:
    fix = _provision(readings, "nvidia_driver")
    if driver.loaded is None and driver.library is None:
        return say.failed("no NVIDIA driver is installed", "none", fix)
    if driver.loaded is None:
        reason = f"the library of driver {driver.library} is installed, but no module is loaded"
        return say.failed(reason, "none", f"reboot {readings.rig}; if it stays so, `dkms status` there, then {fix}")
    return None


def _mismatch(say: Say, readings: Readings, driver: DriverFacts) -> CheckVerdict | None:
    said = driver.nvml_error or ""
    if driver.library is None and not said:
        return say.error(
            f"driver {driver.loaded} is loaded, but its library's version could not be read",
            _provision(readings, "nvidia_driver"),
        )
    if (driver.library and driver.library != driver.loaded) or "mismatch" in said.lower():
        reason = f"driver {driver.loaded} is loaded, the library on disk is {driver.library or 'another one'}"
        found = f"{driver.loaded} loaded, {driver.library or 'unknown'} on disk"
        return say.failed(reason, found, f"reboot {readings.rig}: it still runs the module from before an upgrade")
    if said:
        return say.error(f"NVML cannot be asked: {said}", f"run `nvidia-smi` on {readings.rig}; reboot it")
    return None


def _packages(say: Say, readings: Readings, loaded: str, reply: CommandReply) -> CheckVerdict:
    if reply.exit_status not in (0, 1):
        reason = f"the driver's packages could not be asked: {_last_line(reply)}"
        return say.error(reason, f"run `dpkg-query -W 'libnvidia-compute*' libnvidia-ml1` on {readings.rig}")
    try:
        installed = [package for package in dpkg.parse(reply.stdout) if package.installed]
    except ParseError as error:
        return say.error(str(error), "tell us this form of dpkg-query")
    if not installed:
        return say.warned(
            f"driver {loaded} is loaded and belongs to no package: upgrades will not see it",
            loaded,
            f"remove it with its own installer, then {_provision(readings, 'nvidia_driver')}",
        )
    if all(package.upstream != loaded for package in installed):
        names = ", ".join(f"{package.name} {package.version}" for package in installed)
        return say.failed(
            f"driver {loaded} is loaded, the packages are {names}", names, f"reboot {readings.rig} to load them"
        )
    return say.passed(f"driver {loaded} is loaded; library and packages are the same", loaded)


def cuda_toolkit(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """The CUDA toolkit is of the asked version, major and minor."""
    asked = spec.software.cuda_version
    say = Say("software.cuda_toolkit", expected=asked, source=_role("cuda_version"))
    facts = readings.facts
    if facts is None:
        return [say.error("the rig's facts were not read", FACTS_FIX.format(rig=readings.rig))]
    found = facts.tools.nvcc
    if found is None:
        return [say.failed("no CUDA toolkit was found", "none", _provision(readings, "cuda"))]
    if found.split(".")[:2] != asked.split(".")[:2]:
        reason = f"CUDA toolkit {found} is installed, {asked} was asked for"
        return [say.failed(reason, found, _provision(readings, "cuda"))]
    return [say.passed(f"CUDA toolkit {found}", found)]


def torch(spec: RigSpec, readings: Readings, version: CommandReply | None = None) -> list[CheckVerdict]:
    """PyTorch is there, of the asked version and build, and its CUDA runs on the driver.

    `version` answers the environment's own Python, which prints the version of its torch.
    """
    software = spec.software
    asked = f"{software.torch_version}, build {software.torch_build}"
    say = Say("software.torch", expected=asked, source=_role("pytorch_version and pytorch_build"))
    facts = readings.facts
    if facts is None:
        return [say.error("the rig's facts were not read", FACTS_FIX.format(rig=readings.rig))]
    found, fix = facts.tools.torch, _provision(readings, "pytorch")
    if found is None:
        return [say.error(f"PyTorch is not installed in {software.torch_venv}", fix)]
    if version is not None and (version.exit_status != 0 or version.stdout.strip() != found):
        now = version.stdout.strip() or _last_line(version)
        return [say.error(f"the facts say PyTorch {found}, its environment now says {now}", fix)]
    if not _VERSION.match(found):
        return [say.error(f"PyTorch names {found!r} as its version", fix)]
    reason = _torch_misfit(spec, found)
    return [say.failed(reason, found, fix) if reason else say.passed(f"PyTorch {found}", found)]


def _torch_misfit(spec: RigSpec, found: str) -> str | None:
    asked, build, branch = spec.software.torch_version, spec.software.torch_build, spec.software.driver_branch
    if asked not in (AUTO, found, found.partition("+")[0]):
        return f"PyTorch {found} is installed, {asked} was asked for"
    tag = found.partition("+")[2]
    # A distribution's PyTorch carries no tag and is a CPU build.
    if build not in (AUTO, tag or "cpu") and (build != "distribution" or tag):
        return f"PyTorch {found} is a {tag or 'cpu'} build, {build} was asked for"
    match = _CUDA_TAG.search(found)
    if match and branch.isdecimal() and int(branch) < LEAST_BRANCH.get(int(match[1]), 0):
        least = LEAST_BRANCH[int(match[1])]
        return f"PyTorch {found} needs driver branch {least} or later, this rig's is {branch}"
    return None


def gpu_burn_build(spec: RigSpec, readings: Readings, present: Mapping[str, bool] | None = None) -> list[CheckVerdict]:
    """gpu-burn is there and was built for these cards.

    `present` tells of the files in its folder whether they are there now.
    """
    folder = spec.software.gpu_burn_dir
    say = Say("software.gpu_burn_build", source=_role("gpu_burn_dir and gpu_burn_commit"))
    fix = _provision(readings, "gpu_burn")
    facts = readings.facts
    if facts is None:
        return [say.error("the rig's facts were not read", FACTS_FIX.format(rig=readings.rig))]
    missing = sorted(name for name, there in (present or {}).items() if not there)
    if facts.tools.gpu_burn is None or missing:
        what = ", ".join(missing) or "gpu_burn"
        return [say.error(f"{folder} lacks {what}: no burn is possible", fix)]
    return [_build(say, readings, facts, fix)]


def _build(say: Say, readings: Readings, facts: Facts, fix: str) -> CheckVerdict:
    build = facts.tools.gpu_burn_build
    built_for = _capabilities(build.get("compute_capabilities", ""))
    if not built_for:
        return say.error("gpu-burn has no build.json that names compute capabilities: who built it is unknown", fix)
    wanted = {gpu.compute_capability for gpu in cards(readings) if gpu.compute_capability}
    if not wanted:
        return say.error("the cards' compute capability could not be read", "see software.driver_version")
    say = Say(say.check, say.subject, ", ".join(sorted(wanted)), None, "the cards' own compute capability")
    found = ", ".join(built_for)
    if not wanted <= set(built_for):
        return say.failed(f"gpu-burn was built for {found}, the cards are {say.expected}", found, fix)
    return say.passed(f"gpu-burn {build.get('commit', 'of an unknown commit')[:12]}, built for {found}", found)


def _capabilities(text: str) -> list[str]:
    """Return the compute capabilities in build.json's list, such as `['8.6']`."""
    return re.findall(r"\d+\.\d", text)


def _last_line(reply: CommandReply) -> str:
    lines = [line.strip() for line in (reply.stderr + "\n" + reply.stdout).splitlines() if line.strip()]
    return lines[-1] if lines else f"no answer, status {reply.exit_status}"
