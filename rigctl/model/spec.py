"""The spec of a rig class: what a rig must be and show. Plain data, no expressions.

`group_vars/class_X/spec.yml` holds one key, `rig_spec`; `host_vars/RIG/*.yml` may hold `rig_spec_host`, merged
deeply over it. Units are in the names; values are bare numbers. Every limit names its source under `sources`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _Literal(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class LinkSpec(_Literal):
    """How one pair of cards is joined; `slots` counts from 1 in PCI bus order."""

    slots: tuple[int, int] = Field(strict=False)
    kind: Literal["nvlink", "pcie", "none"]
    links: int = Field(default=0, ge=0, le=18)
    """Number of active NVLinks: 4 for `NV4` in `nvidia-smi topo -m`."""


class PartsSpec(_Literal):
    """What must be built in."""

    gpu_count: int = Field(ge=1, le=16)
    gpu_model: str
    min_gpu_memory_mib: int = Field(gt=0)
    links: tuple[LinkSpec, ...] = Field(default=(), strict=False)
    min_nvlink_gb_per_s: float | None = Field(default=None, gt=0)
    """Speed of one NVLink in one direction, GB/s."""
    nvswitch_links: int | None = Field(default=None, ge=1, le=18)
    """Active NVLinks of each card to the NVSwitches, where the board has such; then every pair has as many."""
    pcie_gen_under_load: int | None = Field(default=None, ge=1, le=6)
    """None: not known of this class yet; so for every optional figure below and in `LimitsSpec`."""
    pcie_width_under_load: int | None = Field(default=None, ge=1, le=32)
    gpu_numa_nodes: tuple[int, ...] | None = Field(default=None, strict=False)
    """The NUMA node of each card, in slot order."""
    min_disk_gb: float | None = Field(default=None, gt=0)
    """Size of the largest disk that is built in, GB of 10⁹ bytes."""
    disk_directory: str = "/var/tmp"  # noqa: S108 - the standard's place for files that outlive a reboot
    """A folder on the disk whose speed is measured."""
    ecc: bool | None = None
    """Whether the cards correct errors of their memory; None: as it is found."""


class LimitsSpec(_Literal):
    """What must be shown under load."""

    max_settled_gpu_temp_c: float | None = Field(default=None, gt=0, lt=120)
    """Mean of the last third of the GPU burn, °C."""
    settled_at_room_temp_c: float | None = Field(default=None, gt=-20, lt=60)
    """The room for which that limit stands, °C, as `thermals.rest_temp` shows it: in a warmer or colder one the limit
    moves along. None: it holds whatever the room."""
    max_settled_gpu_memory_temp_c: float | None = Field(default=None, gt=0, lt=130)
    """The same for the cards' memory, where it can be read; None: what the card itself allows."""
    max_gpu_temp_spread_c: float | None = Field(default=None, gt=0, lt=60)
    """How much warmer than the median of the others a card may settle, °C."""
    max_gpu_c_per_w: float | None = Field(default=None, gt=0, lt=2)
    """Thermal resistance of a card to the room, °C/W, against the room's sensor or else the card's own rest."""
    max_gpu_c_per_w_coolant: float | None = Field(default=None, gt=0, lt=2)
    """The same against the coolant's sensor, where the rig has one."""
    max_gpu_c_per_w_rise_share: float = Field(default=0.20, gt=0, lt=1)
    """How far either resistance may be above the rig's newest accepted run."""
    max_rest_temp_c: float | None = Field(default=None, gt=0, lt=90)
    """Room as its sensor shows it, or else the coolest card at rest before any load, °C."""
    max_fan_pct: float | None = Field(default=None, gt=0, le=100)
    """What may be asked of a card's fans while it settles, %: the nearest thing to noise."""
    max_nvlink_crc_errors: int = Field(default=100, ge=0)
    """How much each counter of a link's CRC errors and replays may rise under load; a recovery is never allowed."""
    max_pcie_replays: int = Field(default=80, ge=0)
    """How many packets a card may have to send again over PCIe under load."""
    max_aer_corrected_per_min: float = Field(default=32, ge=0)
    """Corrected errors a minute that a card, or a port above it, may report to the kernel."""
    max_ecc_corrected: int = Field(default=50_000_000, ge=0)
    """How many errors a card may have corrected in its memory since the driver was loaded."""
    max_clock_offset_s: float = Field(default=2.0, gt=0)
    """How far the rig's clock may be from the controller's, seconds."""
    max_probe_seconds: float | None = Field(default=None, gt=0)
    """How long one question to NVML or `nvidia-smi` may take, seconds."""
    min_p2p_one_way_gb_per_s: float | None = Field(default=None, gt=0)
    """Between each pair of cards that the spec joins, in one direction at a time, GB/s."""
    min_p2p_both_ways_gb_per_s: float | None = Field(default=None, gt=0)
    """The same in both directions at once, their sum."""
    guard_max_gpu_temp_c: float = Field(gt=0, lt=120)
    """The burn stops itself at this core temperature, °C; never looser than the card's slowdown − 5."""
    guard_max_gpu_memory_temp_c: float | None = Field(default=None, gt=0, lt=130)
    """The same for the cards' memory, where it can be read; None: the card's own limit − 5 alone."""
    guard_max_cpu_temp_c: float | None = Field(default=None, gt=0, lt=120)
    """The same for the processor's package; None: what its sensor calls critical − 5 alone."""
    max_cpu_temp_c: float | None = Field(default=None, gt=0, lt=120)
    min_cpu_mhz: float | None = Field(default=None, gt=0, lt=10_000)
    """Mean clock of the cores in the last third of the CPU burn, MHz; None: what the processor's maker promises."""
    max_disk_used_pct: float = Field(default=100, gt=0, le=255)
    """How much of its endurance an NVMe disk may say that it has used, %."""
    max_disk_media_errors: int = Field(default=0, ge=0)
    """How often an NVMe disk may have lost data."""
    min_disk_free_gb: float = Field(default=5, ge=0)
    """What must be free where programs, readings and test files go, GB of 10⁹ bytes."""
    min_disk_read_mb_per_s: float | None = Field(default=None, gt=0)
    """One file from end to end, past the kernel's cache, MB/s of 10⁶ bytes; so for the next."""
    min_disk_write_mb_per_s: float | None = Field(default=None, gt=0)
    min_network_mbit_per_s: int | None = Field(default=None, gt=0)
    """The link of the network card that carries the default route, Mbit/s; None: what both its ends can do."""
    min_power_share_of_limit: float | None = Field(default=None, gt=0, le=1)
    """Mean power in the burn's last third ÷ power limit."""
    max_power_share_of_limit: float = Field(default=1.05, ge=1, le=2)
    """The same at most: a card that draws more does not keep to its limit, or tells its power wrongly."""
    max_idle_power_w: float | None = Field(default=None, gt=0, lt=1000)
    """What a card may draw at rest, W; None: 1.5 × its own accepted run alone."""
    max_bad_throttle_share: float = Field(default=0.0, ge=0, le=1)
    """Share of loaded samples with hardware slowdown, thermal slowdown or power brake."""
    min_burn_gflops: float | None = Field(default=None, gt=0)
    """gpu-burn, single precision, per card, Gflop/s."""
    max_burn_gflops_drift: float | None = Field(default=None, ge=0, le=1)
    wall_power_gpu_burn_w: float | None = Field(default=None, gt=0)
    wall_power_all_burn_w: float | None = Field(default=None, gt=0)
    wall_power_tolerance_share: float = Field(default=0.10, gt=0, lt=1)
    max_wall_residual_share: float | None = Field(default=None, gt=0, lt=1)
    """What the wall gives under load and neither cards nor CPU take, ÷ wall power: supply, board, memory, fans."""
    max_rate_fall_share: float = Field(default=0.10, gt=0, lt=1)
    """How far a rate of `compute` or `training` may be below what the rig's accepted runs showed."""
    max_twin_gap_share: float = Field(default=0.10, gt=0, lt=1)
    """How much slower than the median of the other cards a card may be."""


