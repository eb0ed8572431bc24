"""The agent on a simulated rig, with a burner that takes no notice of SIGTERM."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from rigctl.fleet.bundle import build_bundle
from rigctl.model.reading import RigEvent, Sample
from rigctl.sim import podman

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl import sim

AGENT = "/var/cache/rigctl/agent.pyz"
BURN_DIR = "/opt/standin"
BURNER = """#!/bin/bash
# Keeps both cards busy (with -i one), has a child of its own, and takes no notice of SIGTERM.
trap '' TERM
only=; [ "$1" = -i ] && only=$2
for card in ${only:-0 1}; do echo "gpu $card burn 1.0 20000"; done >"/run/rigsim/load/$$"
sleep "${!#}" &
wait
"""


SHORT_START = f"""
import json, sys
sys.path.insert(0, {AGENT!r})
sys.argv = [{AGENT!r}]
from rigctl_agent import commands, unit
from rigctl_agent.places import Places
real = unit.start
unit.start = lambda run_id, argv, longest_s, log, afterwards: real(run_id, argv, 8, log, afterwards)
print(json.dumps(commands.start(sys.stdin.buffer.read(), Places())))
"""
"""Starts a run whose unit may live for 8 s only, whatever its plan says."""


class OnRig:
    """One simulated rig, and the agent on it."""

    def __init__(self, state: sim.State) -> None:
        self.pod = podman.find()
        self.state = state
        self.container = state.rigs[0].container
        self.run_number = 0
        self.run_id = ""

    def shell(self, text: str) -> str:
        return self.pod.execute(self.container, "bash", "-c", text)

    def put(self, path: str, data: bytes) -> None:
        self.pod.execute(
            self.container, "bash", "-c", f"mkdir -p $(dirname {path}) && cat >{path} && chmod 755 {path}", stdin=data
        )

    def prepare(self) -> None:
        self.shell("apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y nvidia-driver-515")
        self.shell("systemctl reboot &>/dev/null || true")
        until(self._answers, 60)
        self.put(AGENT, build_bundle().data)
        self.put(f"{BURN_DIR}/gpu_burn", BURNER.encode())
        self.put(f"{BURN_DIR}/compare.fatbin", b"")

    def _answers(self) -> bool:
        try:
            return self.shell("cat /sys/module/nvidia/version").startswith("515.")
        except podman.PodmanFailed:
            return False

    def ask(self, *args: str, stdin: bytes = b"") -> dict[str, Any]:
        # A refusal is exit status 1 with its words on stdout.
        command = " ".join(["python3 -I", AGENT, *args, "|| true"])
        answer: dict[str, Any] = json.loads(self.pod.execute(self.container, "bash", "-c", command, stdin=stdin))
        return answer

    def start(self, seconds: float = 60, *, short: bool = False, **changed: Any) -> dict[str, Any]:
        self.run_number += 1
        self.run_id = f"guard-{self.run_number}"
        plan = {
            "run_id": self.run_id,
            "sample_hz": 10,
            "controller_lost_s": 60,
            "max_gpu_temp_c": 90,
            "stale_sample_s": 5,
            "expected_gpus": [card["uuid"] for card in self.ask("facts")["gpus"]],
            "wall_meter": {"form": "tasmota", "url": "http://127.0.0.1:8089/cm?cmnd=Status%208"},
            "gpu_burn_dir": BURN_DIR,
            "torch_venv": "/nowhere",
            "steps": [
                {"name": "idle", "seconds": 1, "loads": []},
                {"name": "gpu_burn", "seconds": seconds, "loads": ["gpu"]},
            ],
        }
        text = json.dumps(plan | changed).encode()
        if not short:
            return self.ask("start", stdin=text)
        started: dict[str, Any] = json.loads(self.pod.execute(self.container, "python3", "-c", SHORT_START, stdin=text))
        return started

    def burning(self) -> bool:
        return self.shell("pgrep -f '^/bin/bash ./gpu_burn' || true").strip() != ""

    def active(self) -> str:
        return self.shell(f"systemctl show -p ActiveState --value rigctl-{self.run_id}.service").strip()

    def unit_result(self) -> str:
        return self.shell(f"systemctl show -p Result --value rigctl-{self.run_id}.service").strip()

    def guard_pid(self) -> str:
        return self.shell(f"systemctl show -p MainPID --value rigctl-{self.run_id}.service").strip()

    def guard_status(self) -> str:
        return self.shell(f"systemctl show -p StatusText --value rigctl-{self.run_id}.service").strip()

    def spooled(self, name: str) -> list[str]:
        return self.shell(f"cat /var/lib/rigctl/runs/{self.run_id}/{name} 2>/dev/null || true").splitlines()

    def events(self) -> list[RigEvent]:
        return [RigEvent.model_validate_json(line) for line in self.spooled("events.jsonl")]

    def samples(self) -> list[Sample]:
        return [Sample.model_validate_json(line) for line in self.spooled("telemetry.jsonl")]

    def seconds_until_quiet(self, action: str, limit_s: int) -> float:
        """Do something on the rig and measure there how long the burn goes on; this machine may be busy."""
        return (
            float(
                self.shell(
                    f"{action}; began=$(date +%s%N); while pgrep -f '^/bin/bash ./gpu_burn' >/dev/null; do sleep 0.1; "
                    f"[ $(( ($(date +%s%N) - began) / 1000000000 )) -ge {limit_s} ] && break; done; "
                    "echo $(( ($(date +%s%N) - began) / 1000000 ))"
                )
            )
            / 1000
        )

    def heard_s(self) -> float:
        """The controller's last word, on the rig's CLOCK_MONOTONIC."""
        return float(self.shell(f"cat /run/rigctl/{self.run_id}.heartbeat"))

    def event_s(self, name: str) -> float:
        """When the last event of this kind came, on the rig's CLOCK_MONOTONIC."""
        return [event.t_mono_s for event in self.events() if event.event == name][-1]

    def stop_event(self) -> dict[str, Any]:
        (stop,) = [event.detail for event in self.events() if event.event == "guard_stopped"]
        return stop


def until(condition: Callable[[], bool], limit_s: float) -> float:
    """Seconds until the condition held."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < limit_s, f"not within {limit_s} s"
        time.sleep(0.2)
    return time.monotonic() - began
