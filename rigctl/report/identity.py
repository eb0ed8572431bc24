"""Tables of what a rig is: its parts, its cards, their links, and what each step showed."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import fmean
from typing import TYPE_CHECKING

from rigctl.report.charts import cards
from rigctl.report.curves import known
from rigctl.report.text import duration, figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rigctl.model.reading import Facts, GpuFacts, GpuSample, Readings, Sample
    from rigctl.model.spec import PartsSpec
    from rigctl.report.curves import Timeline

LOADED = ("gpu_burn", "all_burn", "train")
BUSY_PCT = 50
"""A card counts as loaded from this utilisation on."""

Rows = list[tuple[str, ...]]


def machine_rows(facts: Facts) -> Rows:
    """Return the rig's identity as name and value; what is not known says so."""
    driver, tools = facts.driver, facts.tools
    build = ", ".join(f"{k} {v}" for k, v in sorted(tools.gpu_burn_build.items()))
    rows = [
        ("Product", facts.product_name),
        ("Board", facts.board_name),
        ("BIOS", facts.bios_version),
        ("CPU", f"{facts.cpu_model} ({facts.cpu_threads} threads)" if facts.cpu_model else None),
        ("Memory", f"{facts.memory_mib / 1024:.1f} GiB" if facts.memory_mib else None),
        ("System", f"{facts.os}, kernel {facts.kernel}" if facts.os else None),
        ("Driver loaded", driver.loaded),
        ("Driver library", driver.library or driver.nvml_error),
        ("CUDA of the driver", driver.cuda_driver),
        ("CUDA toolkit", tools.nvcc),
        ("PyTorch", tools.torch),
        ("gpu-burn", f"{tools.gpu_burn} ({build})" if tools.gpu_burn and build else tools.gpu_burn),
        ("stress-ng", tools.stress_ng),
        ("Boot id", facts.boot_id),
    ]
    return [(name, value or "not known") for name, value in rows]


CARD_COLUMNS = ("Card", "Model", "UUID", "Bus", "VBIOS", "Serial", "Memory", "Power limit", "Slowdown")


def card_rows(facts: Facts) -> Rows:
    """Return one row per card for `CARD_COLUMNS`."""
    return [
        (
            gpu.subject,
            gpu.name,
            gpu.uuid,
            gpu.pci_bus_id,
            gpu.vbios or "not exposed",
            gpu.serial or "not exposed",
            figure(gpu.memory_mib, "MiB") or "not exposed",
            _power_range(gpu),
            figure(gpu.slowdown_temp_c, "°C") or "not exposed",
        )
        for gpu in facts.gpus
    ]


LINK_COLUMNS = ("Card", "NVLinks at rest", "under load", "per link", "asked", "PCIe at rest", "under load", "asked")


def link_rows(readings: Readings, parts: PartsSpec | None) -> Rows:
    """Return one row per card for `LINK_COLUMNS`: under load the fewest links and the usual PCIe speed."""
    if readings.facts is None:
        return []
    loaded = _by_card(s for s in readings.samples if s.step in LOADED)
    resting = _by_card(s for s in readings.samples if s.step not in LOADED)
    return [
        (
            gpu.subject,
            f"{sum(link.active for link in gpu.links)} active" if gpu.links else "none",
            _fewest_links(loaded[gpu.uuid]),
            _speeds(gpu),
            _asked_links(parts, gpu.slot),
            _usual_pcie(resting[gpu.uuid]),
            _usual_pcie([g for g in loaded[gpu.uuid] if (g.util_pct or 0) >= BUSY_PCT]),
            _asked_pcie(parts),
        )
        for gpu in readings.facts.gpus
    ]


def _asked_pcie(parts: PartsSpec | None) -> str:
    if parts is None or parts.pcie_gen_under_load is None or parts.pcie_width_under_load is None:
        return "not known"
    return f"gen {parts.pcie_gen_under_load} x{parts.pcie_width_under_load}"


def step_table(readings: Readings, line: Timeline) -> tuple[tuple[str, ...], Rows]:
    """Return what each step showed, with its header: the curves' figures for those who do not see them.

    Of pruned samples only extremes are true: the highest power stands there instead of the mean.
    """
    shown = cards(readings)
    power, of_power = ("highest power", _most) if line.pruned else ("mean power", _mean)
    header = ["Step", "Lasted"]
    for _, _, name in shown:
        header += [f"{name} hottest", f"{name} {power}"]
    header += ["CPU hottest", "Wall highest" if line.pruned else "Wall mean"]
    rows: Rows = []
    for span in line.steps:
        row = [span.name, duration(span.end_s - span.start_s)]
        for uuid, _, _ in shown:
            row.append(_most(line.gpu(uuid, "temp_c")[span.part], "°C"))
            row.append(of_power(line.gpu(uuid, "power_w")[span.part], "W"))
        row += [_most(line.rig("cpu_temp_c")[span.part], "°C"), of_power(line.rig("wall_power_w")[span.part], "W")]
        rows.append(tuple(row))
    return tuple(header), rows


def _power_range(gpu: GpuFacts) -> str:
    if gpu.power_limit_w is None:
        return "not exposed"
    span = f" ({figure(gpu.power_min_w)} to {figure(gpu.power_max_w)})" if gpu.power_max_w is not None else ""
    return f"{figure(gpu.power_limit_w)} W{span}"


def _by_card(samples: Iterable[Sample]) -> defaultdict[str, list[GpuSample]]:
    found: defaultdict[str, list[GpuSample]] = defaultdict(list)
    for sample in samples:
        for gpu in sample.gpus:
            found[gpu.uuid].append(gpu)
    return found


def _fewest_links(samples: Sequence[GpuSample]) -> str:
    counted = [sum(g.links_active) for g in samples if g.links_active]
    return f"{min(counted)} active" if counted else "not read"


def _speeds(gpu: GpuFacts) -> str:
    speeds = sorted({link.speed_gb_per_s for link in gpu.links if link.active and link.speed_gb_per_s is not None})
    return ", ".join(f"{figure(s)} GB/s" for s in speeds) or "not read"


def _asked_links(parts: PartsSpec | None, slot: int) -> str:
    if parts is None:
        return "not known"
    if parts.nvswitch_links is not None:
        return f"{parts.nvswitch_links} active"
    asked = sum(link.links for link in parts.links if link.kind == "nvlink" and slot in link.slots)
    return f"{asked} active" if asked else "none"


def _usual_pcie(samples: Sequence[GpuSample]) -> str:
    """Return the generation and width that were seen most: a link changes gear for a moment when a load starts."""
    seen = Counter((g.pcie_gen, g.pcie_width) for g in samples if g.pcie_gen is not None and g.pcie_width is not None)
    if not seen:
        return "not read"
    gen, width = seen.most_common(1)[0][0]
    return f"gen {gen} x{width}"


def _most(values: Sequence[float | None], unit: str) -> str:
    found = known(values)
    return figure(max(found), unit) if found else "not read"


def _mean(values: Sequence[float | None], unit: str) -> str:
    found = known(values)
    return f"{fmean(found):.0f} {unit}" if found else "not read"
