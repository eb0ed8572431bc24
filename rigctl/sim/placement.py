"""Where a simulated rig lives on this machine: its core, its package sources, its seed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from typing import TYPE_CHECKING

from rigctl.sim.machine.hardware.rigsim import identity
from rigctl.sim.machine.packages.build import definition, distribution

if TYPE_CHECKING:
    from rigctl.sim.keys import KeyPair
    from rigctl.sim.options import UpOptions


def pin(number: int) -> list[str]:
    """Return podman's option that gives the rig of this number its core.

    One core each, round robin: without it, the burn of one rig cut another's training to a fifth.
    """
    cores = sorted(os.sched_getaffinity(0))
    return [f"--cpuset-cpus={cores[(number - 1) % len(cores)]}"]


def sources_list(options: UpOptions) -> str:
    """Return a rig's apt sources: folders inside the rig that look like its distribution's archive in some year."""
    archive = definition(options.platform)
    root = f"file:///srv/rigsim/{distribution(archive)}/{options.world}"
    components = " ".join(archive["system"]["components"])
    return "".join(f"deb [trusted=yes] {root} {suite} {components}\n" for suite in archive["system"]["suites"])


def seed_tar(options: UpOptions, name: str, host_key: KeyPair, login: str) -> bytes:
    """Return what makes a container the rig `name`, as a tar archive for its root.

    Args:
        options: What `up` was asked for.
        name: The rig's name.
        host_key: Its SSH host key.
        login: The public key that may log in.
    """
    own = identity.make_identity(identity.load_template(options.rig_class), name, options.seed)
    # Two fleets on one machine differ.
    machine_id = hashlib.sha256(f"{options.directory.absolute()} {name} {options.seed}".encode()).hexdigest()[:32]
    tuning = {"time_scale": options.time_scale, "seed": options.seed}
    files = {
        "etc/machine-id": (0o444, machine_id + "\n"),
        "etc/apt/sources.list": (0o644, sources_list(options)),
        "etc/ssh/ssh_host_ed25519_key": (0o600, host_key.private.decode("ascii")),
        "etc/ssh/ssh_host_ed25519_key.pub": (0o644, host_key.public + "\n"),
        "home/ops/.ssh/authorized_keys": (0o644, login + "\n"),
        "var/lib/rigsim/identity.json": (0o644, json.dumps(own, indent=1)),
        "var/lib/rigsim/tuning.json": (0o644, json.dumps(tuning)),
        # A rig that starts from a snapshot starts without the faults of the rig that was kept.
        "var/lib/rigsim/faults.json": (0o644, json.dumps({"faults": []})),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, (mode, text) in files.items():
            entry = tarfile.TarInfo(path)
            entry.mode, entry.size = mode, len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()
