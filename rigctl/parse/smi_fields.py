"""Under which names nvidia-smi reports a thing, in XML and in text, newest first; read in captures of 418 to 610.

Text of 610: 'KMD Version' for the driver; 'GPU Current Temp' since 2018; 570 split 'Power Draw' into average and
instantaneous; 610 put the limits below 'GPU Ceiling Power Limit'. XML: DTD v10 to v13.
"""

from __future__ import annotations

from typing import NamedTuple

Path = tuple[str, ...]
Throttle = tuple[Path, ...]


class Field(NamedTuple):
    """Where a value stands, and in which units its figure is written; `units` None: it is a word."""

    xml: tuple[Path, ...]
    text: tuple[Path, ...]
    units: tuple[str, ...] | None = None


def _paths(*dotted: str) -> tuple[Path, ...]:
    return tuple(tuple(one.split("/")) for one in dotted)


def _field(xml: str, text: str, *units: str, word: bool = False) -> Field:
    """Alternatives are separated by `|`, sections by `/`."""
    return Field(_paths(*xml.split("|")), _paths(*text.split("|")), None if word else units or ("",))


VERSIONS_XML = (_paths("kmd_version", "driver_version"), _paths("cuda_umd_version", "cuda_version"))
VERSIONS_TEXT = (_paths("KMD Version", "Driver Version"), _paths("CUDA UMD Version", "CUDA Version"))
"""Names of the driver's version, then of the newest CUDA that it can run."""

_POWER_XML = "gpu_power_readings/{0}|gpu_power_readings/gpu_ceiling_power_limit/{0}|power_readings/{0}"
_POWER_TEXT = "GPU Power Readings/GPU Ceiling Power Limit/{0}|GPU Power Readings/{0}|Power Readings/{0}"
_LINK_XML, _LINK_TEXT = "pci/pci_gpu_link_info/", "PCI/GPU Link Info/"


def _power(xml: str, text: str) -> Field:
    return _field(
        "|".join(_POWER_XML.format(name) for name in xml.split("|")),
        "|".join(_POWER_TEXT.format(name) for name in text.split("|")),
        "W",
    )


