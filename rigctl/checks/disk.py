"""Disks: their health by their own word, their size, how full they are, and how fast one file is written and read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rigctl.checks import load
from rigctl.checks.cards import FACTS_FIX
from rigctl.checks.say import Say
from rigctl.parse import ParseError, fio, nvme

if TYPE_CHECKING:
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import DiskFacts, FilesystemFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

STEP, RESULT = "disk", "disk.json"
ALIVE = "live"
"""How the kernel names an NVMe controller that works."""
BELIEVED_C = (-40, 150)
"""No disk that works is outside this, °C."""
LEAST_INODE_SHARE = 0.01
"""With fewer of its inodes free a file system is full, whatever room there is."""
MOST_GB = 1_000_000
"""No disk holds more, GB."""
MOST_MB_PER_S = 100_000
"""Several times what any disk does: more than this is no measurement."""
ACCEPTED_SHARE = 0.5
"""A disk gets slower as it fills, and its cache makes figures uneven; half of its own accepted figure is a fault."""
WAYS = ("write", "read")
_BACK_UP = "back up what is on it and replace the disk"
_TOOLS = "rigctl provision {rig} --tags cpu_burn installs nvme-cli; then `nvme smart-log /dev/{disk}` must answer there"


def health(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Each NVMe disk is alive, has spare blocks and endurance left, and lost no data, by its own word."""
    most = spec.limits.max_disk_used_pct
    say = Say("disk.health", expected=most, unit="% used", source=spec.source("limits.max_disk_used_pct"))
    facts = readings.facts
    if facts is None or facts.disks is None:
        return [say.error("the rig's disks were not listed", FACTS_FIX.format(rig=readings.rig))]
    if not facts.disks:
        return [say.blind("the kernel lists no disk that is built in")]
    return [_health(say.of(disk.name), spec, readings, disk, _known(disk, baseline)) for disk in facts.disks]


def _known(disk: DiskFacts, baseline: Baseline | None) -> nvme.NvmeHealth | None:
    """What the same disk said of itself at the accepted run; None where that is not known."""
    disks = baseline.facts.disks or () if baseline is not None else ()
    was = next((one for one in disks if disk.serial and one.serial == disk.serial), None)
    try:
        return None if was is None or was.smart_log is None else nvme.parse_json(was.smart_log)
    except ParseError:
        return None  # the run of then said so itself


def _health(say: Say, spec: RigSpec, readings: Readings, disk: DiskFacts, was: nvme.NvmeHealth | None) -> CheckVerdict:
    if disk.state not in (None, ALIVE):
        return say.failed(f"the kernel calls its controller {disk.state!r}", disk.state, f"reseat it; {_BACK_UP}")
    if not disk.name.startswith("nvme"):
        return say.blind("no NVMe disk; of others the health is not read")
    fix = _TOOLS.format(rig=readings.rig, disk=disk.name)
    if disk.smart_log is None:
        return say.error(f"its health was not read: {disk.smart_error or 'not asked'}", fix)
    try:
        now = nvme.parse_json(disk.smart_log)
    except ParseError as error:
        return say.error(str(error), fix)
    if why := _not_believed(now, was):
        return say.error(why, fix)
    return _worn(say, spec, now, was) or say.passed(_words(now), now.used_pct)


def _not_believed(now: nvme.NvmeHealth, was: nvme.NvmeHealth | None) -> str | None:
    if now.temp_c is not None and not BELIEVED_C[0] < now.temp_c < BELIEVED_C[1]:
        return f"it says that it is at {now.temp_c:g} °C"
    if was is not None and (now.power_on_hours < was.power_on_hours or now.media_errors < was.media_errors):
        return (
            f"its counters went back: {was.power_on_hours} → {now.power_on_hours} hours, "
            f"{was.media_errors} → {now.media_errors} media errors"
        )
    return None


