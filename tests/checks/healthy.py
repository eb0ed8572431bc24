"""The readings of a healthy rig: two RTX 3090 Ti with NVLink, as this class of rig shows itself.

Tests take these and break one thing; figures are ours, in the ranges that the spec's sources state.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from rigctl.model.baseline import Baseline
from rigctl.model.reading import (
    CommandReply,
    DiskFacts,
    DriverFacts,
    Facts,
    FilesystemFacts,
    GpuFacts,
    GpuSample,
    KernelMessage,
    LinkFacts,
    MemoryModuleFacts,
    ModuleFacts,
    NetworkFacts,
    PairFacts,
    PlaceFacts,
    ProbeFacts,
    Readings,
    RigEvent,
    Sample,
    TimeSyncFacts,
    ToolFacts,
)
from rigctl.model.spec import (
    AcrossSpec,
    ComputeSpec,
    HostMemorySpec,
    LimitsSpec,
    LinkSpec,
    PartsSpec,
    ProfileSpec,
    RigSpec,
    SoftwareSpec,
    TrainingSpec,
    WallMeterSpec,
)
from rigctl.model.switched import Stage, step_load_stages, wake_stages

from . import healthy_compute as computed

UUIDS = ("GPU-11111111-0000-4000-8000-00000000a91f", "GPU-22222222-0000-4000-8000-00000000b02e")
BUS = ("00000000:01:00.0", "00000000:02:00.0")
SLOT1, SLOT2 = "slot1 (…a91f)", "slot2 (…b02e)"
BOOT = "0c8a2a43-0000-4000-8000-000000000001"
T0 = 1_790_000_000.0
MODEL = "NVIDIA GeForce RTX 3090 Ti"
NO_ECC = {"ecc": "Not Supported", "remapped_rows": "Not Supported"}
"""What the driver says of such a card's memory."""

PROFILE = ProfileSpec(
    idle_seconds=2,
    cpu_burn_seconds=6,
    gpu_burn_seconds=30,
    all_burn_seconds=15,
    train=True,
    workloads=("disk", "host_memory", "p2p", "compute", "gpu_memory", "train_all", "train_across", "dcgm"),
    sample_hz=2,
    wakes=2,
    wake_rest_seconds=2,
    wake_load_seconds=1,
    step_load_seconds=12,
)
STEPS = {
    "idle": (0, 2),
    "cpu_burn": (2, 8),
    "gpu_burn": (8, 40),
    "all_burn": (40, 57),
    "train": (57, 67),
    "idle_to_load": (67, 74),
    "step_load": (74, 94),
}
"""Each step's beginning and end, seconds after the plan's start; burns end a second or two before their step."""
BUSY = {"gpu_burn": (9.5, 38.5), "all_burn": (41.5, 55.5), "train": (58, 66)}
"""When the cards work."""
SWITCHED = ((69, 70), (72, 73), (74.5, 79.5), (84.5, 87), (89.5, 90.5), (91.5, 92))
"""When they work in the steps that switch them, as far as telemetry at 2 Hz shows it."""
END = 95.0

TOPO = (
    "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
    "GPU0\t X \tNV4\t0-23\t\tN/A\n"
    "GPU1\tNV4\t X \t0-23\t\tN/A\n"
    "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
)
NVLINK = "".join(
    f"GPU {i}: {MODEL} (UUID: {uuid})\n" + "".join(f"\t Link {link}: 14.062 GB/s\n" for link in range(4))
    for i, uuid in enumerate(UUIDS)
)
PACKAGES = "libnvidia-compute-515\t515.105.01-0ubuntu0.22.04.1\tinstalled\n"


