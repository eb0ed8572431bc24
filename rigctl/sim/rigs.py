"""Bring simulated rigs up, take them down, list them."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import subprocess
import tarfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rigctl.errors import RigctlError, UsageError
from rigctl.sim import image, inventory, keys, podman, state
from rigctl.sim.machine.hardware.rigsim import identity
from rigctl.sim.machine.packages.build import definition
from rigctl.sim.podman import LABEL, Podman
from rigctl.sim.state import SimulatedRig, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEFAULT_ARCHIVE = "2022"
DEFAULT_TIME_SCALE = 20.0
MAX_RIGS = 32
MAX_TIME_SCALE = 100
"""Beyond, a tick of the physics is longer than what it models."""
_READY_TIMEOUT_S = 90
_POLL_S = 0.2


def _silent(_line: str) -> None:
    """Take a progress line and show it nowhere."""


@dataclass(frozen=True)
class UpOptions:
    """What `up` is asked for; the defaults are the command's."""

    count: int = 2
    rig_class: str = "dual_3090ti"
    archive: str = DEFAULT_ARCHIVE
    time_scale: float = DEFAULT_TIME_SCALE
    directory: Path = field(default_factory=state.default_directory)
    image: str | None = None
    """An OCI image to build rigs from, or a ready one (a snapshot); None: the host's own packages."""
    seed: int = 0
    """Serial numbers, UUIDs and sensor noise follow from it."""
    training: bool = True
    """False leaves PyTorch's wheels and the training floor out; the inventory then keeps the class's own workload."""


def up(options: UpOptions, say: Callable[[str], None] = _silent) -> State:
    """Bring rigs up and write how to reach them; rigs of an earlier `up` in the same folder are replaced.

    Raises:
        UsageError: wrong options, or this machine lacks what simulated rigs need.
        RigctlError: a rig did not become ready.
    """
    _check(options)
    pod = podman.find()
    directory = options.directory.absolute()
    state.prepare(directory)
    with _locked(directory):
        pod.remove(pod.container_ids({f"{LABEL}.state": str(directory)}))
        rig_image = image.ensure_image(pod, options.image, say)
        say(f"starting {options.count} rigs")
        rigs = tuple(_start(pod, options, directory, rig_image, number) for number in range(1, options.count + 1))
        found = State(
            directory=directory,
            rig_class=options.rig_class,
            archive=options.archive,
            time_scale=options.time_scale,
            image=rig_image,
            seed=options.seed,
            rigs=rigs,
        )
        found.write()
        keys.write_ssh_files(found)
        for rig in rigs:
            wait_ready(found, rig)
        inventory.write_inventory(found, _gpu_burn_commit(pod, rigs[0]))
    return found


def down(directory: Path) -> list[str]:
    """Remove the rigs of a state folder, and the folder; returns the names of the containers that were removed."""
    pod = podman.find()
    directory = directory.absolute()
    removed = _remove(pod, {f"{LABEL}.state": str(directory)})
    state.remove(directory)
    return removed


