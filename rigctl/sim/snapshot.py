"""Keep a rig as an image, so that tests start from provisioned rigs: provision once, then `UpOptions(image=…)`."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from rigctl.sim import podman
from rigctl.sim.image import REPOSITORY
from rigctl.sim.podman import LABEL

if TYPE_CHECKING:
    from rigctl.sim.state import State

_COMMIT_TIMEOUT_S = 600


def find(key: str) -> str | None:
    """Return the name of the image kept under `key`; None when there is none."""
    name = _name(key)
    return name if podman.find().image_exists(name) else None


def take(state: State, rig: str, key: str) -> str:
    """Keep a rig as it is on disk under `key` and return the image's name.

    What lives in memory stays behind: a rig that starts from the image boots anew, with a name, keys, serial numbers
    and package sources of its own. Removed with the cached images, or when the rigs' own image is built anew.

    Args:
        state: The fleet that the rig belongs to.
        rig: Its name.
        key: What the rig's contents depend on, such as a hash of the roles that provisioned it.

    Raises:
        UsageError: no such rig.
        PodmanFailed: it could not be kept.
    """
    pod = podman.find()
    name = _name(key)
    # Stopping the rig for the moment of the copy keeps files of one transaction together.
    change = f"--change=LABEL {LABEL}.snapshot=1"
    pod.call("commit", "--quiet", "--pause=true", change, state.rig(rig).container, name, timeout_s=_COMMIT_TIMEOUT_S)
    return name


def _name(key: str) -> str:
    return f"{REPOSITORY}-snapshot:{hashlib.sha256(key.encode()).hexdigest()[:16]}"