def spec(**changes: Any) -> RigSpec:
    """The class's spec; `limits`, `parts`, … take dictionaries of changes."""
    parts = PartsSpec(
        gpu_count=2,
        gpu_model=MODEL,
        min_gpu_memory_mib=24564,
        links=(LinkSpec(slots=(1, 2), kind="nvlink", links=4),),
        min_nvlink_gb_per_s=14.0,
        pcie_gen_under_load=4,
        pcie_width_under_load=8,
        gpu_numa_nodes=(0, 0),
        min_disk_gb=2000,
    )
    limits = LimitsSpec(
        max_settled_gpu_temp_c=65,
        max_gpu_temp_spread_c=5,
        max_gpu_c_per_w=0.12,
        max_rest_temp_c=35,
        max_fan_pct=60,
        guard_max_gpu_temp_c=85,
        max_cpu_temp_c=90,
        min_power_share_of_limit=0.90,
        max_idle_power_w=40,
        max_wall_residual_share=0.30,
        min_burn_gflops=25_000,
        max_probe_seconds=10,
        min_p2p_one_way_gb_per_s=50,
        min_p2p_both_ways_gb_per_s=94,
        max_burn_gflops_drift=0.03,
        min_disk_read_mb_per_s=1000,
        min_disk_write_mb_per_s=500,
        min_network_mbit_per_s=1000,
        wall_power_all_burn_w=1240,
    )
    software = SoftwareSpec(
        driver_branch="515",
        cuda_version="11.7",
        torch_version="auto",
        torch_build="auto",
        power_limit_w=480,
        gpu_burn_dir="/opt/gpuburn",
        torch_venv="/opt/rigctl/torch",
    )
    training = TrainingSpec(
        device="cuda",
        model="gpt2_medium",
        seq_len=1024,
        micro_batch=2,
        grad_accum=4,
        dtype="bf16",
        warmup_steps=10,
        measured_steps=20,
        min_tokens_per_s=6702,
        provisional=True,
        **computed.TRAINING,
    )
    groups: dict[str, Any] = {"parts": parts, "limits": limits, "software": software}
    for name, model in groups.items():
        groups[name] = model.model_copy(update=changes.pop(name, {}))
    whole: dict[str, Any] = {
        "rig_class": "dual_3090ti",
        "wall_meter": WallMeterSpec(form="tasmota", url="http://192.0.2.7/cm?cmnd=Status%208"),
        "training": training,
        "compute": ComputeSpec(**computed.COMPUTE),
        "allow_step_load": True,
        "sources": {"limits.max_settled_gpu_temp_c": "58 and 55 °C were seen"},
        "host_memory": HostMemorySpec(),
        "across": AcrossSpec(rigs=("rig1", "rig2"), rank=0, address="192.0.2.1", port=29_400),
        "origin": "group_vars/class_dual_3090ti/spec.yml",
        **groups,
        **changes,
    }
    return RigSpec(**whole)


def gpu(i: int, **changes: Any) -> GpuFacts:
    """Facts of card `i`."""
    links = tuple(
        LinkFacts(link=link, active=True, remote_pci_bus_id=BUS[1 - i], speed_gb_per_s=14.0625) for link in range(4)
    )
    known: dict[str, Any] = {
        "index": i,
        "slot": i + 1,
        "uuid": UUIDS[i],
        "pci_bus_id": BUS[i],
        "name": MODEL,
        "vbios": "94.02.A0.00.5C",
        "memory_mib": 24564,
        "compute_capability": "8.6",
        "power_limit_w": 480.0,
        "power_default_w": 450.0,
        "power_min_w": 100.0,
        "power_max_w": 480.0,
        "slowdown_temp_c": 94.0,
        "links": links,
        "missing": dict(NO_ECC),
    }
    return GpuFacts(**known | changes)


def place(i: int, **changes: Any) -> PlaceFacts:
    """Where card `i` hangs: below a root port of its own, on a board with one NUMA node."""
    known: dict[str, Any] = {
        "uuid": UUIDS[i],
        "pci_address": BUS[i][4:],
        "listed": True,
        "root_port": f"0000:00:0{i + 1}.1",
        "root_path": f"\\_SB_.PCI0.GPP{i}",
        "below": "00.0",
        "label": f"PCIEX16_{i + 1}",
        "bar1_mib": 32768,
        "above_4g": True,
        "aspm": "off",
        "iommu": "off",
        "acs_redirect": False,
    }
    return PlaceFacts(**known | changes)


def smart_log(**changes: Any) -> str:
    """What `nvme smart-log -o json` says of a disk two years old; its temperature is in kelvin."""
    known = {
        "critical_warning": 0,
        "temperature": 311,
        "avail_spare": 100,
        "spare_thresh": 10,
        "percent_used": 3,
        "data_units_read": 28_167_888,
        "data_units_written": 19_397_424,
        "power_on_hours": 2011,
        "unsafe_shutdowns": 7,
        "media_errors": 0,
        "num_err_log_entries": 12,
    }
    return json.dumps(known | changes)


def nvme(**changes: Any) -> DiskFacts:
    """The rig's disk."""
    known: dict[str, Any] = {
        "name": "nvme0n1",
        "model": "Example NVMe 2TB",
        "serial": "S1",
        "size_gb": 2000.4,
        "state": "live",
        "smart_log": smart_log(),
    }
    return DiskFacts(**known | changes)


