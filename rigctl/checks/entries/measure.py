"""The rig and its run, and the spec itself."""

from __future__ import annotations

from rigctl.checks.info import LOADS, CheckInfo

ENTRIES = (
    CheckInfo(
        "measure.reached",
        "the rig was reached and measured to the end",
        requires=("SSH",),
        limit_from=("reached: never `fail`, a rig that is not there is not a bad rig",),
        fix="rigctl doctor RIG",
    ),
    CheckInfo(
        "measure.probes",
        "the driver answers in time",
        nvml=True,
        requires=("nvidia-smi",),
        limit_from=("limits.max_probe_seconds", "the agent's own bound of each question"),
        fix="look for Xid 79 or 119 in the kernel log, then power the rig off and on",
    ),
    CheckInfo(
        "measure.telemetry",
        "samples without a gap, often enough",
        LOADS,
        limit_from=("`sample_hz` of the profile",),
        fix="look whether the rig is too busy to sample, or its disk slow or full",
    ),
    CheckInfo(
        "measure.left_as_found",
        "limits, clocks, fans and services are as they were before the run",
        LOADS,
        limit_from=("what the rig noted before the run",),
        fix="look at the named setting on the rig; a reboot gives the cards their defaults back",
    ),
    CheckInfo(
        "spec.waivers",
        "accepted deviations have not run out",
        afterwards=True,
        requires=("a waiver of the rig",),
        limit_from=("the waiver's own last day",),
        fix="mend the deviation and remove the waiver, or renew it with a new date",
    ),
)
