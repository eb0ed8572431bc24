"""Ansible's linear strategy carried by Mitogen, with the kernel's own choice of processors.

Mitogen ties its processes to processors by a scheme for sixteen of them. With fewer than four, Ansible's main process
and all its workers share one: a second provisioning of six rigs then took 22.6 s instead of 15.6 s on two processors,
a third of them idle. Ansible loads this file by its path (`rigctl.provision.mitogen`), where Mitogen is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_mitogen import affinity
from ansible_mitogen.loaders import strategy_loader
from ansible_mitogen.strategy import StrategyMixin

if TYPE_CHECKING:
    LinearStrategy = Any
else:
    LinearStrategy = strategy_loader.get("linear", class_only=True)

affinity.policy = affinity.Policy()


class StrategyModule(StrategyMixin, LinearStrategy):  # type: ignore[misc] # what Ansible loads has no types
    """One task after another over all rigs."""
