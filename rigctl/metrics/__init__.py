"""Metrics of rigs for Prometheus: from the index to a registry, a textfile and an endpoint; dashboard and rules."""

from rigctl.metrics.collect import registry_of
from rigctl.metrics.endpoint import Endpoint
from rigctl.metrics.families import FAMILIES, Family
from rigctl.metrics.seen import RigSeen, Seen, look
from rigctl.metrics.textfile import require_place, text, write_textfile

__all__ = [
    "FAMILIES",
    "Endpoint",
    "Family",
    "RigSeen",
    "Seen",
    "look",
    "registry_of",
    "require_place",
    "text",
    "write_textfile",
]
