"""Retention: telemetry of old runs is thinned and later dropped; what people read and sign is kept for ever."""

from rigctl.prune.carry_out import Done, Outcome, prune

__all__ = ["Done", "Outcome", "prune"]
