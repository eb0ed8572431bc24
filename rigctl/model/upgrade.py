"""An upgrade of rigs in use: what is asked for, what each rig had before, and how each one ends. No I/O."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rigctl.errors import ExitCode


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Wishes(_Plain):
    """What the rigs are to have afterwards; None: as it is."""

    driver: str | None = None
    """Branch such as "535", or an exact version such as "535.129.03"."""
    cuda: str | None = None
    torch: str | None = None
    kernel: str | None = None
    """As `uname -r` prints it, such as "5.15.0-105-generic"."""

    @property
    def words(self) -> str:
        """For people, for a scheduler's reason and for the journal: `driver 535, cuda 12.2`."""
        return ", ".join(f"{name} {value}" for name, value in self if value is not None)


class SlurmDrain(_Plain):
    """Taken out of use and given back by Slurm's own `scontrol`."""

    kind: Literal["slurm"]
    node: str = ""
    """The rig's name in Slurm; empty: its name in the inventory."""
    where: Literal["rig", "controller"] = "rig"
    """Where `scontrol` and `squeue` run."""


class CommandDrain(_Plain):
    """Taken out of use and given back by commands of the site's own; each is called with the rig's name behind it."""

    kind: Literal["command"]
    drain: tuple[str, ...] = Field(min_length=1)
    """Returns once nothing new is started on the rig."""
    resume: tuple[str, ...] = Field(min_length=1)
    jobs: tuple[str, ...] = ()
    """Prints a line for each job that still runs on the rig; empty: nobody can be asked."""
    where: Literal["rig", "controller"] = "controller"


class NoDrain(_Plain):
    """Nothing hands work to this rig: only who is on it is waited for."""

    kind: Literal["none"] = "none"


DrainSpec = Annotated[SlurmDrain | CommandDrain | NoDrain, Field(discriminator="kind")]
"""The inventory's `rig_drain`."""


class Package(_Plain):
    """One package as dpkg knows it."""

    name: str
    version: str
    held: bool = False
    manual: bool = True
    """Asked for by somebody, not brought by another package alone."""


class Card(_Plain):
    """A card as it must be there again afterwards."""

    uuid: str
    place: str
    """The way down from its root port, which no other device shifts."""
    model: str
    pcie: str = ""
    """The most that its link can do, such as `gen4 x16`."""
    power_limit_w: float | None = None
    """The limit that it keeps to, W; None: it does not tell, or nobody asked."""
    persistence: bool | None = None
    """Whether its driver stays loaded while nobody uses it; None as above."""


class Capture(_Plain):
    """What a rig had before it was touched: it is compared with afterwards, and gone back to."""

    boot_id: str
    kernel: str
    loaded: str
    """Version of the loaded NVIDIA module; empty where none is."""
    packages: tuple[Package, ...]
    """Every package of the rig: compared whole after a rollback."""
    files: dict[str, str | None]
    """What the roles write (pins, module options, settings): path → base64 of the content; None: not there."""
    cards: tuple[Card, ...]
    links: tuple[str, ...] = ()
    """`slot1-slot2 NV4` and so on, as the rig showed them."""
    containers: tuple[str, ...] = ()
    """Containers that ran and start by themselves."""
    grub_saved: str | None = None
    """The menu entry that GRUB has saved; empty: there is none. None: nobody has looked."""
    inventory: str | None = None
    """What the rig's own file of upgrades in the inventory said; None: there was none."""


class PlannedPackage(_Plain):
    """One package of the transaction that is planned."""

    name: str
    version: str = ""
    """Empty: it goes."""
    before: str = ""
    """Empty: it is new."""
    bytes: int | None = None
    """How much is fetched; None where apt does not say."""


