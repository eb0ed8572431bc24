"""The state folder of simulated rigs: which rigs there are and how to reach them."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from platformdirs import user_state_path
from pydantic import BaseModel, ConfigDict, ValidationError

from rigctl.errors import UsageError
from rigctl.sim.machine.packages.build import DEFAULT_PLATFORM

USER = "ops"
"""The login on every simulated rig; may use sudo without a password."""

_MARK = "sim.json"


class SimulatedRig(BaseModel):
    """One simulated rig."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    container: str
    port: int
    """The SSH port on 127.0.0.1."""
    host_key: str
    """The public host key, `ssh-ed25519 AAAA…`."""


class Training(BaseModel):
    """What training showed on this machine, and where rigs get PyTorch from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    torch_version: str
    from_distribution: bool = False
    """True: no CPU wheel can be had here, so rigs use the distribution's `python3-torch`."""
    tokens_per_s: float | None = None
    """What a throwaway container measured; None where training was not asked for."""
    floor_tokens_per_s: float | None = None


class State(BaseModel):
    """The fleet of one state folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    directory: Path
    rig_class: str
    platform: str = DEFAULT_PLATFORM
    archive: str
    time_scale: float
    image: str
    seed: int
    rigs: tuple[SimulatedRig, ...]
    training: Training | None = None

    @property
    def inventory(self) -> Path:
        """The inventory folder for rigctl and plain `ansible-playbook`."""
        return self.directory / "inventory"

    @property
    def ssh_config(self) -> Path:
        """For plain `ssh -F`."""
        return self.directory / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        """The host keys of the rigs."""
        return self.directory / "known_hosts"

    @property
    def identity_file(self) -> Path:
        """The private key that logs in to every rig."""
        return self.directory / "id_ed25519"

    def rig(self, name: str) -> SimulatedRig:
        """Return the rig called `name`.

        Raises:
            UsageError: there is none.
        """
        for rig in self.rigs:
            if rig.name == name:
                return rig
        names = ", ".join(rig.name for rig in self.rigs)
        raise UsageError(f"no simulated rig is called {name} (there are: {names})", "see: rigctl sim list")

    def write(self) -> None:
        """Keep the state in its folder, atomically."""
        self.directory.mkdir(parents=True, exist_ok=True)
        fresh = self.directory / f"{_MARK}.new"
        fresh.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
        fresh.replace(self.directory / _MARK)


def default_directory() -> Path:
    """Return the state folder of rigs that were started without `--state`."""
    return user_state_path("rigctl") / "sim"


def load(directory: Path) -> State | None:
    """Read the state of `directory`; None when no rigs were brought up there.

    Raises:
        UsageError: the folder holds a state that cannot be read.
    """
    path = directory.absolute() / _MARK
    try:
        return State.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"{path} cannot be read: {'.'.join(map(str, first['loc']))}: {first['msg']}",
            f"take these rigs down and bring them up again: rigctl sim down --state {directory}",
        ) from error


def require(directory: Path) -> State:
    """Read the state of `directory`.

    Raises:
        UsageError: no rigs were brought up there.
    """
    state = load(directory)
    if state is None:
        raise UsageError(f"no simulated rigs are up in {directory}", "bring some up: rigctl sim up -n 2")
    return state


def prepare(directory: Path) -> None:
    """Make a state folder.

    Raises:
        UsageError: `directory` holds other things; they would be lost when the rigs are taken down.
    """
    if directory.is_dir() and any(directory.iterdir()) and not _is_ours(directory):
        raise UsageError(
            f"{directory} holds files that are not of simulated rigs; the state folder is removed with the rigs",
            "name a folder of its own: rigctl sim up --state DIR",
        )
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    (directory / "lock").touch()


def remove(directory: Path) -> None:
    """Remove a state folder; one that holds no state of ours is left alone."""
    if directory.is_dir() and _is_ours(directory):
        shutil.rmtree(directory)


def key(directory: Path) -> str:
    """Return a short word for a state folder; container names and labels carry it."""
    return hashlib.sha256(str(directory.absolute()).encode()).hexdigest()[:8]


def _is_ours(directory: Path) -> bool:
    return (directory / _MARK).exists() or (directory / "lock").exists()
