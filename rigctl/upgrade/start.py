"""From the words of a command to a run that can be driven, now or by another controller later."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rigctl import compat
from rigctl.errors import UsageError
from rigctl.fleet.ssh import RigConnection
from rigctl.inventory import DEFAULT_INVENTORY, load_fleet, load_variables
from rigctl.model.run import RunRig
from rigctl.model.upgrade import NoDrain, Pace, Wishes
from rigctl.store import RunDir
from rigctl.upgrade.drain import drain_of, here, on
from rigctl.upgrade.inventory_file import NAME, InventoryFile
from rigctl.upgrade.journal import read_history
from rigctl.upgrade.machine import Machine, Rules
from rigctl.upgrade.order import max_unavailable
from rigctl.upgrade.planning import VARIABLES
from rigctl.upgrade.rig import SshRig
from rigctl.upgrade.run import Upgrade, how_busy
from rigctl.upgrade.settings import SETTINGS, drains_of, groups_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.rig import Rig
    from rigctl.model.upgrade import DrainSpec
    from rigctl.upgrade.drain import Shell
    from rigctl.upgrade.port import Drain

_DRIVER = re.compile(r"([0-9]{3})(\.[0-9][0-9A-Za-z.]*)?")
_KERNEL = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+-[0-9][0-9A-Za-z.+~]*(-[0-9a-z]+)+")
"""A release with its flavour, as the role `kernel` takes it."""


@dataclass(frozen=True)
class UpgradeOptions:
    """What was asked for."""

    wishes: Wishes
    inventory: Path | None = None
    runs: Path = Path("runs")
    rigs: str = "all"
    canary: str | None = None
    max_unavailable: str = "1"
    max_failures: int = 0
    settle_s: float = 600
    drain_limit_s: float = 3600
    rollback: bool = True
    evict_users: bool = False
    ignore_lock: bool = False

    @property
    def inventory_path(self) -> Path:
        """The inventory, absolute: another controller process may go on from elsewhere."""
        return (self.inventory or DEFAULT_INVENTORY).absolute()

    def as_asked(self) -> dict[str, Any]:
        """For run.json: everything that another controller needs."""
        return {
            "wishes": self.wishes.model_dump(mode="json"),
            "inventory": str(self.inventory_path),
            "rigs": self.rigs,
            "canary": self.canary,
            "max_unavailable": self.max_unavailable,
            "max_failures": self.max_failures,
            "settle_s": self.settle_s,
            "drain_limit_s": self.drain_limit_s,
            "rollback": self.rollback,
            "evict_users": self.evict_users,
            "ignore_lock": self.ignore_lock,
        }


def options_of(run: RunDir, runs: Path) -> UpgradeOptions:
    """Read what a run was asked to do."""
    asked = dict(run.read_info().asked)
    wishes, inventory = Wishes(**asked.pop("wishes")), Path(asked.pop("inventory"))
    return UpgradeOptions(wishes=wishes, inventory=inventory, runs=runs, **asked)


def check_wishes(wishes: Wishes) -> None:
    """Refuse, before any SSH, what no table knows.

    Raises:
        UsageError: nothing is wished, or a version does not exist; with the nearest ones.
    """
    if not wishes.words:
        raise UsageError(
            "nothing to upgrade to", "say --driver 535, --cuda 12.2, --torch 2.1.2 or --kernel 5.15.0-105-generic"
        )
    if wishes.driver is not None and not _DRIVER.fullmatch(wishes.driver):
        raise UsageError(
            f"--driver {wishes.driver!r} is no driver", "a branch such as 535, or a version such as 535.129.03"
        )
    if wishes.kernel is not None and not _KERNEL.fullmatch(wishes.kernel):
        raise UsageError(
            f"--kernel {wishes.kernel!r} is no kernel",
            "name it as `uname -r` does, such as 5.15.0-105-generic or 6.1.0-18-amd64",
        )
    branch = (wishes.driver or "").partition(".")[0]
    compat.look_up(compat.Asked(driver=branch, cuda=wishes.cuda or "", torch=wishes.torch or ""))


def begin(options: UpgradeOptions) -> Upgrade:
    """Check everything that can be checked without a rig, and make the run.

    Raises:
        UsageError: anything in the command or the inventory is wrong.
    """
    fleet = checked(options)
    for rig in fleet:
        InventoryFile(_folder(options), rig.name).require_room()
    variables = _variables(options, fleet)
    run = RunDir.create(
        options.runs, "upgrade", rigs=[RunRig(name=rig.name, spec=rig.spec) for rig in fleet], asked=options.as_asked()
    )
    return assembled(options, run, fleet, variables)


def checked(options: UpgradeOptions) -> tuple[Rig, ...]:
    """Check everything that can be checked without a rig, and return the rigs.

    Raises:
        UsageError: anything in the command or the inventory is wrong.
    """
    check_wishes(options.wishes)
    fleet = load_fleet(options.inventory, options.rigs)
    names = [rig.name for rig in fleet]
    classes = sorted({rig.rig_class for rig in fleet})
    if len(classes) > 1:
        raise UsageError(f"the rigs are of {len(classes)} classes: {', '.join(classes)}", "upgrade one class at a time")
    max_unavailable(options.max_unavailable, len(fleet))
    if options.canary is not None and options.canary not in names:
        raise UsageError(f"--canary {options.canary} is not among the rigs", f"choose one of {', '.join(names)}")
    return fleet


def ports_for_plan(options: UpgradeOptions) -> dict[str, tuple[SshRig, Drain]]:
    """Each rig's port and drain, for plans alone: no run is made. Raises UsageError, as `checked`."""
    fleet = checked(options)
    variables = _variables(options, fleet)
    folder, drains = _folder(options), _drains(fleet, variables)
    return {
        rig.name: (
            SshRig(
                rig, options.inventory_path, InventoryFile(folder, rig.name), options.runs, options.runs,
                variables[rig.name], variables[rig.name],
            ),
            drains[rig.name],
        )
        for rig in fleet
    }  # fmt: skip


