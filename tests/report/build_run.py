"""A run directory as `rigctl accept` leaves it, made up: two rigs, of which one's pump stops in the GPU burn.

`python tests/report/build_run.py DIR [--good] [--unreached] [--hours N]` writes one and prints its path, so that a
report can be looked at without any rig.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rigctl.model.reading import Facts
from rigctl.model.run import RunRig
from rigctl.model.spec import LimitsSpec, LinkSpec, PartsSpec, ProfileSpec, RigSpec, SoftwareSpec, WallMeterSpec
from rigctl.model.verdict import CheckVerdict, Record, RigRecord, Verdict
from rigctl.store import RigOutcome, RunDir

START = datetime(2026, 11, 30, 23, 0, 12, tzinfo=UTC)
BOOT_ID = "5b1f3c52-8d1e-4f6a-9a55-0c7a3f0e77aa"
STEPS = (("idle", 6), ("cpu_burn", 20), ("gpu_burn", 120), ("all_burn", 40), ("train", 24))
UUIDS = {
    "rig1": ("GPU-6f0c1d9e-41c2-7d55-90f3-2b8f0d4b11c0", "GPU-1be07a42-98aa-0c31-b1d4-77c2e15f3e52"),
    "rig2": ("GPU-c3a914f7-2f7e-64f0-8f16-5d2a90b7d7d4", "GPU-84e2b6d0-5a3b-1f98-a3c7-e01b6cf2a91f"),
    "rig3": ("GPU-00000000-0000-0000-0000-000000000001", "GPU-00000000-0000-0000-0000-000000000002"),
}
SPEC_FILE = "group_vars/class_dual_3090ti/spec.yml"


def spec() -> RigSpec:
    limits = LimitsSpec(
        max_settled_gpu_temp_c=65,
        guard_max_gpu_temp_c=88,
        max_cpu_temp_c=90,
        min_power_share_of_limit=0.9,
        min_burn_gflops=25000,
        wall_power_gpu_burn_w=1100,
        wall_power_all_burn_w=1240,
    )
    parts = PartsSpec(
        gpu_count=2,
        gpu_model="NVIDIA GeForce RTX 3090 Ti",
        min_gpu_memory_mib=24000,
        links=(LinkSpec(slots=(1, 2), kind="nvlink", links=4),),
        pcie_gen_under_load=4,
        pcie_width_under_load=8,
    )
    software = SoftwareSpec(
        driver_branch="515",
        cuda_version="11.7",
        torch_version="auto",
        torch_build="auto",
        gpu_burn_dir="/opt/gpu_burn",
        torch_venv="/opt/pytorch",
    )
    meter = WallMeterSpec(form="tasmota", url="http://192.0.2.10/cm?cmnd=Status%208")
    return RigSpec(
        rig_class="dual_3090ti", parts=parts, limits=limits, wall_meter=meter, software=software, origin=SPEC_FILE
    )


def facts(rig: str) -> dict[str, Any]:
    def card(slot: int) -> dict[str, Any]:
        links = [{"link": n, "active": True, "remote_pci_bus_id": f"0000:0{3 - slot}:00.0"} for n in range(4)]
        return {
            "index": slot - 1,
            "slot": slot,
            "uuid": UUIDS[rig][slot - 1],
            "pci_bus_id": f"00000000:0{slot}:00.0",
            "name": "NVIDIA GeForce RTX 3090 Ti",
            "serial": None,
            "vbios": "94.02.A0.00.2D",
            "memory_mib": 24564,
            "compute_capability": "8.6",
            "power_limit_w": 480.0,
            "power_default_w": 450.0,
            "power_min_w": 100.0,
            "power_max_w": 516.0,
            "slowdown_temp_c": 95.0,
            "shutdown_temp_c": 100.0,
            "max_pcie_gen": 4,
            "max_pcie_width": 16,
            "links": [link | {"speed_gb_per_s": 14.062} for link in links],
            "missing": {"serial": "not exposed on GeForce"},
        }

    return {
        "boot_id": BOOT_ID,
        "hostname": rig,
        "product_name": "rigctl simulated rig (dual_3090ti)",
        "bios_version": "F33",
        "board_name": "X570S AORUS MASTER",
        "os": "Ubuntu 22.04.1 LTS",
        "kernel": "5.15.0-56-generic",
        "python": "3.10.6",
        "cpu_model": "AMD Ryzen 9 5900X 12-Core Processor",
        "cpu_threads": 24,
        "memory_mib": 64228,
        "driver": {"loaded": "515.105.01", "library": "515.105.01", "cuda_driver": "11.7"},
        "gpus": [card(1), card(2)],
        "tools": {
            "gpu_burn": "/opt/gpu_burn/gpu_burn",
            "gpu_burn_build": {"commit": "3ead140", "compute_capability": "86"},
            "stress_ng": "0.13.12",
            "torch_python": "/opt/pytorch/bin/python",
            "torch": "1.13.1+cu117",
            "nvcc": "11.7",
        },
        "users_logged_in": 0,
        "compute_processes": [],
        "errors": [],
    }


def _wave(t: float, phase: float) -> float:
    """A little unrest, the same in each run."""
    return math.sin(t * 1.7 + phase) * 0.6 + math.sin(t * 0.31 + phase * 3) * 0.4


@dataclass
class Card:
    """One card's physics: first-order heating towards power × resistance over the coolant."""

    settled_c: float
    phase: float
    pump_stops_at: float | None = None
    temp_c: float = 31.0
    power_w: float = 21.0
    hot: bool = False

    def step(self, t: float, dt: float, load: str, into_burn: float) -> None:
        wanted = {"gpu_burn": 446.0, "all_burn": 442.0, "train": 318.0}.get(load, 21.0)
        resistance = (self.settled_c - 26) / 446.0
        if self.pump_stops_at is not None and into_burn > self.pump_stops_at:
            resistance *= 1 + min(1.05, (into_burn - self.pump_stops_at) / 45)
        self.hot = self.temp_c > 83
        if self.hot:
            wanted = min(wanted, 402 - (self.temp_c - 83) * 30)
        self.power_w += (wanted + 4 * _wave(t, self.phase) - self.power_w) * min(1.0, dt / 0.8)
        self.temp_c += (26 + self.power_w * resistance - self.temp_c) * dt / 11


