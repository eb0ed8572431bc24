"""Bring simulated rigs up, take them down, list them."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rigctl.errors import RigctlError, UsageError
from rigctl.sim import calibrate, image, inventory, keys, placement, podman, state
from rigctl.sim.cache import cache_dir, held
from rigctl.sim.podman import LABEL, Podman
from rigctl.sim.state import SimulatedRig, State, Training

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rigctl.sim.options import UpOptions

_READY_TIMEOUT_S = 90
_POLL_S = 0.2


def _silent(_line: str) -> None:
    """Take a progress line and show it nowhere."""


def up(options: UpOptions, say: Callable[[str], None] = _silent) -> State:
    """Bring rigs up and write how to reach them; rigs of an earlier `up` in the same folder are replaced.

    Raises:
        UsageError: wrong options, or this machine lacks what simulated rigs need.
        RigctlError: a rig did not become ready, or training could not be measured.
    """
    options.check()
    pod = podman.find()
    directory = options.directory.absolute()
    state.prepare(directory)
    with _locked(directory):
        _remove(pod, {f"{LABEL}.state": str(directory)})
        rig_image, wheels, training = _prepare(pod, options, say)
        say(f"starting {options.count} simulated rig{'s' if options.count > 1 else ''}")
        numbers = range(1, options.count + 1)
        found = State(
            directory=directory,
            rig_class=options.rig_class,
            platform=options.platform,
            archive=options.world,
            time_scale=options.time_scale,
            image=rig_image,
            seed=options.seed,
            rigs=tuple(_start(pod, options, rig_image, wheels, number) for number in numbers),
            training=training,
        )
        found.write()
        keys.write_ssh_files(found)
        for rig in found.rigs:
            wait_ready(found, rig)
        inventory.write_inventory(found, _gpu_burn_commit(pod, found.rigs[0]))
    return found


def down(directory: Path) -> list[str]:
    """Remove the rigs of a state folder, and the folder.

    Returns:
        The names of the containers that were removed.

    Raises:
        UsageError: another rigctl brings rigs up there at this moment.
    """
    pod = podman.find()
    directory = directory.absolute()
    if not (directory / "lock").exists():
        return _remove(pod, {f"{LABEL}.state": str(directory)})
    with _locked(directory):
        removed = _remove(pod, {f"{LABEL}.state": str(directory)})
        state.remove(directory)
    return removed


def down_all() -> list[str]:
    """Remove every simulated rig of this machine with its state folder, those that a crash left behind included."""
    pod = podman.find()
    every = {f"{LABEL}.rig": ""}
    folders = {one["Config"]["Labels"][f"{LABEL}.state"] for one in pod.inspect(pod.container_ids(every))}
    removed = _remove(pod, every)
    for folder in {*folders, str(state.default_directory())}:
        state.remove(Path(folder))
    return removed


@dataclass(frozen=True)
class Listed:
    """One line of `rigctl sim list`."""

    rig: str
    container: str
    status: str
    """podman's word: `running`, `exited` …; `gone` for a rig of the state folder without a container."""
    port: int | None
    directory: str
    simulated: bool = True
    """Always: so it says in print, too."""


def list_rigs(directory: Path | None = None) -> list[Listed]:
    """Return the simulated rigs of a state folder, or (None) of this machine."""
    pod = podman.find()
    labels = {f"{LABEL}.rig": ""} if directory is None else {f"{LABEL}.state": str(directory.absolute())}
    found = [_listed(one) for one in pod.inspect(pod.container_ids(labels))]
    known = {one.container for one in found}
    kept = state.load(directory) if directory is not None else None
    missing = [rig for rig in (kept.rigs if kept is not None else ()) if rig.container not in known]
    found += [Listed(rig.name, rig.container, "gone", rig.port, str(directory)) for rig in missing]
    return sorted(found, key=lambda one: (one.directory, len(one.rig), one.rig))