def _worn(say: Say, spec: RigSpec, now: nvme.NvmeHealth, was: nvme.NvmeHealth | None) -> CheckVerdict | None:
    """What is wrong with it, the gravest first; None where nothing is."""
    if now.warnings:
        hot = nvme.WARNINGS[0x02]
        fix = "air or a heat sink for the disk" if now.warnings == (hot,) else _BACK_UP
        return say.failed(f"critical warning: {', '.join(now.warnings)}; {_words(now)}", now.used_pct, fix)
    if now.spare_pct < now.spare_threshold_pct:
        reason = f"{now.spare_pct} % of its spare blocks are left, its own threshold is {now.spare_threshold_pct} %"
        own = Say(say.check, say.subject, now.spare_threshold_pct, "% spare", "the disk itself")
        return own.failed(reason, now.spare_pct, _BACK_UP)
    most = spec.limits.max_disk_media_errors
    if now.media_errors > most and (was is None or now.media_errors > was.media_errors):
        own = Say(say.check, say.subject, most, "media errors", spec.source("limits.max_disk_media_errors"))
        grown = f", {now.media_errors - was.media_errors} since the accepted run" if was is not None else ""
        return own.failed(f"it lost data {now.media_errors} times (media errors){grown}", now.media_errors, _BACK_UP)
    if now.used_pct > spec.limits.max_disk_used_pct:
        reason = f"{now.used_pct} % of its endurance is used, {spec.limits.max_disk_used_pct:g} % is the limit"
        return say.failed(reason, now.used_pct, _BACK_UP)
    return None


def _words(now: nvme.NvmeHealth) -> str:
    heat = "" if now.temp_c is None else f", {now.temp_c:.0f} °C"
    lost = f"{now.media_errors} media errors" if now.media_errors else "no media error"
    return f"{now.used_pct} % of its endurance used, {now.spare_pct} % of its spare blocks left, {lost}{heat}"