class CoolingSpec(_Literal):
    """Fans and pumps whose tachometers the rig must show."""

    min_rpm: dict[str, int] = Field(default_factory=dict)
    """Lowest speed under load, rpm, by sensor as the agent names it: `d5next Pump speed`."""


class SettingsSpec(_Literal):
    """What board, cards and kernel are set to. None: not asked, the rig's accepted runs alone are compared with."""

    min_bar1_mib: int | None = Field(default=None, gt=0)
    """The window to each card's memory, MiB: as large as the memory where Resizable BAR is on."""
    above_4g: bool | None = None
    """`Above 4G decoding` of the BIOS."""
    aspm: bool | None = None
    """Whether the cards' links may sleep."""
    iommu: bool | None = None
    acs_redirect: bool | None = None
    """Whether ports send what cards say to each other up to the processor."""
    min_memory_mt_per_s: int | None = Field(default=None, gt=0)
    """What the slowest memory module runs at, MT/s."""
    gpu_vbios: tuple[str, ...] | None = Field(default=None, strict=False)
    """The VBIOS versions that the cards may have."""
    time_sync: bool | None = None
    """Whether a service keeps the rig's clock. None: it does, where the rig can tell; False: not judged."""
    allowed_modules: tuple[str, ...] | None = Field(default=None, strict=False)
    """Kernel modules from elsewhere that may be loaded beside NVIDIA's."""


