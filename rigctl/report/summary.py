"""What a record says, ordered for people: causes first, each with what follows from it; what was not tested."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.model.verdict import WORST_FIRST, CheckVerdict, RigRecord, Verdict, worst
from rigctl.report.text import plain, several

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rigctl.model.verdict import Record

BAD = (Verdict.FAIL, Verdict.ERROR)
UNTESTED = (Verdict.ERROR, Verdict.BLIND, Verdict.SKIP)
SHOWN = 3
"""How many names of a list are shown before `and N more`."""


@dataclass(frozen=True)
class Cause:
    """A verdict that needs somebody, and those that follow from it."""

    rig: str
    verdict: CheckVerdict
    follows: tuple[CheckVerdict, ...] = ()

    @property
    def where(self) -> str:
        """The rig, and the card or pair where it is not the whole rig: `rig2 slot2 (…a91f)`."""
        subject = plain(self.verdict.subject)
        return plain(self.rig) if subject == "rig" else f"{plain(self.rig)} {subject}"

    @property
    def sentence(self) -> str:
        """What was seen, in one sentence."""
        return plain(self.verdict.reason)


@dataclass(frozen=True)
class Follow:
    """Consequences of one cause with one reason, told together."""

    verdict: Verdict
    reason: str
    checks: tuple[str, ...]
    """`check` of a whole rig, `check slot2 (…a91f)` of a part."""


@dataclass(frozen=True)
class Untested:
    """What a run does not vouch for, for one reason."""

    verdict: Verdict
    reason: str
    checks: tuple[str, ...]
    where: tuple[str, ...]


def verdicts(rig: RigRecord) -> tuple[CheckVerdict, ...]:
    """Return the rig's verdicts; a rig without any gets the error that its verdict already is."""
    if rig.verdicts:
        return rig.verdicts
    return (
        CheckVerdict(
            check="measure.reached",
            subject="rig",
            verdict=Verdict.ERROR,
            reason="no check gave a verdict on this rig",
            fix="accept this rig again; `--debug` shows what went wrong",
        ),
    )


def rig_verdict(rig: RigRecord) -> Verdict:
    """Return the verdict on the whole rig for people: what could not be seen does not outweigh what passed."""
    decides = worst(v.verdict for v in verdicts(rig))
    passed = any(v.verdict is Verdict.PASS for v in verdicts(rig))
    return Verdict.PASS if passed and decides in (Verdict.BLIND, Verdict.SKIP) else decides


def rig_counts(rig: RigRecord) -> dict[str, int]:
    """Return how many verdicts of each kind the rig has."""
    return dict(Counter(v.verdict.value for v in verdicts(rig)))


def causes(rig: RigRecord) -> tuple[Cause, ...]:
    """Return the rig's causes, worst first. Every failed or unmeasured verdict is in exactly one of them."""
    known = {v.key: v for v in verdicts(rig)}
    roots: dict[str, CheckVerdict] = {}
    follows: defaultdict[str, list[CheckVerdict]] = defaultdict(list)
    for verdict in verdicts(rig):
        if verdict.verdict not in BAD:
            continue
        root = _root(verdict, known)
        roots[root.key] = root
        if root is not verdict:
            follows[root.key].append(verdict)
    found = [Cause(rig.name, root, tuple(_worst_first(follows[key]))) for key, root in roots.items()]
    return tuple(sorted(found, key=lambda c: (_rank(c), -len(c.follows))))


def follows_together(cause: Cause) -> list[Follow]:
    """Return what follows from a cause, equal reasons together, so that one lost rig is not forty lines."""
    groups: defaultdict[tuple[Verdict, str], list[str]] = defaultdict(list)
    for v in cause.follows:
        subject = plain(v.subject)
        groups[v.verdict, plain(v.reason)].append(plain(v.check) + ("" if subject == "rig" else f" {subject}"))
    return [Follow(verdict, reason, tuple(checks)) for (verdict, reason), checks in groups.items()]


def warnings_apart(record: Record) -> list[Cause]:
    """Return the warnings that no failure follows from; those stand with their failure."""
    told = {(c.rig, c.verdict.key) for c in all_causes(record)}
    found = [Cause(rig.name, v) for rig, v in of_verdict(record, Verdict.WARN)]
    return [c for c in found if (c.rig, c.verdict.key) not in told]


def all_causes(record: Record) -> tuple[Cause, ...]:
    """Return the causes of all rigs, worst first."""
    return tuple(sorted((c for rig in record.rigs for c in causes(rig)), key=_rank))


