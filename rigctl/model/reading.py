"""Readings: what the agent and the commands on a rig brought home, typed, with units in the names.

The agent imports nothing of rigctl, so these classes are the reader's side of its JSON; `extra="ignore"` lets a
newer agent say more. A value that a driver does not expose is None, and its name stands in the reading's `missing`
with the reason.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


def no_number(_word: str) -> None:
    """Read `NaN` and `Infinity`, which JSON does not know but Python writes, as what was not measured.

    For `parse_constant` of `json.loads`: such a figure would be within every limit.
    """


class _Reading(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class LinkFacts(_Reading):
    """One NVLink of one card."""

    link: int
    active: bool
    remote_pci_bus_id: str | None = None
    speed_gb_per_s: float | None = None


class EccReading(_Reading):
    """What a card counts of errors in its memory; None where it does not tell, or counts none because that is off."""

    on: bool
    corrected: int | None = None
    """Since the driver was loaded (NVML: volatile); so for `uncorrected`."""
    uncorrected: int | None = None
    lifetime_corrected: int | None = None
    """As the card itself remembers them (NVML: aggregate); so for `lifetime_uncorrected`."""
    lifetime_uncorrected: int | None = None


class RemappedRows(_Reading):
    """Rows of a card's memory that it replaced by spare ones."""

    corrected: int
    """Replaced because errors in them had to be corrected often."""
    uncorrected: int
    """Replaced because of an error that could not be corrected."""
    pending: bool
    """A row waits for the card's reset to be replaced."""
    failed: bool
    """A row could not be replaced."""
    banks: dict[str, int] | None = None
    """How many banks of memory have which share of their spare rows left: max, high, partial, low, none."""


class GpuFacts(_Reading):
    """Identity of one card, from NVML."""

    index: int
    """NVML's index; CUDA and gpu-burn may count differently."""
    slot: int
    """From 1, in PCI bus order."""
    uuid: str
    pci_bus_id: str
    name: str
    serial: str | None = None
    vbios: str | None = None
    memory_mib: int | None = None
    compute_capability: str | None = None
    power_limit_w: float | None = None
    power_default_w: float | None = None
    power_min_w: float | None = None
    power_max_w: float | None = None
    slowdown_temp_c: float | None = None
    shutdown_temp_c: float | None = None
    memory_max_temp_c: float | None = None
    """What the card itself calls the highest temperature of its memory, °C."""
    max_pcie_gen: int | None = None
    max_pcie_width: int | None = None
    links: tuple[LinkFacts, ...] = ()
    ecc: EccReading | None = None
    """None where the card has no error correction; `missing` then has NVML's reason, also for the next."""
    remapped_rows: RemappedRows | None = None
    missing: dict[str, str] = Field(default_factory=dict)

    @property
    def subject(self) -> str:
        """The card's name in verdicts: slot and the end of its UUID."""
        return f"slot{self.slot} (…{self.uuid[-4:]})"


class DriverFacts(_Reading):
    """The driver in its three places."""

    loaded: str | None = None
    """/sys/module/nvidia/version (or /proc/driver/nvidia/version)."""
    library: str | None = None
    """Version of the libnvidia-ml.so.1 on disk."""
    nvml_error: str | None = None
    """The NVML error that kept the cards from being read, such as `Driver/library version mismatch`."""
    cuda_driver: str | None = None


class ToolFacts(_Reading):
    """What a load step needs, and where it is; None = not installed."""

    gpu_burn: str | None = None
    gpu_burn_build: dict[str, str] = Field(default_factory=dict)
    """`build.json` beside the burner, as the role wrote it: commit, compute capability, driver, toolkit."""
    stress_ng: str | None = None
    sensors: str | None = None
    torch_python: str | None = None
    torch: str | None = None
    """Version of torch in that environment, such as `2.13.0+cpu`."""
    nvcc: str | None = None
    """Version of the CUDA toolkit, such as `11.7`."""


