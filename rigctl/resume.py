"""Take an acceptance up where another controller left it: what was asked is in the run, the logins in the inventory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rigctl.accept import AcceptOptions, refuse_finished
from rigctl.errors import UsageError
from rigctl.inventory import load_fleet
from rigctl.measure.claim import Claim
from rigctl.store import RunDir

if TYPE_CHECKING:
    from rigctl.model.rig import Rig
    from rigctl.model.run import RunInfo


def take_up(
    runs: Path, run_id: str, inventory: Path | None = None, *, wait: bool = True
) -> tuple[AcceptOptions, RunDir]:
    """Return a run and what is to be done with it: judged by the spec and the profile that it began with.

    Args:
        runs: The folder of runs.
        run_id: The run's id, path, or `latest`.
        inventory: Where its rigs are reached now; None: where they were when it began.
        wait: Whether plans that go on alone are waited for.

    Raises:
        UsageError: there is no such run, it is damaged or finished, or the inventory has not all of its rigs any more.
    """
    run = RunDir.open(runs, run_id, kind="accept")
    refuse_finished(run)  # before its lock is taken: what holds one counts as left
    info = run.read_info()
    asked = info.asked
    rigs = _as_it_began(info, inventory or (Path(asked["inventory"]) if asked.get("inventory") else None))
    claim = Claim(evict_users=asked.get("evict_users") is True, ignore_lock=asked.get("ignore_lock") is True)
    own = tuple(Path(folder) for folder in asked.get("acceptance_tests", ()))
    return AcceptOptions(rigs, info.profile, runs, asked, acceptance_tests=own, claim=claim, wait=wait, again=True), run


def _as_it_began(info: RunInfo, inventory: Path | None) -> tuple[Rig, ...]:
    names = [rig.name for rig in info.rigs]
    reached = {rig.name: rig for rig in load_fleet(inventory, ",".join(names))}
    if missing := [name for name in names if name not in reached]:
        raise UsageError(
            f"run {info.run_id} has rigs that the inventory does not know: {', '.join(missing)}",
            "name the inventory that has them: -i INVENTORY",
        )
    return tuple(
        reached[rig.name].model_copy(
            update={
                "spec": rig.spec,
                "profiles": {info.profile: rig.profile} if rig.profile is not None else {},
                "waivers": rig.waivers,
            }
        )
        for rig in info.rigs
    )
