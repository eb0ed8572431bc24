"""Drive the playbooks: events become progress per rig, the log and the outcome go into a run directory."""

from rigctl.provision.outcome import ProvisionOutcome, RigProvision
from rigctl.provision.progress import ProvisionProgress
from rigctl.provision.run import ProvisionOptions, attempt, provision

__all__ = ["ProvisionOptions", "ProvisionOutcome", "ProvisionProgress", "RigProvision", "attempt", "provision"]