def network_card(**changes: Any) -> NetworkFacts:
    """The card over which the rig is reached: gigabit at both ends."""
    known: dict[str, Any] = {
        "name": "eno1",
        "address": "02:00:00:00:00:01",
        "driver": "igc",
        "link": True,
        "speed_mbit_per_s": 1000,
        "duplex": "full",
        "supported_mbit_per_s": 2500,
        "partner_mbit_per_s": 1000,
        "carries_default_route": True,
    }
    return NetworkFacts(**known | changes)


def fio(write_mb_per_s: float = 1850.0, read_mb_per_s: float = 3180.0, *, error: int = 0, **changes: Any) -> str:
    """What the step `disk` writes."""
    size, nothing = 4 * 1024**3, {"total_ios": 0, "bw_bytes": 0, "iops": 0.0, "runtime": 0}

    def done(rate: float) -> dict[str, Any]:
        runtime = round(size / rate / 1000)
        return {"total_ios": 4096, "bw_bytes": round(rate * 1e6), "iops": rate / 1.048576, "runtime": runtime}

    jobs = [
        {"jobname": "write", "error": error, "read": nothing, "write": done(write_mb_per_s)},
        {"jobname": "read", "error": 0, "read": done(read_mb_per_s), "write": nothing},
    ]
    report = json.dumps({"fio version": "fio-3.28", "jobs": jobs})
    return json.dumps(
        {"directory": "/var/tmp", "bytes": size, "free_bytes": 812_400_000_000, "report": report} | changes
    )


def cpu_mhz(step: str, seq: int) -> float:
    """The clock of the processor's cores: they doze at rest."""
    return (4190.0 if step in ("cpu_burn", "all_burn") else 2200.0) + seq % 5


def facts(**changes: Any) -> Facts:
    """Facts of the rig."""
    build = {"commit": "3ead140434da9473582b68452f7115967a7a0581", "compute_capabilities": "['8.6']"}
    known: dict[str, Any] = {
        "boot_id": BOOT,
        "hostname": "rig1",
        "product_name": "Example Board",
        "bios_version": "4.20",
        "board_name": "Example X670",
        "board_serial": "B0042",
        "kernel": "5.15.0-101-generic",
        "cpu_model": "Example CPU 12-Core",
        "cpu_threads": 24,
        "memory_mib": 64_200,
        "memory_modules": tuple(
            MemoryModuleFacts(place=f"DIMM_{one}", size_mib=32_768, rated_mt_per_s=3600, set_mt_per_s=3600)
            for one in ("A2", "B2")
        ),
        "modules": (ModuleFacts(name="nvidia", taint="POE", version="515.105.01"),),
        "time_sync": TimeSyncFacts(service=True, synchronised=True),
        "disks": (nvme(),),
        "network": (network_card(),),
        "filesystems": (FilesystemFacts(place="/", size_gb=1967.5, free_gb=812.4, free_inode_share=0.97),),
        "cpu_nominal_mhz": 3700.0,
        "driver": DriverFacts(loaded="515.105.01", library="515.105.01", cuda_driver="11.7"),
        "gpus": (gpu(0), gpu(1)),
        "pairs": (PairFacts(slots=(1, 2), read="OK", write="OK"),),
        "places": tuple(place(i) for i in range(2)),
        "numa_nodes": (0,),
        "probes": (ProbeFacts(name="NVML", seconds=0.41, limit_s=40, exit_status=0),),
        "tools": ToolFacts(
            gpu_burn="/opt/gpuburn/gpu_burn",
            gpu_burn_build=build,
            stress_ng="/usr/bin/stress-ng",
            torch_python="/opt/rigctl/torch/bin/python",
            torch="2.0.1+cu117",
            nvcc="11.7",
        ),
    }
    return Facts(**known | changes)


def baseline(**changes: Any) -> Baseline:
    """The newest accepted run of the rig; `changes` are its facts'."""
    return Baseline(
        run_id="2026-11-29T2300Z-0001",
        profile="standard",
        ended_at="2026-11-29T23:20:00Z",
        facts=facts(**changes),
        runs=3,
    )


def step_at(t: float) -> str:
    """The step that runs `t` seconds after the plan's start."""
    return next((name for name, (start, end) in STEPS.items() if start <= t < end), "after")


