"""What HTML and PDF of a certificate say alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.report.text import counts, moment

if TYPE_CHECKING:
    from rigctl.model.certificate import Statement


def heading(stated: Statement) -> str:
    """The certificate in one sentence."""
    held = "passed every check" if set(stated.counts) <= {"pass", "skip"} else "was accepted"
    return f"{stated.rig} {held} on {moment(stated.ended_at):%-d %B %Y}: {counts(stated.counts)}"


def rows(stated: Statement) -> list[tuple[str, str]]:
    """What was done, by what, when."""
    began, ended = moment(stated.started_at), moment(stated.ended_at)
    return [
        ("Rig", f"{stated.rig} (class {stated.rig_class})"),
        ("Machine", {True: "simulated", False: "real", None: "not known"}[stated.simulated]),
        ("Run", f"{stated.run_id}, profile {stated.profile}"),
        ("Measured", f"{began:%-d %B %Y, %H:%M} to {ended:%H:%M} UTC by rigctl {stated.measured_by}"),
        ("Certified", f"{moment(stated.certified_at):%-d %B %Y, %H:%M} UTC by rigctl {stated.certified_by}"),
        *[(name, value) for name, value in stated.machine if value != "not known"],
    ]