class PairFacts(_Reading):
    """How the driver says that two cards can reach each other's memory."""

    slots: tuple[int, int]
    read: str | None = None
    """`OK`, or nvidia-smi's word for why not: `CNS` chipset, `TNS` topology, `DR` switched off, `NS`, `U`."""
    write: str | None = None
    missing: str = ""


class PlaceFacts(_Reading):
    """Where the kernel shows one card."""

    uuid: str
    pci_address: str
    listed: bool
    """Whether the kernel lists the device at all."""
    numa_node: int | None = None
    """None where the firmware does not tell."""
    root_port: str | None = None
    root_path: str | None = None
    """The firmware's own name of that port (ACPI), such as `\\_SB_.PCI0.GPP0`: stays when buses are counted anew."""
    below: str | None = None
    """Device and function of each step below the root port down to the card, without bus numbers: `00.0`."""
    label: str | None = None
    """What the firmware calls the slot, such as `PCIEX16_1`; for people, firmware is often wrong about it."""
    bar1_mib: int | None = None
    """The window through which the processor reaches the card's memory, MiB."""
    above_4g: bool | None = None
    """Whether that window lies above 4 GiB of the processor's addresses."""
    aspm: str | None = None
    """How the card's link may sleep: `off`, `L0s`, `L1`, `L0s L1`."""
    iommu: str | None = None
    """`off`, or how the IOMMU translates for the card: `DMA-FQ`, `identity`, …"""
    acs_redirect: bool | None = None
    """Whether a port above the card sends what cards say to each other up to the processor (ACS)."""


class MemoryModuleFacts(_Reading):
    """One memory module, as the firmware lists it (DMI)."""

    place: str
    size_mib: int
    rated_mt_per_s: int | None = None
    """What the module can do, MT/s."""
    set_mt_per_s: int | None = None
    """What the firmware runs it at, MT/s."""
    part: str | None = None


class ModuleFacts(_Reading):
    """One loaded kernel module that taints the kernel."""

    name: str
    taint: str
    """The kernel's letters: P proprietary, O out of tree, E unsigned, F forced, C staging."""
    version: str | None = None


class DiskFacts(_Reading):
    """One disk that is built in."""

    name: str
    model: str = ""
    serial: str | None = None
    size_gb: float = 0
    """GB of 10⁹ bytes."""
    state: str | None = None
    """Of an NVMe disk's controller, as the kernel names it: `live`, `dead`, …"""
    smart_log: str | None = None
    """What `nvme smart-log -o json` prints of an NVMe disk."""
    smart_error: str | None = None
    """Why that could not be read."""


class FilesystemFacts(_Reading):
    """How full a file system is."""

    place: str
    """A folder in it, such as `/`."""
    size_gb: float = 0
    """GB of 10⁹ bytes."""
    free_gb: float | None = None
    """What programs without special rights may still write."""
    free_inode_share: float | None = None
    """None where the file system has no table of a fixed size."""
    error: str | None = None


class NetworkFacts(_Reading):
    """One network card."""

    name: str
    address: str
    """Its hardware address; its own, where it is part of a bond."""
    driver: str | None = None
    link: bool | None = None
    """Whether there is a signal; None where the card is switched off."""
    speed_mbit_per_s: int | None = None
    duplex: Literal["full", "half"] | None = None
    supported_mbit_per_s: int | None = None
    """The fastest that the card can do, where its driver tells; so for the next."""
    partner_mbit_per_s: int | None = None
    """The fastest that the other end of the cable offers."""
    wireless: bool = False
    carries_default_route: bool = False


class TimeSyncFacts(_Reading):
    """Who keeps the rig's clock, as systemd says."""

    service: bool | None = None
    """Whether a time service is on (timesyncd, chrony, ntpd)."""
    synchronised: bool | None = None
    """Whether the kernel takes its clock for right."""
    reason: str | None = None
    """Why one of both is not known."""


class FabricManagerFacts(_Reading):
    """NVIDIA's fabric manager, which joins cards through NVSwitches."""

    installed: bool | None = None
    state: str | None = None
    """As systemd says it: `active (running)`."""
    version: str | None = None
    reason: str | None = None
    """Why something of it is not known."""