def again(run: RunDir, runs: Path) -> Upgrade:
    """Take a run up where it was left.

    Raises:
        UsageError: its inventory is not what it was.
    """
    options = options_of(run, runs)
    fleet = load_fleet(options.inventory, ",".join(rig.name for rig in run.read_info().rigs))
    return assembled(options, run, fleet, _variables(options, fleet))


def assembled(
    options: UpgradeOptions, run: RunDir, fleet: Sequence[Rig], variables: dict[str, dict[str, Any]]
) -> Upgrade:
    """Put a run's parts together: ports, drains, pace and what the journal knows."""
    without = _without_own_files(options, _pattern(fleet), variables)
    known = read_history(run.journal_entries())
    rules = Rules(
        wishes=options.wishes,
        rollback=options.rollback,
        evict_users=options.evict_users,
        ignore_lock=options.ignore_lock,
        drain_limit_s=options.drain_limit_s,
    )
    machines, drains = {}, _drains(fleet, variables)
    for rig in fleet:
        own = InventoryFile(_folder(options), rig.name)
        values = variables[rig.name]
        port = SshRig(
            rig, options.inventory_path, own, options.runs, run.path, values, without[rig.name], options.evict_users
        )
        machines[rig.name] = Machine(rig.name, rules, run, port, drains[rig.name])
        if rig.name in known:
            machines[rig.name].history = known[rig.name]
    pace = Pace(
        canary=options.canary,
        max_unavailable=max_unavailable(options.max_unavailable, len(fleet)),
        max_failures=options.max_failures,
        settle_s=options.settle_s,
    )
    return Upgrade(run, machines, pace, groups_of(variables), partial(how_busy, machines))


def _pattern(fleet: Sequence[Rig]) -> str:
    return ",".join(rig.name for rig in fleet)


def _variables(options: UpgradeOptions, fleet: Sequence[Rig]) -> dict[str, dict[str, Any]]:
    """What the inventory says of each rig that bears on an upgrade; its settings of upgrades are checked.

    Raises:
        UsageError: one of them is wrong.
    """
    variables = load_variables(options.inventory, _pattern(fleet), (*VARIABLES, *SETTINGS))
    drains_of(variables)
    groups_of(variables)
    return variables


def _drains(fleet: Sequence[Rig], variables: dict[str, dict[str, Any]]) -> dict[str, Drain]:
    specs = drains_of(variables)
    return {rig.name: drain_of(specs[rig.name], rig.name, shell_of(rig, specs[rig.name])) for rig in fleet}


def shell_of(rig: Rig, spec: DrainSpec) -> Shell:
    """Where the scheduler's commands run: here, or on the rig over a connection of their own."""
    if isinstance(spec, NoDrain) or spec.where == "controller":
        return here

    def there(words: Sequence[str]) -> tuple[int, str, str]:
        connection = RigConnection(rig.login, rig.name)
        try:
            connection.connect()
            return on(connection)(words)
        finally:
            connection.close()

    return there


def _folder(options: UpgradeOptions) -> Path:
    path = options.inventory_path
    return path if path.is_dir() else path.parent


def _without_own_files(
    options: UpgradeOptions, pattern: str, variables: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The role variables as they would hold if no upgrade had ever written a file; a copy of the inventory tells."""
    folder = _folder(options)
    if not any((folder / "host_vars" / rig / NAME).is_file() for rig in variables):
        return variables
    with tempfile.TemporaryDirectory(prefix="rigctl-inventory-") as place:
        copy = Path(place) / "inventory"
        shutil.copytree(folder, copy, symlinks=False, ignore=shutil.ignore_patterns(NAME, "runs", ".git"))
        path = options.inventory_path
        return load_variables(copy if path.is_dir() else copy / path.name, pattern, VARIABLES)