FIELDS: dict[str, Field] = {
    "name": _field("product_name", "Product Name", word=True),
    "uuid": _field("uuid", "GPU UUID", word=True),
    "serial": _field("serial", "Serial Number", word=True),
    "vbios": _field("vbios_version", "VBIOS Version", word=True),
    "pci_device_id": _field("pci/pci_device_id", "PCI/Device Id", word=True),
    "pci_subsystem_id": _field("pci/pci_sub_system_id", "PCI/Sub System Id", word=True),
    "persistence_mode": _field("persistence_mode", "Persistence Mode", word=True),
    "mig_mode": _field("mig_mode/current_mig", "MIG Mode/Current", word=True),
    "ecc_mode": _field("ecc_mode/current_ecc", "ECC Mode/Current|Ecc Mode/Current", word=True),
    "compute_mode": _field("compute_mode", "Compute Mode", word=True),
    "performance_state": _field("performance_state", "Performance State", word=True),
    "recovery_action": _field("gpu_recovery_action", "GPU Recovery Action", word=True),
    "reset_required": _field("gpu_reset_status/reset_required", "GPU Reset Status/Reset Required", word=True),
    "retired_pending": _field(
        "retired_pages/pending_retirement|retired_pages/pending_blacklist",
        "Retired Pages/Pending Page Blacklist|Retired Pages/Pending",
        word=True,
    ),
    "remap_pending": _field("remapped_rows/remapped_row_pending", "Remapped Rows/Pending", word=True),
    "remap_failed": _field("remapped_rows/remapped_row_failure", "Remapped Rows/Remapping Failure Occurred", word=True),
    "fabric_state": _field("fabric/state", "Fabric/State", word=True),
    "fabric_status": _field("fabric/status", "Fabric/Status", word=True),
    "fan_pct": _field("fan_speed", "Fan Speed", "%"),
    "gpu_temp_c": _field("temperature/gpu_temp", "Temperature/GPU Current Temp", "C"),
    "gpu_margin_c": _field(
        "temperature/gpu_temp_tlimit", "Temperature/GPU Current T.Limit Temp|Temperature/GPU T.Limit Temp", "C"
    ),
    "shutdown_temp_c": _field("temperature/gpu_temp_max_threshold", "Temperature/GPU Shutdown Temp", "C"),
    "slowdown_temp_c": _field("temperature/gpu_temp_slow_threshold", "Temperature/GPU Slowdown Temp", "C"),
    "max_operating_temp_c": _field("temperature/gpu_temp_max_gpu_threshold", "Temperature/GPU Max Operating Temp", "C"),
    "target_temp_c": _field(
        "temperature/gpu_target_temperature",
        "Temperature/GPU Target Temperature Specification|Temperature/GPU Target Temperature",
        "C",
    ),
    "memory_temp_c": _field("temperature/memory_temp", "Temperature/Memory Current Temp", "C"),
    "memory_max_temp_c": _field("temperature/gpu_temp_max_mem_threshold", "Temperature/Memory Max Operating Temp", "C"),
    "power_draw_w": _power(
        "instant_power_draw|power_draw|average_power_draw",
        "Instantaneous Power Draw|Power Draw|Average Power Draw",
    ),
    "power_limit_w": _power("current_power_limit|power_limit", "Current Power Limit|Power Limit"),
    "enforced_power_limit_w": _power("enforced_power_limit", "Enforced Power Limit"),
    "default_power_limit_w": _power("default_power_limit", "Default Power Limit"),
    "min_power_limit_w": _power("min_power_limit", "Min Power Limit"),
    "max_power_limit_w": _power("max_power_limit", "Max Power Limit"),
    "pcie_gen": _field(_LINK_XML + "pcie_gen/current_link_gen", _LINK_TEXT + "PCIe Generation/Current"),
    "max_pcie_gen": _field(_LINK_XML + "pcie_gen/max_link_gen", _LINK_TEXT + "PCIe Generation/Max"),
    "pcie_width": _field(_LINK_XML + "link_widths/current_link_width", _LINK_TEXT + "Link Width/Current", "x"),
    "max_pcie_width": _field(_LINK_XML + "link_widths/max_link_width", _LINK_TEXT + "Link Width/Max", "x"),
    "pcie_replays": _field("pci/replay_counter", "PCI/Replays Since Reset|PCI/Replays since reset"),
    "memory_total_mib": _field("fb_memory_usage/total", "FB Memory Usage/Total", "MiB"),
    "memory_used_mib": _field("fb_memory_usage/used", "FB Memory Usage/Used", "MiB"),
    "bar1_total_mib": _field("bar1_memory_usage/total", "BAR1 Memory Usage/Total", "MiB"),
    "gpu_util_pct": _field("utilization/gpu_util", "Utilization/GPU|Utilization/Gpu", "%"),
    "sm_clock_mhz": _field("clocks/sm_clock", "Clocks/SM", "MHz"),
    "memory_clock_mhz": _field("clocks/mem_clock", "Clocks/Memory", "MHz"),
    "max_sm_clock_mhz": _field("max_clocks/sm_clock", "Max Clocks/SM", "MHz"),
    "ecc_uncorrected_volatile": _field(
        "ecc_errors/volatile/dram_uncorrectable|ecc_errors/volatile/double_bit/total",
        "ECC Errors/Volatile/DRAM Uncorrectable|ECC Errors/Volatile/Double Bit/Total",
    ),
    "ecc_corrected_volatile": _field(
        "ecc_errors/volatile/dram_correctable|ecc_errors/volatile/single_bit/total",
        "ECC Errors/Volatile/DRAM Correctable|ECC Errors/Volatile/Single Bit/Total",
    ),
    "sram_uncorrected_volatile": _field(
        "ecc_errors/volatile/sram_uncorrectable", "ECC Errors/Volatile/SRAM Uncorrectable"
    ),
    "retired_single_bit": _field(
        "retired_pages/multiple_single_bit_retirement/retired_count", "Retired Pages/Single Bit ECC"
    ),
    "retired_double_bit": _field("retired_pages/double_bit_retirement/retired_count", "Retired Pages/Double Bit ECC"),
    "remapped_corrected": _field("remapped_rows/remapped_row_corr", "Remapped Rows/Correctable Error"),
    "remapped_uncorrected": _field("remapped_rows/remapped_row_unc", "Remapped Rows/Uncorrectable Error"),
}
"""Everything that is read of a card; the name of a figure carries its unit."""

_REASONS = {
    "gpu_idle": ("gpu_idle", "Idle"),
    "applications_clocks_setting": ("applications_clocks_setting", "Applications Clocks Setting"),
    "sw_power_cap": ("sw_power_cap", "SW Power Cap"),
    "hw_slowdown": ("hw_slowdown", "HW Slowdown"),
    "hw_thermal_slowdown": ("hw_thermal_slowdown", "HW Slowdown/HW Thermal Slowdown"),
    "hw_power_brake_slowdown": ("hw_power_brake_slowdown", "HW Slowdown/HW Power Brake Slowdown"),
    "sync_boost": ("sync_boost", "Sync Boost"),
    "sw_thermal_slowdown": ("sw_thermal_slowdown", "SW Thermal Slowdown"),
    "display_clocks_setting": ("display_clocks_setting", "Display Clock Setting"),
}
THROTTLE_XML: dict[str, Throttle] = {
    name: _paths(
        f"clocks_event_reasons/clocks_event_reason_{xml}", f"clocks_throttle_reasons/clocks_throttle_reason_{xml}"
    )
    for name, (xml, _) in _REASONS.items()
}
THROTTLE_TEXT: dict[str, Throttle] = {
    name: _paths(f"Clocks Event Reasons/{text}", f"Clocks Throttle Reasons/{text}")
    for name, (_, text) in _REASONS.items()
}
"""Why clocks are lower than they could be; the names of 535.54 and newer, then those of older drivers."""
