"""A simulated rig that is upgraded through the command line as an operator does."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rigctl.model.upgrade import Capture
from rigctl.sim import faults
from rigctl.store import RunDir, list_runs
from rigctl.upgrade.compare import all_differences
from rigctl.upgrade.journal import STARTED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rigctl import sim

RIGCTL = Path(sys.executable).parent / "rigctl"
UPGRADE_S = 1500
SETTINGS: dict[str, Any] = {
    "nvidia_driver_source": "auto",
    "nvidia_driver_reboot_timeout_s": 60,
    "rig_profiles": {
        "smoke": {
            "idle_seconds": 1,
            "cpu_burn_seconds": 0,
            "gpu_burn_seconds": 15,
            "all_burn_seconds": 0,
            "train": False,
            "sample_hz": 4,
        }
    },
}
"""535 is in the CUDA repository only; a restart here takes seconds; and a burn is short."""

TIME_SCALE = 8.0
"""Slower than usual: after a restart the cards are cold, and the guard stops what would be hot within seconds."""


def command(fleet: sim.State, *words: str) -> list[str]:
    """`rigctl upgrade` as a person gives it, with its answer as data."""
    where = ["-i", str(fleet.inventory), "--runs", str(fleet.directory / "runs"), "--json"]
    return [str(RIGCTL), "upgrade", *words, *where]


def upgrade(fleet: sim.State, *words: str) -> tuple[int, dict[str, Any]]:
    """Its exit code, and what it says of the rigs."""
    done = subprocess.run(
        command(fleet, *words),
        capture_output=True,
        text=True,
        check=False,
        timeout=UPGRADE_S,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@dataclass(frozen=True)
class Upgraded:
    """What one upgrade said of the rig."""

    code: int
    rig: dict[str, Any]
    run: Path

    @property
    def end(self) -> dict[str, Any]:
        found: dict[str, Any] = self.rig["end"]
        return found

    @property
    def said(self) -> str:
        return f"{self.end['reason']} {self.end['hint']}"

    @property
    def entries(self) -> list[dict[str, Any]]:
        rows = (self.run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
        return [row for line in rows if "step" in (row := json.loads(line))["detail"]]

    def found(self, step: str) -> dict[str, Any]:
        """What the last end of a step found."""
        return next(one["detail"]["found"] for one in reversed(self.entries) if one["detail"].get("step") == step
                    and "found" in one["detail"])  # fmt: skip

    def seen(self, name: str) -> Capture:
        return Capture.model_validate_json((self.run / "rig1" / f"{name}.json").read_bytes())


@dataclass
class RigInUse:
    """One rig of a fleet."""

    fleet: sim.State
    name: str = "rig1"
    first: list[str] = field(default_factory=list)
    """What it had when the tests began: packages with versions and marks."""

    @property
    def runs(self) -> Path:
        return self.fleet.directory / "runs"

    @property
    def own_file(self) -> Path:
        return self.fleet.inventory / "host_vars" / self.name / "zz_rigctl_upgrade.yml"

    def set(self, **more: object) -> None:
        """Have the inventory say this for all rigs, beside what makes these tests quick."""
        own = self.fleet.inventory / "group_vars" / "all" / "upgrades.yml"
        own.write_text(yaml.safe_dump({**SETTINGS, **more}), encoding="utf-8")

    def upgrade(self, *words: str) -> Upgraded:
        return self.upgrade_while("", lambda: None, *words)

    def upgrade_while(self, step: str, happens: Callable[[], object], *words: str) -> Upgraded:
        """Upgrade, and let something happen as soon as the rig has come to a step."""
        known = set(list_runs(self.runs))
        with subprocess.Popen(
            command(self.fleet, *words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        ) as process:
            try:
                if step:
                    self._wait_for(step, known, process)
                    happens()
                out, said = process.communicate(timeout=UPGRADE_S)
            finally:
                process.kill()
        assert out, said
        told = json.loads(out)
        (rig,) = told["rigs"]
        return Upgraded(process.returncode, rig, self.runs / told["run_id"])

    def _wait_for(self, step: str, known: Collection[str], process: subprocess.Popen[str]) -> None:
        while process.poll() is None:
            for run_id in set(list_runs(self.runs)) - set(known):
                entries = RunDir(self.runs / run_id).journal_entries()
                if any(one.event == STARTED and one.detail["step"] == step for one in entries):
                    return
            time.sleep(0.05)
        raise AssertionError(f"it never came to {step}: {process.communicate()}")

    def fault(self, name: str, **parameters: str) -> None:
        faults.apply(self.fleet.directory, self.name, name, parameters)

    def clear(self) -> None:
        faults.clear(self.fleet.directory, self.name)

    def ssh(self, command: str) -> str:
        words = ["ssh", "-F", str(self.fleet.ssh_config), self.name, command]
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout.strip()

    def put(self, text: str, path: str) -> None:
        """Write a file there as root."""
        self.put_bytes(text.encode(), path)

    def put_bytes(self, data: bytes, path: str) -> None:
        """The same for what is no text."""
        self.ssh(f"echo {base64.b64encode(data).decode()} | base64 -d | sudo tee {path} >/dev/null")

    def loaded(self) -> str:
        return self.ssh("cat /sys/module/nvidia/version")

    def packages(self) -> list[str]:
        """Every package with state, version and whether it is held or asked for: not by the product's own words."""
        rows = self.ssh("dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' | grep -v 'rc *$'; "
                        "apt-mark showhold; echo --; apt-mark showmanual")  # fmt: skip
        return rows.splitlines()

    def is_as_first(self) -> bool:
        return (
            self.packages() == self.first
            and self.loaded().startswith("515.")
            and not self.held()
            and self.has_its_limits()
        )

    def has_its_limits(self) -> bool:
        """Whether the cards have what the rig class asks for, not their own 450 W."""
        found = self.ssh("nvidia-smi --query-gpu=power.limit --format=csv,noheader,nounits").split()
        return found == ["480.00", "480.00"]

    def held(self) -> bool:
        """Whether an upgrade holds it, or has left anything behind."""
        left = "ls /var/lib/gpu-rig/upgrade.json /var/lib/gpu-rig/rollback 2>/dev/null || true"
        return self.ssh(f"sudo sh -c '{left}'") not in ("", "/var/lib/gpu-rig/rollback:")


def restored_whole(upgraded: Upgraded) -> tuple[str, ...]:
    """What a rig that was taken back has other than before."""
    return all_differences(upgraded.seen("before"), upgraded.seen("restored"))