def gpu_sample(i: int, t: float) -> GpuSample:
    """Card `i` at a moment: 58 and 55 °C and a little over 440 W under load, asleep at rest."""
    busy = any(start <= t < end for start, end in (*BUSY.values(), *SWITCHED))
    return GpuSample(
        uuid=UUIDS[i],
        slot=i + 1,
        temp_c=(58.0, 55.0)[i] if busy else 31.0,
        power_w=(444.0, 441.0)[i] if busy else 21.0,
        limit_w=480.0,
        sm_mhz=1875 if busy else 210,
        util_pct=100 if busy else 0,
        fan_pct=0,
        throttle=0x4 if busy else 0x1,
        pcie_gen=4 if busy else 1,
        pcie_width=8,
        links_active=(True,) * 4,
    )


def samples() -> tuple[Sample, ...]:
    """Telemetry at 2 Hz, from the plan's start to a second after its end."""
    taken = []
    for seq in range(int(END * 2)):
        t = seq / 2
        step = step_at(t)
        cards = (gpu_sample(0, t), gpu_sample(1, t))
        busy = cards[0].util_pct == 100
        wall = {"all_burn": 1238.0, "gpu_burn": 1120.0, "train": 1110.0}.get(step, 160.0) if busy else 160.0
        wall += 125.0 if step == "cpu_burn" else 0.0
        taken.append(
            Sample(
                seq=seq,
                t_mono_s=1000 + t,
                t_wall_s=T0 + t,
                boot_id=BOOT,
                step=step,
                gpus=cards,
                cpu_temp_c=78.0 if step in ("cpu_burn", "all_burn") else 45.0,
                cpu_power_w=140.0 if step in ("cpu_burn", "all_burn") else 27.0,
                cpu_util_pct=100.0 if step in ("cpu_burn", "all_burn") else 2.0,
                cpu_mhz=cpu_mhz(step, seq),
                fans_rpm={"d5next Pump speed": 2800 + seq % 7, "nct6798 fan3": 0},
                wall_power_w=wall,
                controller_wall_s=T0 + t + 0.4,
            )
        )
    return tuple(taken)


def events() -> tuple[RigEvent, ...]:
    """What the guard told of the plan."""
    loads = {"cpu_burn": ("cpu",), "gpu_burn": ("gpu",), "all_burn": ("cpu", "gpu"), "train": ("train",)}
    loads |= dict.fromkeys(("idle_to_load", "step_load"), ("script",))
    told: list[tuple[float, str, str | None, dict[str, object]]] = []
    for step, (start, end) in STEPS.items():
        told.append((start, "step_started", step, {"loads": list(loads.get(step, ()))}))
        for number, load in enumerate(loads.get(step, ())):
            pid = 4000 + 10 * int(start) + number
            told.append((start, "load_started", step, {"load": load, "pid": pid, "argv": argv(load, step)}))
            ended: dict[str, object] = {"load": load, "pid": pid, "exit_status": 0, "seconds": end - start - 0.1}
            told.append((end - 0.1, "load_exited", step, ended))
        told.append((end, "step_finished", step, {}))
    told.append((END - 1, "plan_finished", None, {}))
    return tuple(
        RigEvent(seq=seq, t_mono_s=1000 + t, t_wall_s=T0 + t, event=event, step=step, detail=detail)
        for seq, (t, event, step, detail) in enumerate(sorted(told, key=lambda one: one[0]))
    )


def argv(load: str, step: str) -> list[str]:
    """The command line of a load."""
    seconds = {"cpu_burn": "6", "gpu_burn": "30", "all_burn": "15"}.get(step, "")
    commands = {
        "gpu": ["./gpu_burn", "-stts", "1", "-c", "compare.fatbin", seconds],
        "cpu": ["stress-ng", "--cpu", "0", "-t", seconds],
        "train": ["python", "train.py"],
        "script": ["python3", "switched"],
    }
    return commands[load]