@dataclass
class Machine:
    """A rig's sensors over time."""

    rig: str
    faulty: bool
    hz: float
    steps: tuple[tuple[str, float], ...]
    cards: list[Card] = field(default_factory=list)
    cpu_c: float = 38.0

    def run(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        warm = 0.0 if self.rig == "rig1" else 1.0
        self.cards = [
            Card(58 + warm, 0.3),
            Card(55 + warm, 1.9, pump_stops_at=18 if self.faulty else None),
        ]
        samples: list[dict[str, Any]] = []
        events: list[dict[str, Any]] = []
        t, burn = 0.0, 0.0
        for name, seconds in self.steps:
            events.append(self.event(len(events), t, "step_started", name))
            end = t + seconds
            while t < end:
                burn += 1 / self.hz if name in ("gpu_burn", "all_burn") else 0
                samples.append(self.sample(len(samples), t, name, burn))
                t += 1 / self.hz
            events.append(self.event(len(events), t, "step_finished", name))
        events.append(self.event(len(events), t, "plan_finished", None))
        return samples, events

    def event(self, seq: int, t: float, event: str, step: str | None) -> dict[str, Any]:
        return {"seq": seq, "t_mono_s": 5000 + t, "t_wall_s": START.timestamp() + t, "event": event, "step": step}

    def sample(self, seq: int, t: float, step: str, into_burn: float) -> dict[str, Any]:
        for card in self.cards:
            card.step(t, 1 / self.hz, step, into_burn)
        cpu_busy = step in ("cpu_burn", "all_burn")
        self.cpu_c += ((74 if cpu_busy else 41) - self.cpu_c) / self.hz / 7
        cpu_w = 138.0 if cpu_busy else 34.0
        wall = (sum(c.power_w for c in self.cards) + cpu_w + 62) / 0.92
        loaded = step in ("gpu_burn", "all_burn", "train")
        gpus = [
            {
                "uuid": UUIDS[self.rig][n],
                "slot": n + 1,
                "temp_c": float(round(card.temp_c)),
                "power_w": round(card.power_w, 2),
                "limit_w": 480.0,
                "sm_mhz": (1530 if card.hot else 1890) if loaded else 210,
                "mem_mhz": 10501 if loaded else 405,
                "util_pct": 100 if loaded else 0,
                "fan_pct": 0,
                "throttle": (0x20 if card.hot else 0x4) if loaded else 0x1,
                "pcie_gen": 4 if loaded else 1,
                "pcie_width": 8,
                "links_active": [True] * 4,
            }
            for n, card in enumerate(self.cards)
        ]
        return {
            "seq": seq,
            "t_mono_s": round(5000 + t, 3),
            "t_wall_s": round(START.timestamp() + t, 3),
            "boot_id": BOOT_ID,
            "step": step,
            "gpus": gpus,
            "cpu_temp_c": round(self.cpu_c, 1),
            "cpu_power_w": cpu_w,
            "cpu_util_pct": 100.0 if cpu_busy else 3.0,
            "wall_power_w": float(round(wall + 5 * _wave(t, 2.2))),
        }


def _settled(samples: list[dict[str, Any]], slot: int, key: str) -> float:
    burn = [s["gpus"][slot - 1][key] for s in samples if s["step"] == "gpu_burn"]
    tail = burn[-len(burn) // 3 :]
    return round(sum(tail) / len(tail), 1)


def _v(check: str, subject: str, verdict: str, reason: str, **more: Any) -> CheckVerdict:
    return CheckVerdict(check=check, subject=subject, verdict=Verdict(verdict), reason=reason, **more)


def _source(key: str) -> str:
    return f"{SPEC_FILE}: limits.{key} (reference rig, ten minutes of gpu-burn)"


def card_verdicts(rig: str, samples: list[dict[str, Any]], slot: int) -> list[CheckVerdict]:
    subject = f"slot{slot} (…{UUIDS[rig][slot - 1][-4:]})"
    temp, watts = _settled(samples, slot, "temp_c"), _settled(samples, slot, "power_w")
    share, hot = watts / 480, temp > 65
    cause = f"thermals.settled_gpu_temp[{subject}]" if hot else None
    gflops = 21840.0 if hot else 27310.0
    return [
        _v("topology.gpu_model", subject, "pass", "NVIDIA GeForce RTX 3090 Ti"),
        _v("topology.gpu_memory", subject, "pass", "24564 MiB", expected=24000, found=24564, unit="MiB"),
        _v("topology.pcie_gen", subject, "pass", "PCIe gen 4 under load", expected=4, found=4),
        _v("topology.pcie_width", subject, "pass", "eight lanes under load", expected=8, found=8),
        _v(
            "thermals.settled_gpu_temp",
            subject,
            "fail" if hot else "pass",
            f"settled at {temp} °C, limit 65 °C",
            expected=65.0,
            found=temp,
            unit="°C",
            source=_source("max_settled_gpu_temp_c"),
            fix="look at this card's pump, then coolant level and air, then the cold plate" if hot else "",
        ),
        _v(
            "thermals.throttle",
            subject,
            "fail" if hot else "pass",
            "thermal slowdown in 61 % of the loaded samples" if hot else "no slowdown under load",
            expected=0.0,
            found=0.61 if hot else 0.0,
            source=_source("max_bad_throttle_share"),
            fix="cool the card; the clocks come back by themselves" if hot else "",
            caused_by=cause,
        ),
        _v("thermals.hotspot_temp", subject, "blind", "the driver does not expose it on GeForce"),
        _v("power.limit", subject, "pass", "limit 480 W", expected=480.0, found=480.0, unit="W"),
        _v(
            "power.share_of_limit",
            subject,
            "fail" if hot else "pass",
            f"{watts} W of 480 W is {share:.2f}, floor 0.90",
            expected=0.9,
            found=round(share, 3),
            source=_source("min_power_share_of_limit"),
            fix="follows from the temperature" if hot else "",
            caused_by=cause,
        ),
        _v(
            "throughput.burn_gflops",
            subject,
            "fail" if hot else "pass",
            f"{gflops:.0f} Gflop/s, floor 25000",
            expected=25000.0,
            found=gflops,
            unit="Gflop/s",
            source=_source("min_burn_gflops"),
            fix="follows from the temperature" if hot else "",
            caused_by=cause,
        ),
    ]


def rig_verdicts(rig: str, samples: list[dict[str, Any]], *, warm: bool) -> list[CheckVerdict]:
    wall = [s["wall_power_w"] for s in samples if s["step"] == "all_burn"]
    mean = round(sum(wall) / len(wall))
    return [
        _v("measure.reached", "rig", "pass", "measured to the end"),
        _v("software.driver_version", "rig", "pass", "515.105.01 loaded, library and asked", expected="515"),
        _v("software.cuda_toolkit", "rig", "pass", "nvcc 11.7", expected="11.7", found="11.7"),
        _v("software.torch", "rig", "pass", "1.13.1+cu117, chosen by the table for 515"),
        _v("topology.gpu_count", "rig", "pass", "2 cards", expected=2, found=2),
        _v("topology.nvlink", "slot1-slot2", "pass", "NV4", expected="NV4", found="NV4"),
        _v("topology.nvlink_speed", "slot1-slot2", "skip", "the spec asks for no speed"),
        *card_verdicts(rig, samples, 1),
        *card_verdicts(rig, samples, 2),
        _v("thermals.cpu_temp", "rig", "pass", "74.0 °C at most", expected=90.0, found=74.0, unit="°C"),
        _v(
            "power.wall",
            "rig",
            "warn" if warm else "pass",
            f"{mean} W with cards and CPU loaded, 1240 W ± 10 % asked",
            expected=1240.0,
            found=float(mean),
            unit="W",
            source=_source("wall_power_all_burn_w"),
            fix="see what the rig's other parts draw" if warm else "",
        ),
        _v("throughput.gpu_burn", "rig", "pass", "2 cards reported, 0 errors, 120 s"),
        _v("throughput.training", "rig", "pass", "13,904 tokens/s", expected=6702.0, found=13904.0, unit="tokens/s"),
        _v(
            "kernel.xid", "rig", "pass", "no Xid but 45 of the burn's own processes after its end" if warm else "no Xid"
        ),
        _v("kernel.same_boot", "rig", "pass", "same boot id before and after"),
    ]


def unreached_rig() -> RigRecord:
    lost = _v(
        "measure.reached",
        "rig",
        "error",
        "no SSH: connection to 192.0.2.23 port 22 timed out after 10 s",
        fix="see whether the rig is powered and on the network: ssh rig3",
    )
    follows = [
        _v(check, "rig", "error", "nothing was measured", fix="reach the rig first", caused_by=lost.key)
        for check in ("software.driver_version", "topology.gpu_count", "throughput.gpu_burn")
    ]
    return RigRecord(name="rig3", rig_class="dual_3090ti", simulated=None, verdicts=(lost, *follows), left="unknown")


def _jsonl(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _write_rig(run: RunDir, machine: Machine) -> RigRecord:
    samples, events = machine.run()
    rig = machine.rig
    run.append_raw(rig, "telemetry.jsonl", _jsonl(samples))
    run.append_raw(rig, "events.jsonl", _jsonl(events))
    run.write_json_atomic(f"{rig}/facts.json", Facts.model_validate(facts(rig)))
    if machine.faulty:
        line = {
            "t_wall_s": START.timestamp() + 146.4,
            "message": "NVRM: Xid (PCI:0000:02:00): 45, pid=2211, Ch 00000008",
        }
        run.append_raw(rig, "kernel.jsonl", _jsonl([line]))
    cuts = () if machine.faulty else ("no SSH for 20 s from 23:01:40 UTC, no sample lost",)
    left = "idle, limits as found"
    run.write_rig_outcome(rig, RigOutcome(boot_id_after=BOOT_ID, cuts=cuts, left=left, kernel_read=True))
    return RigRecord(
        name=rig,
        rig_class="dual_3090ti",
        simulated=True,
        verdicts=tuple(rig_verdicts(rig, samples, warm=machine.faulty)),
        notes=cuts,
        left=left,
    )


def build_run(root: Path, *, faulty: bool = True, unreached: bool = False, hours: float | None = None) -> RunDir:
    """Write a judged run under `root`; with `hours` the GPU burn lasts that long, at the same sample rate."""
    steps = tuple((name, hours * 3600 if hours and name == "gpu_burn" else seconds) for name, seconds in STEPS)
    profile = ProfileSpec(
        idle_seconds=6, cpu_burn_seconds=20, gpu_burn_seconds=120, all_burn_seconds=40, train=True, sample_hz=2
    )
    names = ["rig1", "rig2", *(["rig3"] if unreached else [])]
    rigs = [RunRig(name=name, spec=spec(), profile=profile) for name in names]
    run = RunDir.create(root, "accept", rigs=rigs, profile="smoke", asked={"pattern": "all"}, now=START)
    run.journal("run_started")
    records = [_write_rig(run, Machine(name, faulty and name == "rig2", 2.0, steps)) for name in names[:2]]
    if unreached:
        run.write_rig_outcome("rig3", RigOutcome(unreached="no SSH", unreached_fix="ssh rig3", left="unknown"))
        records.append(unreached_rig())
    run.journal("run_finished")
    run.compress()
    ended = START + timedelta(seconds=sum(seconds for _, seconds in steps))
    record = Record(
        run_id=run.run_id,
        kind="accept",
        profile="smoke",
        started_at=START.isoformat().replace("+00:00", "Z"),
        ended_at=ended.isoformat().replace("+00:00", "Z"),
        rigctl_version="0.1.0",
        rigs=tuple(records),
    )
    run.write_record(record)
    return run


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("folder", type=Path)
    words.add_argument("--good", action="store_true")
    words.add_argument("--unreached", action="store_true")
    words.add_argument("--hours", type=float)
    given = words.parse_args()
    print(build_run(given.folder, faulty=not given.good, unreached=given.unreached, hours=given.hours).path)  # noqa: T201
