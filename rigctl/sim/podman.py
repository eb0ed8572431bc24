"""A small, typed edge around the `podman` command: every container and image call of simulated rigs goes through it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rigctl.errors import RigctlError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LABEL = "rigctl.sim"
"""Every container and image of ours carries a label of this name; labels of details begin with it."""

RUNTIMES = ("runc", "crun", "")
"""OCI runtimes to try, in this order; the empty name is podman's own choice.

runc comes first: on a hybrid cgroup layout crun starts one container and refuses the next, since which controllers lie
in version 2 changes as other containers come and go, so that a trial says nothing.
"""

LIMITS = ("--ulimit=nofile=1024:4096", "--ulimit=nproc=4096:4096")
"""Hard limits cannot be raised inside many containers and sandboxes, and podman asks for more than it may have."""

_RIG_ARGUMENTS = ("--systemd=always", "--cap-add=ALL", *LIMITS)
"""What lets systemd run as PID 1 of a container."""


class PodmanFailed(RigctlError):
    """A podman command ended with an error; its last lines are in the message, all of them in `stderr`."""

    def __init__(self, message: str, hint: str, stderr: str = "") -> None:
        super().__init__(message, hint)
        self.stderr = stderr


def find() -> Podman:
    """Find podman on this machine.

    Raises:
        UsageError: podman is not installed, or this user may not run system containers.
    """
    if shutil.which("podman") is None:
        raise UsageError(
            "simulated rigs need podman, and it is not installed",
            "install it: apt-get install podman runc mmdebstrap (or: make setup)",
        )
    if os.geteuid() != 0:
        raise UsageError(
            "simulated rigs need root: each one is a container that runs systemd and mounts its own /proc and /sys",
            "run the same command with sudo",
        )
    return Podman()


@dataclass
class Podman:
    """The podman command, with the OCI runtime that was found to work."""

    runtime: str | None = None
    """None: not tried yet."""

    def call(self, *arguments: str, stdin: bytes = b"", timeout_s: float = 120) -> str:
        """Run `podman ARGUMENTS` and return its standard output.

        Raises:
            PodmanFailed: it exited with an error or did not end within `timeout_s` seconds.
        """
        command = ["podman", *self._runtime_arguments(), *arguments]
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired as error:
            raise PodmanFailed(
                f"podman {arguments[0]} did not end within {timeout_s:.0f} s",
                "see what podman is doing: podman ps -a",
            ) from error
        if done.returncode != 0:
            stderr = done.stderr.decode(errors="replace").strip()
            last = stderr.splitlines()[-5:]
            raise PodmanFailed(
                f"podman {arguments[0]} failed (exit {done.returncode}): {' / '.join(last)}",
                f"run it by hand to see more: {' '.join(command)[:300]}",
                stderr,
            )
        return done.stdout.decode(errors="replace")

    def choose_runtime(self, image: str) -> None:
        """Try the OCI runtimes with a real container of `image` and keep the first that starts one as rigs are started.

        Raises:
            UsageError: none does.
        """
        if self.runtime is not None:
            return
        refusals = []
        for name in RUNTIMES:
            if name and shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
                continue
            trial = Podman(name)
            try:
                trial.call("run", "--rm", "--network=none", *_RIG_ARGUMENTS, image, "/bin/true")
            except PodmanFailed as error:
                refusals.append(f"{name or 'default'}: {error.message}")
                continue
            self.runtime = name
            return
        raise UsageError(
            f"podman cannot start a container here ({'; '.join(refusals)})",
            "install another OCI runtime (apt-get install runc crun), or use a machine that allows containers",
        )

    def image_exists(self, image: str) -> bool:
        """Whether `image` is in the local store."""
        return self._succeeds("image", "exists", image)

    def container_ids(self, labels: Mapping[str, str]) -> list[str]:
        """Return the ids of all containers, running or not, that carry all `labels`; an empty value stands for any."""
        filters = [f"--filter=label={key}" + (f"={value}" if value else "") for key, value in labels.items()]
        return self.call("ps", "--all", "--no-trunc", "--format={{.ID}}", *filters).split()

    def inspect(self, containers: Sequence[str]) -> list[dict[str, Any]]:
        """Return podman's description of each of `containers`; none asked, none returned."""
        if not containers:
            return []
        found: list[dict[str, Any]] = json.loads(self.call("container", "inspect", *containers))
        return found

    def remove(self, containers: Sequence[str]) -> None:
        """Remove `containers` with their processes and volumes at once; ones that are gone already are no error."""
        if containers:
            self.call("rm", "--force", "--time=0", "--volumes", "--ignore", *containers)

    def create_rig(self, name: str, image: str, command: str, options: Sequence[str]) -> None:
        """Create a container that boots `command` as its PID 1 and comes back by itself after a reboot."""
        self.call(
            "create",
            f"--name={name}",
            "--restart=always",
            *_RIG_ARGUMENTS,
            *options,
            image,
            command,
        )

    def run_once(self, arguments: Sequence[str], timeout_s: float = 120) -> str:
        """Run a throwaway container without a network (`arguments`: options, image, command); return its output."""
        return self.call("run", "--rm", "--network=none", *LIMITS, *arguments, timeout_s=timeout_s)

    def unpack(self, container: str, tar: bytes) -> None:
        """Unpack a tar archive into the root of `container`, running or not."""
        self.call("cp", "-", f"{container}:/", stdin=tar)

    def execute(self, container: str, *command: str, stdin: bytes = b"", timeout_s: float = 120) -> str:
        """Run `command` as root inside a running `container` and return its standard output."""
        return self.call("exec", "--interactive", container, *command, stdin=stdin, timeout_s=timeout_s)

    def _succeeds(self, *arguments: str) -> bool:
        command = ["podman", *arguments]
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0

    def _runtime_arguments(self) -> list[str]:
        return [f"--runtime={self.runtime}"] if self.runtime else []
