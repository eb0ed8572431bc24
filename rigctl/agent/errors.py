"""What the agent cannot do, with the remedy; leaves the rig as `{"error": …, "hint": …}`."""

from __future__ import annotations


class AgentError(Exception):
    """An error that the controller shows to people."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NvmlUnavailable(AgentError):
    """NVML could not be started; `message` is in NVML's own words."""


class TooSlow(AgentError):
    """The rig did not answer in time: what became of it is unknown, and the same may be asked again."""


class Busy(AgentError):
    """Somebody uses this rig, people or another run: it is left alone, which is no fault of it."""


class ToolMissing(AgentError):
    """A load step lacks what it puts to work; `needs` names it: `gpu_burn`, `stress_ng`, `torch`, `gpu`."""

    def __init__(self, needs: str, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.needs = needs
