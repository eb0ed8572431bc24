"""Where things lie on a simulated rig. Environment variables move them, for tests."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Paths:
    """`run` is gone after a reboot (RIGSIM_RUN), `kept` is not (RIGSIM_KEPT), `machine` is the code (RIGSIM_LIB)."""

    run: Path
    kept: Path
    machine: Path

    @classmethod
    def from_environment(cls) -> Paths:
        """The rig's own places, or those that the environment names."""
        return cls(
            run=Path(os.environ.get("RIGSIM_RUN", "/run/rigsim")),
            kept=Path(os.environ.get("RIGSIM_KEPT", "/var/lib/rigsim")),
            machine=Path(os.environ.get("RIGSIM_LIB", "/usr/local/lib/rigsim")),
        )

    @property
    def state(self) -> Path:
        """The hardware's state as `key value` lines, replaced ten times a second."""
        return self.run / "state"

    @property
    def loads(self) -> Path:
        """One file per process that uses a card."""
        return self.run / "load"

    @property
    def control(self) -> Path:
        """What the driver was told: `slot.N.power_limit_mw`, `slot.N.persistence`."""
        return self.run / "control"

    @property
    def sys(self) -> Path:
        """What is shown under /sys."""
        return self.run / "sys"

    @property
    def module_version(self) -> Path:
        """The version of the loaded driver module; absent when none is loaded."""
        return self.sys / "module" / "nvidia" / "version"

    @property
    def proc_version(self) -> Path:
        """What is shown as /proc/driver/nvidia/version."""
        return self.run / "proc" / "driver" / "nvidia" / "version"

    @property
    def kernel_log(self) -> Path:
        """Our kernel messages of this boot, `microseconds message` a line, for `dmesg`."""
        return self.run / "kernel.log"

    @property
    def faults(self) -> Path:
        """The faults that were applied."""
        return self.kept / "faults.json"

    @property
    def identity(self) -> Path:
        """Who this rig is."""
        return self.kept / "identity.json"

    @property
    def tuning(self) -> Path:
        """`time_scale` and `seed`."""
        return self.kept / "tuning.json"