def down_all() -> list[str]:
    """Remove every simulated rig of this machine with its state folder, those that a crash left behind included."""
    pod = podman.find()
    folders = {
        one["Config"]["Labels"].get(f"{LABEL}.state", "")
        for one in pod.inspect(pod.container_ids({f"{LABEL}.rig": ""}))
    }
    removed = _remove(pod, {f"{LABEL}.rig": ""})
    for folder in filter(None, folders):
        state.remove(Path(folder))
    state.remove(state.default_directory())
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
    deadline = time.monotonic() + timeout_s
    # `degraded` (a unit failed) is ready too: real machines are often so, and what failed is the roles' affair.
    words = "systemctl is-system-running --wait >/dev/null; test -s /run/rigsim/state"
    last = ""
    while time.monotonic() < deadline:
        done = subprocess.run(
            ["ssh", "-F", str(found.ssh_config), "-o", "ConnectTimeout=5", "-o", "BatchMode=yes", rig.name, words],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode == 0:
            return
        last = done.stderr.strip()
        time.sleep(_POLL_S)
    raise RigctlError(
        f"simulated rig {rig.name} did not become ready within {timeout_s:.0f} s: {last}",
        f"see what it does: podman logs {rig.container}; podman exec -it {rig.container} journalctl -b",
    )


def _check(options: UpOptions) -> None:
    worlds = sorted(definition()["worlds"])
    classes = inventory.rig_classes()
    if not 1 <= options.count <= MAX_RIGS:
        raise UsageError(f"{options.count} rigs: must be 1 to {MAX_RIGS}", "rigctl sim up -n 2")
    if options.archive not in worlds:
        raise UsageError(f"no package archive of {options.archive}", f"choose one of: {', '.join(worlds)}")
    if options.rig_class not in classes:
        raise UsageError(f"no rig class {options.rig_class}", f"choose one of: {', '.join(classes)}")
    if not 1 <= options.time_scale <= MAX_TIME_SCALE:
        raise UsageError(f"time scale {options.time_scale:g}: must be 1 to {MAX_TIME_SCALE}", "safety tests run at 1")


def _start(pod: Podman, options: UpOptions, directory: Path, rig_image: str, number: int) -> SimulatedRig:
    name = f"rig{number}"
    container = f"rigsim-{state.key(directory)}-{name}"
    host_key = keys.key_pair(directory / "rigs" / name / "ssh_host_ed25519_key")
    login = keys.key_pair(directory / "id_ed25519")
    wheelhouse = image.cache_dir() / "wheelhouse"
    wheelhouse.mkdir(exist_ok=True)
    own = [
        f"--hostname={name}",
        f"--label={LABEL}.state={directory}",
        f"--label={LABEL}.rig={name}",
        "--publish=127.0.0.1::22",
        f"--cpuset-cpus={_cpu(number)}",
        f"--volume={wheelhouse}:{inventory.WHEELHOUSE}:ro",
    ]
    pod.create_rig(container, rig_image, image.INIT, own)
    pod.unpack(container, _seed(options, name, host_key, login.public))
    pod.call("start", container)
    ports = pod.inspect([container])[0]["NetworkSettings"]["Ports"]
    return SimulatedRig(
        name=name, container=container, port=int(ports["22/tcp"][0]["HostPort"]), host_key=host_key.public
    )


def _cpu(number: int) -> int:
    """Return the core of one rig: one each, round robin, so that a burning rig does not slow another's training."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[(number - 1) % len(cores)]


def _seed(options: UpOptions, name: str, host_key: keys.KeyPair, login: str) -> bytes:
    """Return what makes a rig itself, as a tar archive for its root."""
    template = identity.load_template(options.rig_class)
    own = identity.make_identity(template, name, options.seed)
    machine_id = hashlib.sha256(f"{options.directory.absolute()} {name} {options.seed}".encode()).hexdigest()[:32]
    files = {
        "etc/machine-id": (0o444, machine_id + "\n"),
        "etc/apt/sources.list": (0o644, sources_list(options.archive)),
        "etc/ssh/ssh_host_ed25519_key": (0o600, host_key.private.decode()),
        "etc/ssh/ssh_host_ed25519_key.pub": (0o644, host_key.public + "\n"),
        "home/ops/.ssh/authorized_keys": (0o644, login + "\n"),
        "var/lib/rigsim/identity.json": (0o644, json.dumps(own, indent=1)),
        "var/lib/rigsim/tuning.json": (0o644, json.dumps({"time_scale": options.time_scale, "seed": options.seed})),
        "var/lib/rigsim/faults.json": (0o644, json.dumps({"faults": []})),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, (mode, text) in files.items():
            entry = tarfile.TarInfo(path)
            entry.mode, entry.size = mode, len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def sources_list(archive: str) -> str:
    """Return a rig's apt sources: a folder inside the rig that looks like Ubuntu's archive in some year."""
    suites = ("jammy", "jammy-updates", "jammy-security")
    return "".join(
        f"deb [trusted=yes] file:///srv/rigsim/ubuntu/{archive} {suite} main restricted universe\n" for suite in suites
    )


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
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another rigctl changes the rigs of {directory} at this moment", "wait for it, or use another --state"
            ) from None
        yield
