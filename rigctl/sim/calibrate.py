"""Measure what training shows on this machine, so that simulated rigs have a floor that means something.

Nobody can say beforehand how many tokens a second a borrowed CPU core trains. So throwaway containers, each pinned to
one core as rigs are, run the workload that acceptance will run, and the floor is a share of the slowest.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rigctl.errors import RigctlError
from rigctl.sim import inventory, placement, wheelhouse
from rigctl.sim.cache import cache_dir, only_one
from rigctl.sim.state import Training

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.sim.options import UpOptions
    from rigctl.sim.podman import Podman
    from rigctl.sim.wheelhouse import Wheelhouse

FLOOR_SHARE = 0.75
"""Of what was measured. Repeats on one machine differed by up to a tenth; a card at half speed must stay below."""

_PARALLEL = 2
"""At most two loaded rigs at once: more say more about the machine's memory than about its cores."""

_TRAIN = Path(__file__).parents[1] / "agent" / "scripts" / "train.py"
_VENV = "/opt/calibrate"
_INSTALL_TIMEOUT_S = 600


def calibrate(
    podman: Podman, image: str, wheels: Wheelhouse | None, options: UpOptions, say: Callable[[str], None]
) -> Training:
    """Train in throwaway containers of `image` and return the floor; without `wheels` on the distribution's PyTorch.

    Raises:
        RigctlError: PyTorch could not be installed, or training failed; its own words are in the message.
    """
    source = placement.sources_list(options)
    mounts, command = _with_wheels(podman, (image, source), wheels, say) if wheels else _with_distribution(source)
    count = min(options.count, _PARALLEL)
    say(f"measuring training in {count} throwaway container{'s' if count > 1 else ''}")
    with ThreadPoolExecutor(count) as pool:
        trainings = [
            pool.submit(_train, podman, [*mounts, *placement.pin(number), image, *command])
            for number in range(1, count + 1)
        ]
        found = [training.result() for training in trainings]
    slowest = min(float(one["tokens_per_s"]) for one in found)
    return Training(
        torch_version=found[0]["torch"],
        from_distribution=wheels is None,
        tokens_per_s=round(slowest, 1),
        floor_tokens_per_s=float(round(FLOOR_SHARE * slowest)),
    )


def _with_wheels(
    podman: Podman, rig: tuple[str, str], wheels: Wheelhouse, say: Callable[[str], None]
) -> tuple[list[str], list[str]]:
    """Return container options and command for an environment that is built once and kept; `rig`: image, sources."""
    image, source = rig
    venv = cache_dir() / f"torch-venv-{wheels.torch_version}-py{wheels.python}"
    script = (
        f"rm -rf {_VENV}/* && {_apt('python3-venv', source)} && python3 -m venv {_VENV}/venv "
        f"&& {_VENV}/venv/bin/pip install --quiet --no-index --find-links={inventory.WHEELHOUSE} "
        f"torch=={wheels.torch_version} numpy && touch {_VENV}/complete"
    )
    with only_one("torch-venv"):
        if not (venv / "complete").exists():
            say("building an environment with PyTorch for measuring (once)")
            venv.mkdir(parents=True, exist_ok=True)
            mounts = [f"--volume={venv}:{_VENV}", f"--volume={wheels.folder}:{inventory.WHEELHOUSE}:ro"]
            podman.run_once([*mounts, image, "sh", "-c", script], timeout_s=_INSTALL_TIMEOUT_S)
    return [f"--volume={venv}:{_VENV}:ro"], ["sh", "-c", _measure(f"{_VENV}/venv/bin/python")]


def _with_distribution(source: str) -> tuple[list[str], list[str]]:
    return [], ["sh", "-c", f"{_apt('python3-torch', source)} && {_measure('python3')}"]


def _apt(package: str, source: str) -> str:
    """Return the shell words that install `package` from the rig's own archive."""
    return (
        f"echo '{source.strip()}' > /etc/apt/sources.list && apt-get -qq update && "
        f"DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends {package} >/dev/null"
    )


def _measure(python: str) -> str:
    workload = json.dumps(inventory.TRAINING)
    return f"{python} /mnt/train.py --training '{workload}' --out /tmp/train.json >&2; cat /tmp/train.json"


def _train(podman: Podman, run: list[str]) -> dict[str, Any]:
    reply = podman.run_once([f"--volume={_TRAIN}:/mnt/train.py:ro", *run], timeout_s=_INSTALL_TIMEOUT_S)
    found: dict[str, Any] = json.loads(reply)
    if "error" in found:
        raise RigctlError(f"training could not be measured on this machine: {found['error']}", found["hint"])
    return found


def prepare_wheels(python: str, say: Callable[[str], None]) -> Wheelhouse | None:
    """Return the wheels for rigs; None, and a line that says so, where no CPU wheel is offered."""
    folder = cache_dir() / f"wheelhouse-py{python}"
    try:
        with only_one("wheelhouse"):
            return wheelhouse.ensure_wheelhouse(folder, python, say)
    except wheelhouse.NoCpuWheel as error:
        say(f"no CPU wheel of PyTorch: the distribution's python3-torch is used ({error.message})")
        return None