class RigPlan(_Plain):
    """What an upgrade would do to one rig; found without changing anything."""

    rig: str
    has: dict[str, str]
    """`driver`, `cuda`, `torch`, `kernel` → version as found; empty: there is none."""
    gets: dict[str, str]
    source: str = ""
    """Where the driver would come from."""
    packages: tuple[PlannedPackage, ...] = ()
    reboot: bool = False
    breaks: tuple[str, ...] = ()
    """What else goes along or no longer goes together, in sentences."""
    refusals: tuple[str, ...] = ()
    """Why the rig would be refused; empty: it can be upgraded."""
    busy: tuple[str, ...] = ()
    """Who uses it now; asked for `--dry-run` alone."""
    inventory: dict[str, str] = Field(default_factory=dict)
    """Role variables that the inventory does not say yet."""
    folders: tuple[str, ...] | None = None
    """What was built there and may be built anew; None, of a plan of earlier versions: all of it."""

    @property
    def nothing_to_do(self) -> bool:
        """Whether the rig, and the inventory of it, already are as asked."""
        same = self.has == {**self.has, **self.gets}
        return same and not self.refusals and not self.packages and not self.inventory


class Step(StrEnum):
    """The steps of one rig, in their order; each can be done again."""

    PREFLIGHT = "preflight"
    LOCK = "lock"
    CAPTURE = "capture"
    DRAIN = "drain"
    BEFORE = "before"
    """A smoke acceptance, to compare with."""
    RELEASE = "release"
    """What could have come since the plan is asked again, and what holds the cards is stopped."""
    CHANGE = "change"
    VERIFY = "verify"
    RESTORE = "restore"
    CHECK_RESTORED = "check_restored"
    RESUME = "resume"
    UNLOCK = "unlock"


FORWARD = (
    Step.PREFLIGHT, Step.LOCK, Step.CAPTURE, Step.DRAIN, Step.BEFORE, Step.RELEASE,
    Step.CHANGE, Step.VERIFY, Step.RESUME, Step.UNLOCK,
)  # fmt: skip
"""The way of a rig on which all goes well."""
UNDO = (Step.RESUME, Step.UNLOCK)
"""The way back while nothing has been changed yet."""
BACK = (Step.RESTORE, Step.CHECK_RESTORED, Step.RESUME, Step.UNLOCK)
"""The way back after the change began."""
FIRST_CHANGE = Step.CHANGE


class End(StrEnum):
    """How a rig ended."""

    UPGRADED = "upgraded"
    AS_ASKED = "as_asked"
    """It already was."""
    REFUSED = "refused"
    """Nothing was changed, it is in use as before."""
    ROLLED_BACK = "rolled_back"
    LEFT_DRAINED = "left_drained"
    """It could not be brought back; it stays out of use until a person has looked."""
    NOT_BEGUN = "not_begun"
    """The upgrade had stopped before its turn."""
    ABORTED = "aborted"
    """Taken back by `--abort`; as before."""
    UNFINISHED = "unfinished"
    """The controller was stopped in the middle: `--resume` or `--abort`."""


class RigEnd(_Plain):
    """How one rig ended, and why."""

    rig: str
    end: End
    reason: str = ""
    hint: str = ""
    step: Step | None = None
    """Where it failed."""


class Group(_Plain):
    """Rigs that are never out together: on one circuit, behind one switch."""

    name: str
    rigs: tuple[str, ...]


class Pace(_Plain):
    """How many rigs at once, in which order, and when to stop."""

    canary: str | None = None
    """None: the least busy rig."""
    max_unavailable: int = Field(default=1, ge=1)
    max_failures: int = Field(default=0, ge=0)
    """So many rigs may fail before nothing new is begun."""
    settle_s: float = Field(default=600, ge=0)
    """The wait after the canary, seconds."""

    @model_validator(mode="before")
    @classmethod
    def _canary_has_a_name(cls, given: object) -> object:
        if isinstance(given, dict) and given.get("canary") == "":
            message = "canary: name a rig"
            raise ValueError(message)
        return given


def exit_code(ends: tuple[RigEnd, ...]) -> ExitCode:
    """0 when every rig is as asked; 4 when a change did not complete on any of them."""
    complete = {End.UPGRADED, End.AS_ASKED}
    return ExitCode.OK if all(one.end in complete for one in ends) else ExitCode.CHANGE_INCOMPLETE
