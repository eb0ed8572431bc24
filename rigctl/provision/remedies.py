"""Failures that are known from the field: what they say, in a line, and what to do about them.

Roles name what they find out beforehand in words of their own. What apt, dpkg, DKMS or sudo say when it happens all
the same is recognised here by their texts. Sources: the public issues named with each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A failure that was recognised: what it is, and what to do."""

    said: str
    remedy: str


@dataclass(frozen=True)
class _Pattern:
    text: str
    """A regular expression; its named groups stand in the words."""
    said: str
    remedy: str


_PATTERNS = (
    # ansible/ansible#51663, ansible-lockdown/UBUNTU22-CIS#215, canonical/cloud-init#2908
    _Pattern(
        r"held by process (?P<pid>\d+)(?: \((?P<name>[^)]+)\))?",
        "something else installs packages: process {pid} ({name}) holds apt's lock",
        "wait until it has ended, or stop it on the rig: sudo systemctl stop unattended-upgrades apt-daily.timer "
        "apt-daily-upgrade.timer; then provision again",
    ),
    _Pattern(
        r"dpkg was interrupted|dpkg status database is locked|half-(?:configured|installed)",
        "dpkg was interrupted on this rig and has packages that are not configured",
        "on the rig: sudo dpkg --configure -a; then provision again",
    ),
    # NVIDIA/ansible-role-nvidia-driver#74, NVIDIA/cuda-repo-management#39
    _Pattern(
        r"Conflicting values set for option (?P<option>Signed-By|Trusted) regarding source (?P<source>\S+)",
        "two lists name the package source {source} with different values for {option}, so apt reads none",
        "on the rig: grep -rlF {source} /etc/apt/sources.list /etc/apt/sources.list.d; remove the list that is not "
        "nvidia-cuda.list, then provision again",
    ),
    # NVIDIA/nvidia-docker#1631
    _Pattern(
        r"(?:GPG error: (?P<source>\S+)[^|]*?)?NO_PUBKEY (?P<key>[0-9A-F]+)",
        "a package source is signed with the key {key}, which this rig does not have ({source})",
        "on the rig: remove its list from /etc/apt/sources.list.d (grep -rl says which), or install the key its "
        "owner publishes and name it there with signed-by; then provision again",
    ),
    # NVIDIA/cuda-repo-management#39
    _Pattern(
        r"Signing key on (?P<key>[0-9A-F]+) is not bound|SHA1 is not considered secure",
        "apt's signature check (sqv) no longer accepts SHA-1, with which the key {key} of a package source is signed",
        "install the key that the source's owner publishes now, and name it with signed-by; until there is one, take "
        "the source's list out of /etc/apt/sources.list.d on the rig; then provision again",
    ),
    _Pattern(
        r"repository '(?P<source>[^']+)' is (?:not signed|no longer signed)",
        "the package source {source} is not signed, so apt does not read it",
        "on the rig: remove its list from /etc/apt/sources.list.d, or install its key and name it with signed-by; "
        "then provision again",
    ),
    # NVIDIA/ansible-role-nvidia-driver#72
    _Pattern(
        r"Failed to fetch \S+ +(?:404|File not found|Failed to stat)",
        "the archive no longer has a package that the rig's package lists promise",
        "on the rig: sudo apt-get update; then provision again, which takes what the archive has now",
    ),
    _Pattern(
        r"(?:Could not connect to|Could not resolve|Cannot initiate the connection to|Temporary failure resolving) "
        r"'?(?P<source>[^\s']+)",
        "the package source {source} does not answer",
        "look at the network and at Acquire::http::Proxy on the rig (curl -I http://{source}); name a mirror that "
        "answers in /etc/apt/sources.list, then provision again",
    ),
    # Ansible's apt gives no reason where a source is out of reach.
    _Pattern(
        r"Failed to update apt cache after \d+ retries:\s*$",
        "a package source does not answer, so the package lists cannot be read",
        "on the rig: sudo apt-get update says which; look at the network and at Acquire::http::Proxy, or name a mirror "
        "that answers in /etc/apt/sources.list, then provision again",
    ),
    # microsoft/superbenchmark#561
    _Pattern(
        r"Missing sudo password|sudo: a password is required|Incorrect sudo password|"
        r"sudo password is (?:required|incorrect)",  # so Mitogen
        "sudo asks for a password on this rig",
        "provision with --ask-become-pass, keep ansible_become_password in a vault, or allow the user sudo without "
        "one (NOPASSWD in /etc/sudoers.d)",
    ),
    _Pattern(
        r"(?:(?P<place>/[^\s:|]+)[^|]*\|\s*)?[^|]*No space left on device",
        "a file system of the rig is full ({place})",
        "see which one on the rig: df -h / /boot; old kernels go with: sudo apt-get autoremove --purge; then "
        "provision again",
    ),
    _Pattern(
        r"base_offline_bundle: (?:The bundle (?:is for|lacks|is damaged)|The bundle's packages|/\S* must be)",
        "the bundle is of no use to this rig",
        "rigctl bundle DIR --verify says whether it is damaged; where there is a network, rigctl bundle DIR --from RIG "
        "makes it good or anew (docs/offline.md); then provision again",
    ),
    # pop-os/pop#3117, compiler-explorer/infra#1722, elementary/settings-system#333
    _Pattern(
        r"Bad return status for module build on kernel: (?P<kernel>\S+)(?:.*?Consult (?P<log>\S+) for)?",
        "the driver's module does not compile for the kernel {kernel}",
        "see {log} on the rig; choose a newer nvidia_driver_branch, or boot a kernel of the release's first series, "
        "then provision again",
    ),
    # linux-surface/linux-surface#906
    _Pattern(
        r"Key was rejected by service",
        "Secure Boot refused the driver's module",
        "turn Secure Boot off in the firmware, or enrol your key at the console: mokutil --import",
    ),
    _Pattern(
        r"Held packages were changed",
        "a held package stands in the way",
        "on the rig: apt-mark showhold; let the package go with apt-mark unhold NAME, then provision again",
    ),
    # apt says so of any dependency it cannot satisfy, held or not.
    _Pattern(
        r"held broken packages",
        "a held package, or a version from another source, stands in the way",
        "on the rig: apt-mark showhold; let the package go with apt-mark unhold NAME, or take the other source out of "
        "/etc/apt/sources.list.d; then provision again",
    ),
)
_UNSAID = "it is not said which"


def recognise(message: str) -> Known | None:
    """Return the known failure that a failed task's message tells of; None where none does."""
    for pattern in _PATTERNS:
        found = re.search(pattern.text, message, re.DOTALL)
        if found is not None:
            words = {key: (value or _UNSAID).rstrip(".,;") for key, value in found.groupdict().items()}
            return Known(pattern.said.format(**words), pattern.remedy.format(**words))
    return None
