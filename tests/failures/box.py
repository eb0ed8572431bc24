"""A simulated rig as a fresh box, provisioned through the command line as an operator does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rigctl.sim import faults

if TYPE_CHECKING:
    from rigctl import sim

RIGCTL = Path(sys.executable).parent / "rigctl"


@dataclass(frozen=True)
class Outcome:
    """What one provisioning said of the rig."""

    code: int
    rig: dict[str, Any]
    run: Path

    @property
    def said(self) -> str:
        return self.rig["message"]

    @property
    def hint(self) -> str:
        return self.rig["hint"]

    @property
    def log(self) -> str:
        return (self.run / "ansible.log").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Box:
    """One rig of a fleet of simulated rigs."""

    fleet: sim.State
    name: str = "rig1"

    @property
    def runs(self) -> Path:
        return self.fleet.directory / "runs"

    def words(self, *options: str, tags: str) -> list[str]:
        inventory = str(self.fleet.inventory)
        which = ["--tags", tags] if tags else []
        return [str(RIGCTL), "provision", self.name, "-i", inventory, "--runs", str(self.runs), *which, *options]

    def set(self, **variables: object) -> None:
        """Give the rig these role variables, and no others of its own."""
        own = self.fleet.inventory / "host_vars" / self.name / "software.yml"
        own.write_text(json.dumps(variables), encoding="utf-8")

    def provision(self, *options: str, tags: str = "base,nvidia_driver", timeout_s: float = 900) -> Outcome:
        words = self.words("--json", *options, tags=tags)
        environment = {**os.environ, "ANSIBLE_RETRY_FILES_ENABLED": "0"}
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=timeout_s, env=environment,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.stdout, done.stderr
        found = json.loads(done.stdout)
        return Outcome(done.returncode, found["rigs"][0], Path(found["path"]))

    def ssh(self, command: str, timeout_s: float = 120) -> str:
        words = ["ssh", "-F", str(self.fleet.ssh_config), "-o", "BatchMode=yes", self.name, command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, check=False)
        return (done.stdout + done.stderr).strip()

    def fault(self, name: str, **parameters: str) -> None:
        faults.apply(self.fleet.directory, self.name, name, parameters)

    def clear(self, name: str | None = None) -> None:
        faults.clear(self.fleet.directory, self.name, name)

    def packages(self) -> str:
        """Every package with its version and mark."""
        return self.ssh("dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n'")

    def holds(self) -> str:
        return self.ssh("apt-mark showhold")

    def is_consistent(self) -> bool:
        """Whether dpkg finds nothing half done."""
        return self.ssh("sudo dpkg --audit; sudo apt-get check -qq") == ""

    @property
    def loaded(self) -> str:
        return self.ssh("cat /sys/module/nvidia/version")