def burn_log(rows: list[str] | None = None, verdicts: tuple[str, ...] = ("OK", "OK"), *, seconds: int = 30) -> str:
    """gpu-burn's output; `rows` replaces the progress rows."""
    head = "Using compare file: compare.fatbin\n" + f"Burning for {seconds} seconds.\n"
    head += "".join(f"GPU {i}: {MODEL} (UUID: {uuid})\n" for i, uuid in enumerate(UUIDS[: len(verdicts)]))
    body = rows if rows is not None else [row(percent) for percent in (6.7, 20.0, 40.0, 60.0, 80.0, 93.3, 100.0)]
    text = head + "".join(f"\r{one}" for one in body)
    text += "\n\tSummary at:   Mon Nov 30 23:05:01 UTC 2026\n\nKilling processes with SIGTERM (soft kill)\n"
    text += "".join(f"Freed memory for dev {i}\nUninitted cublas\n" for i in range(len(verdicts)))
    text += f"done\n\nTested {len(verdicts)} GPUs:\n"
    return text + "".join(f"\tGPU {i}: {said}\n" for i, said in enumerate(verdicts))


def row(
    percent: float,
    done: tuple[int, ...] = (400, 390),
    rates: tuple[int, ...] = (26_900, 26_700),
    errors: tuple[str, ...] = ("0 ", "0 "),
) -> str:
    """One progress row of gpu-burn."""
    products = "- ".join(f"{n} ({rate} Gflop/s) " for n, rate in zip(done, rates, strict=True))
    temps = "- ".join("58 C " for _ in done)
    return f"{percent:.1f}%  proc'd: {products}  errors: {'- '.join(errors)}  temps: {temps}"


STRESS_NG = """---
system-info:
      stress-ng-version: 0.13.12
      date-yyyy-mm-dd: 2026:11:30
metrics:
    - stressor: cpu
      bogo-ops: 41210
      bogo-ops-per-second-usr-sys-time: 572.100000
      bogo-ops-per-second-real-time: 6850.220000
      wall-clock-time: {seconds}
      user-time: 71.900000
      system-time: 0.010000

...
"""


def device(address: str = "", **counts: int) -> dict[str, Any]:
    """AER's counters of one device."""
    known = {"RxErr": 0, "BadTLP": 0, "BadDLLP": 0} | {name: n for name, n in counts.items() if name != "DLP"}
    return {
        "address": address,
        "counts": {"correctable": known, "nonfatal": {"DLP": counts.get("DLP", 0)}, "fatal": {"DLP": 0}},
    }


def card_counters(i: int, **changes: Any) -> dict[str, Any]:
    """What card `i` has counted."""
    links = [{"link": link, "replay": 2, "recovery": 0, "crc_flit": 3, "crc_data": 0} for link in range(4)]
    known: dict[str, Any] = {
        "uuid": UUIDS[i],
        "slot": i + 1,
        "links": links,
        "pcie_replays": 4,
        "aer": {"card": device(), "ports": [device(f"0000:00:0{i + 1}.1")]},
        "missing": dict(NO_ECC),
        "faults": [],
    }
    return known | changes