def size(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """The largest disk is as large as declared."""
    least = spec.parts.min_disk_gb
    say = Say("disk.size", expected=least, unit="GB", source=spec.source("parts.min_disk_gb"))
    if least is None:
        return [say.skipped("the spec asks for no size")]
    facts = readings.facts
    if facts is None or facts.disks is None:
        return [say.error("the rig's disks were not listed", FACTS_FIX.format(rig=readings.rig))]
    largest = max(facts.disks, key=lambda disk: disk.size_gb, default=None)
    if largest is None:
        return [say.failed("the kernel lists no disk that is built in", 0, "look whether it is seated; BIOS, cable")]
    if not 0 < largest.size_gb <= MOST_GB:
        reason = f"{largest.name} tells no size: {largest.size_gb:,.0f} GB"
        return [say.error(reason, f"`lsblk` and the kernel log of {readings.rig}")]
    reason = f"{largest.name} {largest.model} has {largest.size_gb:,.0f} GB"
    if largest.size_gb < least:
        return [say.failed(f"{reason}, {least:,.0f} were declared", largest.size_gb, "the wrong disk, or one is gone")]
    return [say.passed(reason, largest.size_gb)]


def space(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """There is room where programs, readings and test files go."""
    least = spec.limits.min_disk_free_gb
    say = Say("disk.space", expected=least, unit="GB free", source=spec.source("limits.min_disk_free_gb"))
    facts = readings.facts
    if facts is None or not facts.filesystems:
        return [say.error("no file system was looked at", FACTS_FIX.format(rig=readings.rig))]
    return [_space(say.of(one.place), readings.rig, least, one) for one in facts.filesystems]


def _space(say: Say, rig: str, least: float, one: FilesystemFacts) -> CheckVerdict:
    if one.error is not None or one.free_gb is None:
        return say.error(f"it cannot be asked how full it is: {one.error or 'no figure'}", f"`df {one.place}` on {rig}")
    share = 1.0 if one.free_inode_share is None else one.free_inode_share
    if not (0 <= one.free_gb <= one.size_gb and 0 <= share <= 1):
        reason = f"{one.free_gb:g} GB free of {one.size_gb:g} GB, {share:.0%} of its inodes"
        return say.error(reason, f"`df {one.place}` and `df -i {one.place}` on {rig}")
    make_room = f"`du -xh --max-depth=3 {one.place} | sort -h | tail` on {rig} shows what fills it"
    if one.free_gb < least:
        reason = f"{one.free_gb:.2f} GB of {one.size_gb:.1f} GB are free, at least {least:g} GB were expected"
        return say.failed(reason, one.free_gb, make_room)
    if share < LEAST_INODE_SHARE:
        reason = f"{share:.1%} of its inodes are free: it can hold hardly another file"
        return say.failed(reason, share, f"`df -i {one.place}`; many small files: caches, logs, unpacked data sets")
    return say.passed(f"{one.free_gb:,.1f} GB of {one.size_gb:,.1f} GB are free", one.free_gb)


class _Told(BaseModel):
    """What the step wrote."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    directory: str = ""
    bytes: int = Field(default=0, ge=0)
    report: str | None = None
    error: str | None = None
    hint: str = ""


def speed(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """How fast fio writes one file and reads it again, past the kernel's cache."""
    say = Say("disk.speed", unit="MB/s")
    text = readings.logs.get(RESULT)
    if text is None:
        return [say.error(*load.why_no_load(readings, STEP))]
    look = f"look at {RESULT} and disk.log of {readings.rig} in the run directory"
    try:
        told = _Told.model_validate_json(text)
        if told.report is None:
            return [
                say.error(told.error or f"{RESULT} holds no report", told.hint.replace("RIG", readings.rig) or look)
            ]
        jobs = {job.name: job for job in fio.parse(told.report).jobs}
    except ValidationError as error:
        return [say.error(f"{RESULT} cannot be read: {error.errors()[0]['msg']}", look)]
    except ParseError as error:
        return [say.error(str(error), look)]
    return [_speed(_limited(say.of(way), spec, baseline), jobs.get(way), told, readings.rig) for way in WAYS]


def _limited(say: Say, spec: RigSpec, baseline: Baseline | None) -> Say:
    """Put the limit of one way in: the spec's, or else half of what the rig's accepted run has shown."""
    limits, way = spec.limits, say.subject
    asked = limits.min_disk_write_mb_per_s if way == "write" else limits.min_disk_read_mb_per_s
    accepted = baseline.figure(say.check, way) if baseline is not None else None
    if asked is None and accepted is not None:
        source = f"{ACCEPTED_SHARE:.0%} of {accepted:,.0f} MB/s in the rig's accepted run"
        return Say(say.check, way, accepted * ACCEPTED_SHARE, say.unit, source)
    return Say(say.check, way, asked, say.unit, spec.source(f"limits.min_disk_{way}_mb_per_s"))


def _speed(say: Say, job: fio.Job | None, told: _Told, rig: str) -> CheckVerdict:
    look = f"look at {RESULT} and the kernel log of {rig}"
    done = None if job is None else job.write if say.subject == "write" else job.read
    if job is not None and job.error:
        reason = f"fio met an error of the system (errno {job.error}) while it did {say.subject} {told.directory}"
        return say.failed(reason, f"errno {job.error}", f"kernel log and disk.health of {rig}: the disk may be dying")
    if done is None:
        return say.error(f"fio reports no {say.subject}", look)
    rate = done.bytes_per_s / 1e6
    if rate > MOST_MB_PER_S:
        return say.error(f"fio reports {rate:,.0f} MB/s", look)
    least = say.expected
    reason = f"{rate:,.0f} MB/s with a file of {told.bytes / 1e9:.2f} GB in {told.directory}"
    if not isinstance(least, float | int):
        return say.unlearned(reason, rate, rig)
    if rate < least:
        fix = "disk.health and disk.space first; then its slot's lanes, its heat sink, and who else uses it"
        return say.failed(f"{reason}, at least {least:,.0f} were expected", rate, fix)
    return say.passed(reason, rate)