class ProbeFacts(_Reading):
    """One bounded question to the driver, and how it went."""

    name: str
    """`NVML`, or the command: `nvidia-smi topo -m`."""
    seconds: float = Field(ge=0)
    limit_s: float = Field(gt=0)
    """It is ended after so long."""
    exit_status: int | None = None
    """None where it had to be ended."""
    stuck: str | None = None
    """What its process waits in, where not even SIGKILL ended it."""
    said: str = ""


class Facts(_Reading):
    """`facts.json`: hardware and software identity of one rig."""

    boot_id: str
    hostname: str
    product_name: str | None = None
    """DMI product name; a simulated rig's says that it is simulated."""
    bios_version: str | None = None
    board_name: str | None = None
    board_serial: str | None = None
    os: str = ""
    kernel: str = ""
    python: str = ""
    cpu_model: str = ""
    cpu_threads: int = 0
    memory_mib: int = 0
    memory_modules: tuple[MemoryModuleFacts, ...] | None = None
    """None where the firmware's list could not be read; so for the three below."""
    modules: tuple[ModuleFacts, ...] | None = None
    """Those that taint the kernel, and nouveau; the kernel's own are not listed."""
    disks: tuple[DiskFacts, ...] | None = None
    network: tuple[NetworkFacts, ...] | None = None
    filesystems: tuple[FilesystemFacts, ...] = ()
    """Those that a run writes to."""
    cpu_nominal_mhz: float | None = None
    """The clock that the processor's maker promises for all cores, where the kernel tells it."""
    driver: DriverFacts
    gpus: tuple[GpuFacts, ...] = ()
    pairs: tuple[PairFacts, ...] = ()
    places: tuple[PlaceFacts, ...] = ()
    numa_nodes: tuple[int, ...] = ()
    """The NUMA nodes that are online."""
    probes: tuple[ProbeFacts, ...] = ()
    """How long the driver took to answer for these facts."""
    tools: ToolFacts = ToolFacts()
    time_sync: TimeSyncFacts | None = None
    fabric_manager: FabricManagerFacts | None = None
    users_logged_in: int = 0
    compute_processes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    missing: dict[str, str] = Field(default_factory=dict)
    """Processor sensors that the rig does not have, and why that is thought: `cpu_temp_c`, `cpu_power_w`."""

    @property
    def simulated(self) -> bool:
        """Whether the machine says of itself that it is simulated."""
        return "simulated" in (self.product_name or "").lower()


class GpuSample(_Reading):
    """One card at one moment."""

    uuid: str
    slot: int
    temp_c: float | None = None
    power_w: float | None = None
    limit_w: float | None = None
    sm_mhz: int | None = None
    mem_mhz: int | None = None
    util_pct: int | None = None
    fan_pct: int | None = None
    """What is asked of the fans, % (NVML says no more); 0 where they rest, or where water cools the card."""
    fan_rpm: int | None = None
    """What the fans' own tachometer says, where driver and card show it."""
    memory_temp_c: float | None = None
    margin_c: float | None = None
    """How far the hottest spot is from slowing the card down, °C; newer cards and drivers only."""
    throttle: int | None = None
    """NVML's clocks throttle (event) reasons, a mask of bits."""
    pcie_gen: int | None = None
    pcie_width: int | None = None
    links_active: tuple[bool, ...] = ()
    error: str | None = None


class Sample(_Reading):
    """One line of `telemetry.jsonl`: all sensors at one moment."""

    seq: int
    part: int = 1
    """Which plan of the run took it; from 2 on, another controller had the rest carried out. `seq` begins anew."""
    t_mono_s: float
    t_wall_s: float
    boot_id: str
    step: str
    gpus: tuple[GpuSample, ...] = ()
    cpu_temp_c: float | None = None
    cpu_power_w: float | None = None
    cpu_util_pct: float | None = None
    cpu_mhz: float | None = None
    """Mean clock of some of the processor's cores."""
    cpu_throttles: int | None = None
    """How often the processor has slowed itself down for heat since the rig's start, where it counts that."""
    fans_rpm: dict[str, int] = Field(default_factory=dict)
    """Tachometers of fans and pumps by `CHIP LABEL`; a header without a fan says 0 for ever."""
    coolant_temps_c: dict[str, float] = Field(default_factory=dict)
    """Temperatures of the water by `CHIP LABEL`, where a sensor shows one."""
    room_temps_c: dict[str, float] = Field(default_factory=dict)
    """Temperatures of room or intake air by `CHIP LABEL`, where a sensor shows one."""
    wall_power_w: float | None = None
    wall_error: str | None = None
    controller_wall_s: float | None = None
    """Stamped by the controller when the sample arrived."""


