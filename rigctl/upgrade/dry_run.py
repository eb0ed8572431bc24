"""`rigctl upgrade --dry-run`: what each rig has and would get, from where, and what stands in its way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from rigctl.bundling.make import size_words
from rigctl.errors import ExitCode, RigError
from rigctl.fleet.pool import for_each
from rigctl.model.upgrade import RigPlan
from rigctl.upgrade.port import StepFailed
from rigctl.upgrade.start import ports_for_plan

if TYPE_CHECKING:
    from rich.console import Console

    from rigctl.model.upgrade import Wishes
    from rigctl.upgrade.port import Drain, RigPort
    from rigctl.upgrade.start import UpgradeOptions


@dataclass(frozen=True)
class Planned:
    """The plans of a fleet; an error where a rig could not be asked."""

    rigs: tuple[tuple[str, RigPlan | RigError], ...]

    @property
    def exit_code(self) -> ExitCode:
        """1 where a rig would be refused, else 3 where one could not be asked, else 0."""
        plans = [plan for _, plan in self.rigs]
        if any(isinstance(plan, RigPlan) and plan.refusals for plan in plans):
            return ExitCode.FAILED
        return ExitCode.UNMEASURED if any(isinstance(plan, RigError) for plan in plans) else ExitCode.OK

    def as_json(self) -> dict[str, Any]:
        """Plain data, with the exit code."""
        rigs = [
            {"rig": rig, "error": plan.message, "hint": plan.hint}
            if isinstance(plan, RigError)
            else plan.model_dump(mode="json")
            for rig, plan in self.rigs
        ]
        return {"rigs": rigs, "exit_code": int(self.exit_code)}


def plan_fleet(options: UpgradeOptions) -> Planned:
    """Ask every rig at once what it would get; nothing is changed, and no run is made.

    Raises:
        UsageError: anything in the command or the inventory is wrong.
    """
    ports = ports_for_plan(options)
    rigs = [port.rig for port, _ in ports.values()]
    found = {
        one.rig.name: one.outcome for one in for_each(rigs, lambda rig: plan_rig(*ports[rig.name], options.wishes))
    }
    return Planned(tuple((name, found[name]) for name in ports))


def plan_rig(port: RigPort, drain: Drain, wishes: Wishes) -> RigPlan:
    """Ask a rig, and whatever hands work to it. Raises RigError where one of the two does not answer."""
    plan = port.plan(wishes)
    try:
        others = drain.look()
    except StepFailed as error:
        return plan.model_copy(update={"refusals": (*plan.refusals, f"{error.message} ({error.hint})")})
    stays = (f"drained by others ({others}): it stays so afterwards",) if others else ()
    return plan.model_copy(update={"busy": (*drain.jobs(), *port.users()), "breaks": (*plan.breaks, *stays)})


def print_plans(planned: Planned, to: Console) -> None:
    """A paragraph for each rig."""
    for rig, plan in planned.rigs:
        if isinstance(plan, RigError):
            to.print(Text.assemble(f"{rig} ", ("cannot be asked", "bold red"), f": {plan.message}"), soft_wrap=True)
            to.print(Text(f"  do: {plan.hint}", style="cyan"), soft_wrap=True)
        else:
            _print_plan(plan, to)


def _print_plan(plan: RigPlan, to: Console) -> None:
    word, style = ("refused", "bold red") if plan.refusals else ("ready", "green")
    if plan.nothing_to_do:
        word, style = "as asked", "green"
    changes = ", ".join(f"{name} {plan.has[name] or 'none'} → {value}" for name, value in plan.gets.items())
    origin = f" from {plan.source}" if plan.source else ""
    to.print(Text.assemble(f"{plan.rig} ", (word, style), f"  {changes}{origin}"), soft_wrap=True)
    if plan.packages:
        new, gone = (sum(not getattr(one, key) for one in plan.packages) for key in ("before", "version"))
        fetched = size_words(sum(one.bytes or 0 for one in plan.packages))
        to.print(f"  {len(plan.packages)} packages ({new} new, {gone} go), {fetched} to fetch", highlight=False)
        for one in plan.packages:
            to.print(f"    {one.name} {one.before or '—'} → {one.version or 'removed'}", highlight=False)
    if plan.reboot:
        to.print("  it is restarted once")
    for said in plan.breaks:
        to.print(Text(f"  {said}"), soft_wrap=True)
    for said in plan.refusals:
        to.print(Text(f"  {said}", style="red"), soft_wrap=True)
    if plan.busy:
        to.print(Text(f"  in use: {', '.join(plan.busy)}", style="yellow"), soft_wrap=True)