class WallMeterSpec(_Literal):
    """The meter at the wall, at an address as the rig sees it; what belongs to one rig stands in host_vars."""

    form: Literal["tasmota", "shelly", "nut", "ipmi_dcmi", "command"]
    """`ipmi_dcmi`: the rig's own management controller, by `ipmitool dcmi power reading`; it needs no address."""
    url: str | None = None
    """For Tasmota `http://ADDRESS/cm?cmnd=Status%208`, for Shelly `http://ADDRESS/rpc/Switch.GetStatus?id=0` or, of
    its first generation, `http://ADDRESS/status`."""
    channel: int = Field(default=0, ge=0, le=7)
    """Which of a Shelly's outlets feeds the rig, where its answer names several."""
    ups: str | None = None
    """For NUT: the UPS as `upsc` names it, `ups@192.0.2.5`."""
    command: tuple[str, ...] | None = Field(default=None, strict=False, min_length=1)
    """For `command`: a program on the rig and its arguments; it prints the power in watts as one number."""
    required: bool = True
    """False: a rig without a readable meter is `blind` there, not `error`."""

    @property
    def asked(self) -> str | tuple[str, ...] | None:
        """What has to be asked for the power; None where the rig's own part is not written yet."""
        return {
            "tasmota": self.url,
            "shelly": self.url,
            "nut": self.ups,
            "ipmi_dcmi": "ipmitool dcmi power reading",
            "command": self.command,
        }[self.form]

    @property
    def key(self) -> str:
        """The key under which a rig of this form names its own meter."""
        return {"nut": "ups", "command": "command"}.get(self.form, "url")

    @model_validator(mode="after")
    def _names_no_other_forms_meter(self) -> WallMeterSpec:
        own = {"tasmota": ("url",), "shelly": ("url",), "nut": ("ups",), "command": ("command",)}.get(self.form, ())
        for key in ("url", "ups", "command"):
            if getattr(self, key) is not None and key not in own:
                message = f"wall_meter.{key} is not for form {self.form}"
                raise ValueError(message)
        return self