def rigs_worst_first(record: Record) -> list[RigRecord]:
    """Return the rigs, those that need somebody first."""
    return sorted(record.rigs, key=lambda r: WORST_FIRST.index(r.verdict))


def of_verdict(record: Record, kind: Verdict) -> list[tuple[RigRecord, CheckVerdict]]:
    """Return every verdict of one kind with its rig."""
    return [(rig, v) for rig in record.rigs for v in verdicts(rig) if v.verdict is kind]


def waived(record: Record) -> list[Cause]:
    """Return the accepted deviations with their rigs."""
    return [Cause(rig.name, v) for rig, v in of_verdict(record, Verdict.WAIVED)]


def waivers_said(record: Record) -> str:
    """Return how many verdicts are waived, and when the first waiver ends: `2 waived checks, first until 3 Dec`."""
    accepted = [one.verdict for one in waived(record)]
    ends = [v.waived_until for v in accepted if v.waived_until is not None]
    first = f", first until {min(ends).day} {min(ends):%b}" if ends else ""
    return several(len(accepted), "waived check") + first


def untested(record: Record) -> list[Untested]:
    """Return what was not tested and why, errors first: one check on many rigs together, many checks of one rig too."""
    places: defaultdict[tuple[Verdict, str, str], list[str]] = defaultdict(list)
    for rig in record.rigs:
        for v in verdicts(rig):
            if v.verdict in UNTESTED:
                places[v.verdict, plain(v.reason), plain(v.check)].append(Cause(rig.name, v).where)
    checks: defaultdict[tuple[Verdict, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (verdict, reason, check), where in places.items():
        checks[verdict, reason, tuple(where)].append(check)
    found = [Untested(verdict, reason, tuple(names), where) for (verdict, reason, where), names in checks.items()]
    return sorted(found, key=lambda u: (UNTESTED.index(u.verdict), u.checks))


def tally(record: Record) -> Counter[str]:
    """Return how many rigs `failed`, were `unmeasured`, are `ok`."""
    name = {Verdict.FAIL: "failed", Verdict.ERROR: "unmeasured"}
    return Counter(name.get(rig.verdict, "ok") for rig in record.rigs)


def headline(record: Record) -> str:
    """Return the verdict on the fleet in a sentence without its cause."""
    total, numbers = len(record.rigs), tally(record)
    if not total:
        return f"No rig was measured: {busy_said(record)}" if record.busy else "No rig was measured"
    parts = []
    if numbers["failed"]:
        parts.append(f"{numbers['failed']} of {several(total, 'rig')} failed")
    if numbers["unmeasured"]:
        amount = (
            several(numbers["unmeasured"], "rig") if parts else f"{numbers['unmeasured']} of {several(total, 'rig')}"
        )
        parts.append(f"{amount} could not be measured")
    if parts:
        return ", ".join(parts)
    warned = len(of_verdict(record, Verdict.WARN))
    passed = "The rig passed" if total == 1 else f"{total} of {total} rigs passed"
    return f"{passed}, with {several(warned, 'warning')}" if warned else passed


def busy_said(record: Record) -> str:
    """Return how many rigs were left out because somebody uses them: `2 rigs busy`; empty where none was."""
    return f"{several(len(record.busy), 'rig')} busy" if record.busy else ""


def some(names: tuple[str, ...]) -> str:
    """Return the first few names, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:SHOWN])} and {more} more"


def simulated(record: Record) -> list[str]:
    """Return the names of the rigs that say of themselves that they are simulated."""
    return [plain(rig.name) for rig in record.rigs if rig.simulated]


def _root(verdict: CheckVerdict, known: dict[str, CheckVerdict]) -> CheckVerdict:
    """Follow `caused_by` to its start; a name that nobody has, or a circle, ends the way where it is met."""
    seen = {verdict.key}
    at = verdict
    while at.caused_by is not None and at.caused_by in known:
        if at.caused_by in seen:
            return verdict
        seen.add(at.caused_by)
        at = known[at.caused_by]
    return at


def _worst_first(many: Iterable[CheckVerdict]) -> list[CheckVerdict]:
    return sorted(many, key=lambda v: WORST_FIRST.index(v.verdict))


def _rank(cause: Cause) -> int:
    """Rank a cause by the worst of all that it brought: a warning from which a failure follows is no small thing."""
    return min(WORST_FIRST.index(v.verdict) for v in (cause.verdict, *cause.follows))