class RigEvent(_Reading):
    """One line of the rig-side `events.jsonl`."""

    seq: int
    part: int = 1
    """As of a sample."""
    t_mono_s: float
    t_wall_s: float
    event: str
    """guard_limits · step_started · step_finished · load_started · load_exited · ramp_finished · ramp_skipped ·
    guard_stopped · step_skipped · plan_finished · error."""
    step: str | None = None
    detail: dict[str, object] = Field(default_factory=dict)


class KernelMessage(_Reading):
    """One line of `kernel.jsonl`: a kernel message of the time of the run."""

    t_wall_s: float
    message: str


class CommandReply(_Reading):
    """One line of `commands.jsonl`: what testinfra asked and got."""

    command: str
    exit_status: int
    stdout: str
    stderr: str


class LinkCounters(_Reading):
    """What one NVLink has counted since the driver was loaded; None where card or driver do not count it."""

    link: int
    replay: int | None = Field(default=None, ge=0)
    recovery: int | None = Field(default=None, ge=0)
    crc_flit: int | None = Field(default=None, ge=0)
    crc_data: int | None = Field(default=None, ge=0)


class BusErrors(_Reading):
    """AER's counters of one device: by kind (`correctable`, `nonfatal`, `fatal`) and name, or why there are none."""

    address: str = ""
    counts: dict[str, dict[str, int]] | None = None
    blind: str | None = None
    """Why the device shows none: no AER, switched off, or the firmware's own."""
    error: str | None = None


class BusErrorsOfCard(_Reading):
    """AER's counters of one card and of the ports above it, the root port first."""

    card: BusErrors
    ports: tuple[BusErrors, ...] = ()


class CardCounters(_Reading):
    """The counters of one card at one moment."""

    uuid: str
    slot: int
    links: tuple[LinkCounters, ...] = ()
    pcie_replays: int | None = Field(default=None, ge=0)
    aer: BusErrorsOfCard
    ecc: EccReading | None = None
    remapped_rows: RemappedRows | None = None
    missing: dict[str, str] = Field(default_factory=dict)
    faults: tuple[str, ...] = ()


class Counters(_Reading):
    """One line of `counters.jsonl`: before the first load, or after the last one."""

    when: Literal["before", "after"]
    t_mono_s: float
    seconds: float = Field(ge=0)
    error: str | None = None
    cards: tuple[CardCounters, ...] = ()


class Readings(_Reading):
    """Everything that a run knows of one rig. What was not measured is empty or None, never a default figure."""

    rig: str
    facts: Facts | None = None
    samples: tuple[Sample, ...] = ()
    events: tuple[RigEvent, ...] = ()
    logs: dict[str, str] = Field(default_factory=dict)
    """Raw outputs by file name: `gpu_burn.log`, `all_burn.log`, `cpu_burn.yaml`, `train.json`, …"""
    kernel: tuple[KernelMessage, ...] = ()
    kernel_read: bool = False
    """Whether the kernel log could be read at all: nothing found is not the same as nothing read."""
    boot_id_after: str | None = None
    unreached: str | None = None
    """Why the rig could not be reached or measured; None when it was."""
    unreached_fix: str = ""
    cuts: tuple[str, ...] = ()
    """Connection cuts that were survived, in words."""

    def of_step(self, step: str) -> tuple[Sample, ...]:
        """The samples taken during `step`."""
        return tuple(s for s in self.samples if s.step == step)
