"""Is the controller fit, and is each rig reachable and fit; each finding with its fix. Nothing is changed here.

A ladder in order of cause: the first broken step is named, what only follows from it is left out.
"""

from rigctl.doctor.controller import RIGS_NEED, examine_controller
from rigctl.doctor.finding import CONTROLLER, Finding, LeftOut, RigExamination
from rigctl.doctor.rig import examine_rigs
from rigctl.doctor.trust import trust_rig

__all__ = [
    "CONTROLLER",
    "RIGS_NEED",
    "Finding",
    "LeftOut",
    "RigExamination",
    "examine_controller",
    "examine_rigs",
    "trust_rig",
]
