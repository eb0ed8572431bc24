"""The ladder's lower half: what any change of packages needs. Pure: facts → what is seen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rigctl.doctor.finding import Seen, Step

if TYPE_CHECKING:
    from rigctl.doctor.facts import RigFacts

GIB = 1 << 30
MIB = 1 << 20
FRESH_ROOT_BYTES = 15 * GIB
"""Driver, CUDA 11.7 and PyTorch: 5.6 GB of toolkit, 4 GB of PyTorch with its libraries, their downloads."""
PROVISIONED_ROOT_BYTES = 2 * GIB
"""Package lists, one driver's packages, and the spool of a night."""
DEFAULT_INITRD_BYTES = 80 * MIB
"""Of an Ubuntu 22.04 with the driver in it, where /boot has none to measure."""
KNOWN_SYSTEMS = re.compile(r"(Ubuntu (22|24)\.04|Debian GNU/Linux 12)\b")
"""What PRETTY_NAME in os-release begins with; the role base refuses all others."""
MIN_FREE_FILES = 10_000
"""The header packages of one kernel alone hold 20,000 small files; below half of it nothing can be installed."""
MAX_CLOCK_OFFSET_S = 30.0
"""apt and TLS refuse what is not valid yet; kernel messages are matched to a burn by the clock."""


def system(facts: RigFacts) -> Seen:
    """Is it a system that the roles can change."""
    name = facts.system.system
    if facts.system.has_apt and KNOWN_SYSTEMS.match(name):
        return Seen(ok=True, found=name)
    return Seen(
        ok=False,
        found=f"{name}: not supported" if facts.system.has_apt else f"{name}: no apt",
        fix="install Ubuntu 22.04, Ubuntu 24.04 or Debian 12, or take it out of the inventory",
    )


def root_disk(facts: RigFacts) -> Seen:
    """Is there space where packages go."""
    needed = PROVISIONED_ROOT_BYTES if facts.has_driver else FRESH_ROOT_BYTES
    places = {place: space for place, space in facts.system.space.items() if place != "/boot"}
    for place, space in places.items():
        if space.read_only:
            return Seen(
                ok=False,
                found=f"{place} is mounted read-only",
                fix="look for I/O errors: journalctl -k -b | grep -iE 'ext4|nvme|I/O error'; then restart the rig",
            )
        wanted = needed if place == "/" else PROVISIONED_ROOT_BYTES
        if space.free_bytes < wanted:
            return Seen(
                ok=False,
                found=f"{place}: {_gib(space.free_bytes)} free, {_gib(wanted)} needed",
                fix="run there: apt-get clean; journalctl --vacuum-size=200M; du -xh --max-depth=2 / | sort -h | tail",
            )
        if space.free_files is not None and space.free_files < MIN_FREE_FILES:
            return Seen(
                ok=False,
                found=f"{place}: room for {space.free_files} more files only",
                fix="remove old kernels' headers: apt-get autoremove --purge",
            )
    return Seen(ok=True, found=", ".join(f"{place} {_gib(s.free_bytes)} free" for place, s in places.items()))


def boot_disk(facts: RigFacts) -> Seen:
    """Can /boot take two initial RAM disks, as an upgrade of the kernel writes them."""
    space = facts.system.space.get("/boot")
    if space is None:
        return Seen(ok=True, found="on /")
    needed = 2 * (facts.system.initrd_bytes or DEFAULT_INITRD_BYTES)
    if space.free_bytes >= needed:
        return Seen(ok=True, found=f"{_mib(space.free_bytes)} free")
    return Seen(
        ok=False,
        found=f"{_mib(space.free_bytes)} free, {_mib(needed)} needed for two initial RAM disks",
        fix="remove old kernels: apt-get autoremove --purge (dpkg -l 'linux-image-*' lists them)",
    )


def clock(facts: RigFacts) -> Seen:
    """Does the rig's clock agree with the controller's."""
    offset = facts.clock_offset_s
    if abs(offset) <= MAX_CLOCK_OFFSET_S:
        kept = "synchronised" if facts.system.clock_synchronised else "not synchronised by the rig itself"
        return Seen(ok=True, found=f"{offset:+.1f} s, {kept}")
    return Seen(
        ok=False,
        found=f"{offset:+.0f} s against this machine",
        fix="on the rig: timedatectl set-ntp true (and look at this machine's own clock)",
    )


def apt_lock(facts: RigFacts) -> Seen:
    """Is some program changing packages right now."""
    if facts.system.apt_locks:
        first = facts.system.apt_locks[0]
        who = f"process {first.pid} ({first.command[:80] or 'gone meanwhile'})"
        fix = f"wait until it has ended: tail --pid={first.pid} -f /dev/null; never delete the lock file"
        if facts.system.cloud_init == "running":
            fix = "wait for the first boot to end: cloud-init status --wait"
        return Seen(ok=False, found=f"{first.path} is held by {who}", fix=fix)
    if facts.system.cloud_init == "running":
        return Seen(
            ok=False, found="free, but cloud-init is still at the first boot", fix="run there: cloud-init status --wait"
        )
    return Seen(ok=True, found="free")


def packages(facts: RigFacts) -> Seen:
    """Is every package whole."""
    if not facts.system.half_done:
        return Seen(ok=True, found="whole")
    named = [line.split()[0] for line in facts.system.half_done.splitlines() if line.startswith(" ") and line.split()]
    return Seen(
        ok=False,
        found=f"dpkg was interrupted: {', '.join(named[:5]) or facts.system.half_done.splitlines()[0]}",
        fix="run there: dpkg --configure -a && apt-get -f install",
    )


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"


def _mib(size: int) -> str:
    return f"{size // MIB} MiB"


SYSTEM_STEPS: tuple[Step[RigFacts], ...] = (
    Step("system", system),
    Step("disk /", root_disk),
    Step("disk /boot", boot_disk),
    Step("clock", clock),
    Step("apt lock", apt_lock, ("system",)),
    Step("packages", packages, ("system", "disk /", "disk /boot", "apt lock")),
)
"""In order of cause."""
