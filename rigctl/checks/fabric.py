"""The fabric manager, where the board has NVSwitches: it runs, and is of the loaded driver's own version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.reading import FabricManagerFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

UNIT = "nvidia-fabricmanager"
_LOOK = f"`systemctl status {UNIT}` and `journalctl -u {UNIT}`"


def fabric_manager(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """The service that joins cards through NVSwitches runs, and its version is the driver's."""
    say = Say("topology.fabric_manager", expected="active", source=spec.source("parts.nvswitch_links"))
    if spec.parts.nvswitch_links is None:
        return [say.skipped("the spec declares no NVSwitch")]
    rig, facts = readings.rig, readings.facts
    if facts is None or facts.fabric_manager is None:
        return [say.error("the rig did not say whether its fabric manager runs", f"{_LOOK} on {rig}")]
    told = facts.fabric_manager
    if told.installed is None:
        why = told.reason or "no reason given"
        return [say.error(f"nobody can tell whether the fabric manager runs: {why}", f"{_LOOK} on {rig}")]
    if not told.installed:
        reason = "no fabric manager is installed: cards cannot reach each other through the switches"
        fix = f"install nvidia-fabricmanager of the driver's own version on {rig}, and start it"
        return [say.failed(reason, "not installed", fix)]
    return [_running(say, rig, told, facts.driver.loaded)]


def _running(say: Say, rig: str, told: FabricManagerFacts, driver: str | None) -> CheckVerdict:
    state = told.state or ""
    if driver is None:
        reason = f"the fabric manager is {state or 'in no known state'}, and no driver is loaded that it could be of"
        return say.error(reason, "see software.driver_version")
    if state.partition(" ")[0] != "active":
        reason = f"the fabric manager is {state or 'in no known state'}"
        return say.failed(reason, state or "unknown", f"{_LOOK} on {rig}; then `systemctl restart {UNIT}`")
    say = Say(say.check, expected=driver, source="the loaded driver: NVIDIA asks for the very same version")
    if told.version is None:
        why = f": {told.reason}" if told.reason else ""
        return say.error(
            f"the fabric manager runs, and its version is not known{why}", f"`nv-fabricmanager --version` on {rig}"
        )
    if told.version != driver:
        reason = f"the fabric manager is of version {told.version}, the loaded driver of {driver}"
        return say.failed(reason, told.version, f"install both of one version on {rig}, and reboot it")
    return say.passed(f"the fabric manager runs, version {told.version} as the driver", told.version)