def wait_ready(found: State, rig: SimulatedRig, timeout_s: float = _READY_TIMEOUT_S) -> None:
    """Wait until `rig` has finished its start and lets us in.

    Raises:
        RigctlError: it did not within `timeout_s` seconds.
    """
    # `degraded` (a unit failed) is ready too: real machines are often so, and what failed is the roles' affair.
    words = "systemctl is-system-running --wait >/dev/null; test -s /run/rigsim/state"
    command = ["ssh", "-F", str(found.ssh_config), "-o", "ConnectTimeout=5", "-o", "BatchMode=yes", rig.name, words]
    deadline = time.monotonic() + timeout_s
    last = "no answer"
    while (left_s := deadline - time.monotonic()) > 0:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=left_s, check=False)
        except subprocess.TimeoutExpired:
            break
        if done.returncode == 0:
            return
        last = done.stderr.strip() or last
        time.sleep(_POLL_S)
    raise RigctlError(
        f"simulated rig {rig.name} did not become ready within {timeout_s:.0f} s: {last}",
        f"see what it does: podman logs {rig.container}; podman exec -it {rig.container} journalctl -b",
    )


def _prepare(pod: Podman, options: UpOptions, say: Callable[[str], None]) -> tuple[str, Path, Training | None]:
    """Return the image, the folder of wheels that rigs see, and what training shows on this machine."""
    rig_image = image.ensure_image(pod, options.wish(), say)
    wheels = cache_dir() / "no-wheels"
    wheels.mkdir(exist_ok=True)
    if not options.training:
        return rig_image, wheels, None
    version = "import sys; print('%d.%d' % sys.version_info[:2])"
    python = pod.run_once([rig_image, "python3", "-c", version]).strip()
    house = calibrate.prepare_wheels(python, say)
    if house is None:
        rig_image = image.ensure_image(pod, options.wish(more=("python3-torch",)), say)
    training = calibrate.calibrate(pod, rig_image, house, options, say)
    return rig_image, house.folder if house is not None else wheels, training


def _start(pod: Podman, options: UpOptions, rig_image: str, wheels: Path, number: int) -> SimulatedRig:
    directory = options.directory.absolute()
    name = f"rig{number}"
    container = f"rigsim-{state.key(directory)}-{name}"
    host_key = keys.key_pair(directory / "rigs" / name / "ssh_host_ed25519_key")
    login = keys.key_pair(directory / "id_ed25519")
    own = [
        f"--hostname={name}",
        f"--label={LABEL}.state={directory}",
        f"--label={LABEL}.rig={name}",
        "--publish=127.0.0.1::22",
        f"--volume={wheels}:{inventory.WHEELHOUSE}:ro",
        # A rig with real packages compiles for minutes and is not measured.
        *([] if options.wish().world else placement.pin(number)),
    ]
    pod.create_rig(container, rig_image, image.INIT, own)
    pod.unpack(container, placement.seed_tar(options, name, host_key, login.public))
    pod.call("start", container)
    ports = pod.inspect([container])[0]["NetworkSettings"]["Ports"]
    port = int(ports["22/tcp"][0]["HostPort"])
    return SimulatedRig(name=name, container=container, port=port, host_key=host_key.public)


def _gpu_burn_commit(pod: Podman, rig: SimulatedRig) -> str:
    return pod.execute(rig.container, "git", "-C", "/srv/rigsim/git/gpu-burn.git", "rev-parse", "HEAD").strip()


def _remove(pod: Podman, labels: dict[str, str]) -> list[str]:
    ids = pod.container_ids(labels)
    names = sorted(one["Name"] for one in pod.inspect(ids))
    pod.remove(ids)
    return names


def _listed(one: dict[str, Any]) -> Listed:
    labels = one["Config"]["Labels"]
    bindings = (one["NetworkSettings"].get("Ports") or {}).get("22/tcp") or []
    return Listed(
        rig=labels[f"{LABEL}.rig"],
        container=one["Name"],
        status=one["State"]["Status"],
        port=int(bindings[0]["HostPort"]) if bindings else None,
        directory=labels[f"{LABEL}.state"],
    )


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Let one process at a time change the rigs of a state folder."""
    with held(directory / "lock") as free:
        if not free:
            raise UsageError(
                f"another rigctl changes the rigs of {directory} at this moment", "wait for it, or use another --state"
            )
        yield