class TrainingSpec(_Literal):
    """The training workload. It names its device and is never run on another one instead."""

    device: Literal["cuda", "cpu"]
    model: Literal["gpt2_medium", "gpt_tiny"]
    seq_len: int = Field(gt=0)
    micro_batch: int = Field(gt=0)
    grad_accum: int = Field(gt=0)
    dtype: Literal["bf16", "fp32"]
    threads: int | None = Field(default=None, gt=0)
    """CPU threads; only where device is cpu."""
    warmup_steps: int = Field(ge=1)
    measured_steps: int = Field(ge=3)
    min_tokens_per_s: float | None = Field(default=None, gt=0)
    min_all_tokens_per_s: float | None = Field(default=None, gt=0)
    """On all cards together (step `train_all`)."""
    min_scaling_share: float | None = Field(default=None, gt=0, le=1)
    """Tokens/s of all cards together ÷ the sum of what each card trains alone."""
    min_p2p_gain: float | None = Field(default=None, gt=0)
    """Tokens/s of all cards together ÷ the same with P2P switched off (`NCCL_P2P_DISABLE=1`)."""
    min_across_share: float | None = Field(default=None, gt=0, le=1)
    """Tokens/s of several rigs together (step `train_across`) ÷ what each trains by itself, times their number."""
    min_tokens_per_joule: float | None = Field(default=None, gt=0)
    """Tokens/s of step `train` ÷ what its card draws, tokens/J."""
    provisional: bool = False
    """True until a rig of this class has shown its own figure; then said in each verdict."""

    @model_validator(mode="after")
    def _threads_are_for_the_cpu(self) -> TrainingSpec:
        if self.threads is not None and self.device != "cpu":
            message = "training.threads is for device cpu only"
            raise ValueError(message)
        return self


class ComputeSpec(_Literal):
    """What each card computes and moves by itself, and the test of its memory. Never run on another device instead."""

    device: Literal["cuda", "cpu"]
    threads: int | None = Field(default=None, gt=0)
    """CPU threads; only where device is cpu."""
    matmul_n: int = Field(default=8192, gt=0)
    """Rows and columns of the matrices."""
    stream_mib: int = Field(default=256, gt=0)
    """Size of what is streamed through memory and copied over the bus, MiB."""
    layer_batch: int = Field(default=128, gt=0)
    """Sequences that go through the Transformer layer at once."""
    min_matmul_fp32_tflops: float | None = Field(default=None, gt=0)
    """Product of single-precision matrices, with TF32 where the card has it, TFLOP/s; so for the next two types."""
    min_matmul_fp16_tflops: float | None = Field(default=None, gt=0)
    min_matmul_bf16_tflops: float | None = Field(default=None, gt=0)
    min_gpu_memory_gb_per_s: float | None = Field(default=None, gt=0)
    """A vector times a number, read and written, GB/s."""
    min_host_to_device_gb_per_s: float | None = Field(default=None, gt=0)
    """From pinned memory of the host, GB/s."""
    min_device_to_host_gb_per_s: float | None = Field(default=None, gt=0)
    min_layer_tflops: float | None = Field(default=None, gt=0)
    """A Transformer layer of BERT-large in fp16, forwards and backwards, TFLOP/s."""
    min_tested_memory_share: float = Field(default=0.8, gt=0, le=1)
    """How much of a card's memory the pattern test must reach; the rest is the driver's and torch's own."""

    @model_validator(mode="after")
    def _threads_are_for_the_cpu(self) -> ComputeSpec:
        if self.threads is not None and self.device != "cpu":
            message = "compute.threads is for device cpu only"
            raise ValueError(message)
        return self


class HostMemorySpec(_Literal):
    """The test of the host's memory, in profiles that ask for `host_memory`."""

    seconds: float = Field(default=300, ge=1, le=14_400)
    """How long patterns are written and compared, seconds."""
    share_of_free: float = Field(default=0.8, gt=0, le=0.9)
    """How much of what is free is tested."""


class SpecFile(_Literal):
    """`rig_spec` as it is written in a file."""

    parts: PartsSpec
    limits: LimitsSpec
    cooling: CoolingSpec | None = None
    settings: SettingsSpec | None = None
    wall_meter: WallMeterSpec | None = None
    training: TrainingSpec | None = None
    host_memory: HostMemorySpec | None = None
    compute: ComputeSpec | None = None
    allow_step_load: bool = False
    """Whether cards and CPU may be switched on and off together: a supply that is too weak goes off."""
    sources: dict[str, str] = Field(default_factory=dict)
    """Dotted key → where its figure comes from, such as `limits.max_settled_gpu_temp_c`."""


