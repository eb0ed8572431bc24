"""Every metric by name: what it says, in which base unit, with which labels.

Names follow Prometheus' own advice (https://prometheus.io/docs/practices/naming/): base units, the unit as the name's
end, moments as seconds since 1970 and never as ages. All are gauges, or constants with labels (`_info`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """One metric."""

    name: str
    says: str
    labels: tuple[str, ...] = ()


_ALL = (
    Family("rigctl_build_info", "The rigctl that wrote these metrics; always 1.", ("version",)),
    Family("rigctl_index_unreadable_runs", "Run directories that are damaged or half copied, and left out."),
    Family(
        "rigctl_rig_info",
        "What a rig is, from its newest judged acceptance; always 1. Empty: not known.",
        ("rig", "rig_class", "driver", "kernel", "bios"),
    ),
    Family(
        "rigctl_gpu_info",
        "A card and its slot in the newest judged acceptance; always 1.",
        ("rig", "slot", "model", "uuid", "vbios"),
    ),
    Family(
        "rigctl_rig_verdict",
        "1 for the verdict of a rig's newest judged acceptance, 0 for the other words.",
        ("rig", "verdict"),
    ),
    Family(
        "rigctl_rig_accepted", "Whether in the newest judged acceptance nothing failed or stayed unmeasured.", ("rig",)
    ),
    Family(
        "rigctl_rig_last_verdict_timestamp_seconds",
        "When the newest judged acceptance ended, seconds since 1970; absent where there was none.",
        ("rig",),
    ),
    Family(
        "rigctl_rig_busy", "Whether the newest acceptance left the rig out because somebody uses it.", ("rig",)
    ),
    Family(
        "rigctl_rig_checks",
        "Verdicts of checks in the newest judged acceptance, by their word.",
        ("rig", "verdict"),
    ),
    Family(
        "rigctl_rig_cause",
        "1 for each failed or unmeasured check that follows from no other, in the newest judged acceptance.",
        ("rig", "check", "subject", "verdict"),
    ),
    Family(
        "rigctl_run_duration_seconds", "How long the newest judged acceptance took, from begin to end.", ("rig",)
    ),
    Family("rigctl_run_step_duration_seconds", "How long each of its steps took.", ("rig", "step")),
    Family(
        "rigctl_check_reading",
        "The figure that a check found in the newest judged acceptance, in the base unit that its label names.",
        ("rig", "check", "subject", "slot", "unit"),
    ),
    Family(
        "rigctl_check_limit",
        "What the check expected of that figure, where that is a number, in the same unit.",
        ("rig", "check", "subject", "slot", "unit"),
    ),
    Family(
        "rigctl_gpu_settled_temperature_celsius", "A card at the end of its burn, in degrees Celsius.", ("rig", "slot")
    ),
    Family(
        "rigctl_gpu_thermal_resistance_celsius_per_watt",
        "How much warmer a card settles for each watt, over its own rest, the coolant or the room.",
        ("rig", "slot", "over"),
    ),
    Family("rigctl_gpu_power_limit_watts", "The power limit that a card had.", ("rig", "slot")),
    Family("rigctl_wall_power_watts", "What the rig drew at the wall under a step's load.", ("rig", "step")),
    Family("rigctl_training_tokens_per_second", "How quickly a card trained.", ("rig", "subject")),
    Family("rigctl_room_temperature_celsius", "The room's or coolant's sensor, in degrees Celsius.", ("rig",)),
    Family(
        "rigctl_waiver_end_timestamp_seconds",
        "When a waiver that was in use ends, seconds since 1970; the check fails again from then on.",
        ("rig", "check", "subject"),
    ),
    Family("rigctl_rig_slow_trends", "Figures of a rig that get slowly worse.", ("rig",)),
    Family(
        "rigctl_trend_limit_timestamp_seconds",
        "The day on which a figure meets its limit if it goes on getting worse like this, seconds since 1970.",
        ("rig", "check", "subject", "slot"),
    ),
    Family("rigctl_nightly_last_run_timestamp_seconds", "When the last night ended, seconds since 1970."),
    Family("rigctl_nightly_last_run_duration_seconds", "How long the last night took."),
    Family(
        "rigctl_nightly_last_run_outcome",
        "1 for what became of the last night, 0 for the other words.",
        ("outcome",),
    ),
    Family(
        "rigctl_nightly_last_run_rigs", "Rigs of the last night: judged, or left out for any reason.", ("state",)
    ),
)  # fmt: skip

FAMILIES = {family.name: family for family in _ALL}
"""By name, in the order in which they are written."""