def counters(after: dict[str, Any] | None = None, **changes: Any) -> str:
    """The counters before and after the load; `after` changes card 2, `changes` the line after the load."""
    lines = [
        {
            "when": "before",
            "t_mono_s": 1000.0,
            "seconds": 0.1,
            "error": None,
            "cards": [card_counters(0), card_counters(1)],
        },
        {
            "when": "after",
            "t_mono_s": 1000 + END,
            "seconds": 0.1,
            "error": None,
            "cards": [card_counters(0), card_counters(1, **after or {})],
        }
        | changes,
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def probes(**changes: Any) -> str:
    """How nvidia-smi answered after the load; `changes` are the first question's."""
    first = {"name": "nvidia-smi topo -m", "seconds": 0.6, "limit_s": 20, "exit_status": 0, "stuck": None, "said": ""}
    return json.dumps({"probes": [first | changes, {**first, "name": "nvidia-smi nvlink -s"}]})


def p2p(**changes: Any) -> str:
    """Copies between the two cards, as published measurements of this class show them."""
    pair: dict[str, Any] = {
        "slots": [1, 2],
        "access": True,
        "one_way_gb_per_s": [52.77, 52.89],
        "both_ways_gb_per_s": 101.4,
        "compared_bytes": 13_958_643_712,
        "wrong_bytes": 0,
    }
    return json.dumps({"torch": "2.0.1+cu117", "bytes": 268_435_456, "pairs": [pair | changes]})


def switched(stages: tuple[Stage, ...], **changes: Any) -> str:
    """What a switched load tells of its stages; `changes` are those of the last stage's second card."""
    told = [
        asdict(stage)
        | {
            "workers": [
                {
                    "what": what,
                    "done": round(180 * stage.on_s * stage.times),
                    "late_ms": 1.2,
                    "first_ms": 6.1,
                    "wrong": 0,
                }
                for what in ("slot1", "slot2", "cpu")
            ]
        }
        for stage in stages
    ]
    told[-1]["workers"][1] |= changes
    return json.dumps({"stages": told})


def host_memory(**changes: Any) -> str:
    """What the step `host_memory` writes."""
    report = STRESS_NG.format(seconds="300.120000").replace("stressor: cpu", "stressor: vm")
    known = {"bytes": 51 * 1024**3, "workers": 24, "seconds": 300.0, "exit_status": 0, "report": report, "said": []}
    return json.dumps(known | changes)


CLOCK = {"before_s": T0 + END + 3.0, "rig_s": T0 + END + 3.41, "after_s": T0 + END + 3.42}
"""The controller's clock before and after the run's last answer, and the rig's own in it."""


def logs() -> dict[str, str]:
    """Raw outputs."""
    trained = {
        "device": "cuda",
        "device_name": MODEL,
        "model": "gpt2_medium",
        "tokens_per_s": 7790.4,
        "loss_first": 10.9,
        "loss_last": 9.7,
    }
    return {
        "gpu_burn.log": burn_log(),
        "all_burn.log": burn_log(seconds=15),
        "cpu_burn.yaml": STRESS_NG.format(seconds="6.010000"),
        "all_burn_cpu.yaml": STRESS_NG.format(seconds="15.010000"),
        "train.json": json.dumps(trained),
        "counters.jsonl": counters(),
        "probes.json": probes(),
        "clock.json": json.dumps(CLOCK),
        "host_memory.json": host_memory(),
        "p2p.json": p2p(),
        "step_load.json": switched(step_load_stages(PROFILE)),
        "step_load.log": "".join(f"{one.name}: {one.times} x\n[]\n" for one in step_load_stages(PROFILE)),
        "idle_to_load.json": switched(wake_stages(PROFILE)),
        "disk.json": fio(),
        **computed.LOGS,
        "restored.json": '{"restored": ["slot1: power limit 480 W (was 290 W)"], "failed": []}',
    }


def readings(**changes: Any) -> Readings:
    """Everything measured of a healthy rig."""
    known: dict[str, Any] = {
        "rig": "rig1",
        "facts": facts(),
        "samples": samples(),
        "events": events(),
        "logs": logs(),
        "kernel": (KernelMessage(t_wall_s=T0 + 3, message="usb 1-2: new device"),),
        "kernel_read": True,
        "boot_id_after": BOOT,
    }
    return Readings(**known | changes)


def with_gpu_samples(change: Any, steps: tuple[str, ...] = ("gpu_burn", "all_burn")) -> tuple[Sample, ...]:
    """The healthy samples with `change(card, sample) → updates` made to each card's sample in `steps`."""
    return tuple(
        sample.model_copy(
            update={"gpus": tuple(one.model_copy(update=change(one, sample) or {}) for one in sample.gpus)}
        )
        if sample.step in steps
        else sample
        for sample in samples()
    )


def with_samples(steps: tuple[str, ...], **changes: Any) -> tuple[Sample, ...]:
    """The healthy samples with `changes` made to every sample of `steps`."""
    return tuple(s.model_copy(update=changes) if s.step in steps else s for s in samples())


def with_logs(**changes: str) -> dict[str, str]:
    """The healthy logs with some replaced; names with `__` for the dot."""
    return logs() | {name.replace("__", "."): text for name, text in changes.items()}


def without_logs(*names: str) -> dict[str, str]:
    """The healthy logs without some."""
    return {name: text for name, text in logs().items() if name not in names}


def reply(stdout: str = "", *, exit_status: int = 0, stderr: str = "", command: str = "x") -> CommandReply:
    """What a rig answered."""
    return CommandReply(command=command, exit_status=exit_status, stdout=stdout, stderr=stderr)


def guard_stop(step: str, at: float, **detail: object) -> tuple[RigEvent, ...]:
    """The healthy events up to `at`, then a stop by the guard and the plan's end."""
    kept = [e for e in events() if e.t_wall_s <= T0 + at and e.event != "plan_finished"]
    wrote = [("guard_stopped", step, dict(detail)), ("plan_finished", None, {})]
    last = [
        RigEvent(seq=len(kept) + i, t_mono_s=1000 + at, t_wall_s=T0 + at, event=event, step=where, detail=what)
        for i, (event, where, what) in enumerate(wrote)
    ]
    return (*kept, *last)
