"""What `rigctl sim up` can be asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rigctl.errors import UsageError
from rigctl.sim import inventory, state
from rigctl.sim.image import Wish
from rigctl.sim.machine.packages.build import DEFAULT_PLATFORM, definition, platforms

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_TIME_SCALE = 20.0
MAX_RIGS = 32
MAX_TIME_SCALE = 100
"""Beyond, a tick of the physics is longer than what it models."""


@dataclass(frozen=True)
class UpOptions:
    """What `up` is asked for; the defaults are the command's."""

    count: int = 2
    rig_class: str = "dual_3090ti"
    platform: str = DEFAULT_PLATFORM
    archive: str = ""
    """Empty: the platform's first choice."""
    time_scale: float = DEFAULT_TIME_SCALE
    directory: Path = field(default_factory=state.default_directory)
    image: str | None = None
    """An OCI image to build rigs from, or a ready one (a snapshot); None: the host's own packages."""
    seed: int = 0
    """Serial numbers, UUIDs and sensor noise follow from it."""
    training: bool = True
    """False leaves PyTorch's wheels and the training floor out; the inventory then keeps the class's own workload."""

    @property
    def world(self) -> str:
        """The package archive that the rigs see."""
        return self.archive or str(definition(self.platform)["system"]["default_world"])

    def wish(self, more: tuple[str, ...] = ()) -> Wish:
        """Return which image the rigs start from, with `more` packages to install."""
        real = self.world if "fetched" in definition(self.platform)["worlds"][self.world] else ""
        return Wish(self.platform, real, self.image, more)

    def check(self) -> None:
        """Check every option.

        Raises:
            UsageError: one is out of range or names what does not exist.
        """
        if self.platform not in platforms():
            raise UsageError(f"no simulated platform {self.platform}", f"choose one of: {', '.join(platforms())}")
        worlds = sorted(definition(self.platform)["worlds"])
        classes = inventory.rig_classes()
        if not 1 <= self.count <= MAX_RIGS:
            raise UsageError(f"{self.count} rigs: must be 1 to {MAX_RIGS}", "rigctl sim up -n 2")
        if self.world not in worlds:
            raise UsageError(
                f"no package archive of {self.archive} for {self.platform}", f"choose one of: {', '.join(worlds)}"
            )
        if self.rig_class not in classes:
            raise UsageError(f"no rig class {self.rig_class}", f"choose one of: {', '.join(classes)}")
        if not 1 <= self.time_scale <= MAX_TIME_SCALE:
            raise UsageError(f"time scale {self.time_scale:g}: must be 1 to {MAX_TIME_SCALE}", "safety tests run at 1")