class SoftwareSpec(_Literal):
    """What the roles install: resolved from the role variables as Ansible resolves them, written nowhere else."""

    driver_branch: str
    """`nvidia_driver_branch`, such as "515"."""
    cuda_version: str
    """`cuda_version`, such as "11.7"."""
    cuda_allow_unrunnable: bool = False
    """`cuda_allow_unrunnable`: the toolkit may be newer than the driver can run."""
    torch_version: str
    """`pytorch_version`; `auto` = chosen by the table for driver branch and Python."""
    torch_build: str
    """`pytorch_build`: `auto`, `cpu`, or a CUDA tag such as `cu117`."""
    power_limit_w: int | None = None
    """`nvidia_driver_power_limit_w`; None = the board's default."""
    gpu_burn_dir: str
    """`gpu_burn_dir`: where the burner and its compare file are."""
    torch_venv: str
    """`pytorch_venv`: the virtual environment that holds PyTorch."""


class AcrossSpec(_Literal):
    """Training together with other rigs, where a run was asked for it: no file holds this, the command does."""

    rigs: tuple[str, ...] = Field(strict=False, min_length=2)
    """All that train together, this one included; the first is where they meet."""
    rank: int = Field(ge=0)
    """This rig's place among them."""
    address: str
    """Where the others find the first rig."""
    port: int = Field(gt=0, lt=65536)


class RigSpec(_Literal):
    """The spec of one rig: class file, host exceptions and role variables put together."""

    rig_class: str
    parts: PartsSpec
    limits: LimitsSpec
    cooling: CoolingSpec | None = None
    settings: SettingsSpec | None = None
    wall_meter: WallMeterSpec | None = None
    training: TrainingSpec | None = None
    host_memory: HostMemorySpec | None = None
    compute: ComputeSpec | None = None
    across: AcrossSpec | None = None
    allow_step_load: bool = False
    sources: dict[str, str] = Field(default_factory=dict)
    software: SoftwareSpec
    origin: str = ""
    """The spec file as people know it, relative to the inventory: `group_vars/class_X/spec.yml`."""

    def source(self, key: str) -> str:
        """Where the figure under `key` comes from: file, key and the origin stated there."""
        stated = self.sources.get(key, "")
        return f"{self.origin}: {key}" + (f" ({stated})" if stated else "")


Workload = Literal["disk", "host_memory", "p2p", "compute", "gpu_memory", "train_all", "train_across", "dcgm"]
"""What a profile can ask for beside burns and training; each is one step of that name, in this order."""


class ProfileSpec(_Literal):
    """One profile: which load steps, how long. Inventory data (`rig_profiles`), so that every park sets its own."""

    idle_seconds: float = Field(ge=0)
    cpu_burn_seconds: float = Field(ge=0)
    """0 leaves the step out; so for each `*_seconds`."""
    gpu_burn_seconds: float = Field(ge=0)
    all_burn_seconds: float = Field(ge=0)
    """Cards and CPU together."""
    train: bool
    workloads: tuple[Workload, ...] = Field(default=(), strict=False)
    """Further steps; what the spec does not ask of the rig is left out."""
    sample_hz: float = Field(gt=0, le=50)
    early_stop: bool = False
    """Whether a GPU burn may end as soon as its verdict is certain; see docs/early-stop.md for when it never does."""
    controller_lost_s: float = Field(default=60, gt=0)
    """The burn stops itself after so long without a word from the controller, seconds."""
    ramp_seconds: float = Field(default=5, ge=0, le=60)
    """A GPU burn's power limit rises for so long from the board's lowest, seconds, a tenth of the burn at most; 0: it
    begins at its own limit."""
    step_load_seconds: float = Field(default=0, ge=0)
    """Cards and CPU are switched on and off together for about so long, seconds, where the rig's spec allows it."""
    step_load_only_first: bool = False
    """The step load is run at a rig's first acceptance only."""
    wakes: int = Field(default=0, ge=0)
    """How often the rig is left alone and then put to work; 0 leaves the step out."""
    wake_rest_seconds: float = Field(default=300, gt=0)
    """The rest before each of them, seconds."""
    wake_load_seconds: float = Field(default=20, gt=0)
    """The work after each rest, seconds."""
