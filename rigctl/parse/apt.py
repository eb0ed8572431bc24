"""What apt says of packages: `apt-cache policy`, and `apt search` or `apt list`.

A transitional package carries the version of the driver that it brings in, under another one's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rigctl.parse import ParseError

_POLICY, _SEARCH = "`apt-cache policy`", "`apt search`"
_NAME = re.compile(r"([a-z0-9][a-z0-9+.-]*(?::\w+)?):")
_INSTALLED = re.compile(r"  (Installed|Candidate): (\(none\)|\S+)")
_PIN = re.compile(r"  Package pin: \S+")
_TABLE = re.compile(r"  Version table:")
_VERSION = re.compile(r" (?:\*\*\*|   ) (\S+)(?: (-?\d{1,5}))?", re.ASCII)
_INDEX = re.compile(r" {8,}(-?\d{1,5}) (\S.*)", re.ASCII)
_FOUND = re.compile(r"([a-z0-9][a-z0-9+.-]*)/(\S+) (\S+) (\w+)(?: \[([^\]]*)\])?")
_TRANSITIONAL = re.compile(r"\(?[Tt]ransitional\b.*?(?:for|to) (\S+?)\)?\.?")
_WORDS = re.compile(r"(?:Sorting|Full Text Search|Listing)\.\.\..*|WARNING: apt does not have a stable CLI interface.*")


@dataclass
class Policy:
    """One package, as `apt-cache policy` tells it."""

    name: str
    installed: str | None = None
    candidate: str | None = None
    offers: dict[str, list[str]] | None = None
    """Version → the indexes that offer it (`http://… jammy/restricted amd64 Packages`)."""


@dataclass(frozen=True)
class Offer:
    """One package, as `apt search` tells it."""

    name: str
    suites: tuple[str, ...]
    """`unknown` is a repository that does not say which it is."""
    version: str
    installed: bool
    summary: str = ""

    @property
    def becomes(self) -> str | None:
        """The package that a transitional one brings in; None for a real one."""
        match = _TRANSITIONAL.fullmatch(self.summary)
        return match[1] if match else None


def parse_policy(text: str) -> tuple[Policy, ...]:
    """Read `apt-cache policy PACKAGE…`; a package that is not known is not printed.

    Raises ParseError with the first line of an unknown form, and where a package is not told whole.
    """
    packages: list[Policy] = []
    for line in filter(str.strip, text.splitlines()):
        if match := _NAME.fullmatch(line):
            packages.append(Policy(match[1]))
        elif not packages or not _of_package(packages[-1], line):
            raise ParseError(_POLICY, line)
    for package in packages:
        told = {package.installed, package.candidate} - {None}
        if package.offers is None or not told <= set(package.offers):
            raise ParseError(_POLICY, f"{package.name}: {package.installed}, {package.candidate}")
    return tuple(packages)


def _of_package(package: Policy, line: str) -> bool:
    """Take one line below a package's name; False for an unknown one."""
    if match := _INSTALLED.fullmatch(line):
        setattr(package, match[1].lower(), None if match[2] == "(none)" else match[2])
    elif _TABLE.fullmatch(line):
        package.offers = {}
    elif package.offers and (match := _INDEX.fullmatch(line)):
        package.offers[next(reversed(package.offers))].append(match[2])
    elif package.offers is not None and (match := _VERSION.fullmatch(line)):
        package.offers.setdefault(match[1], [])
    else:
        return bool(_PIN.fullmatch(line))
    return True


def parse_search(text: str) -> tuple[Offer, ...]:
    """Read `apt search` or `apt list`. Raises ParseError with the first line of an unknown form."""
    offers: list[Offer] = []
    for line in filter(str.strip, text.splitlines()):
        if match := _FOUND.fullmatch(line.rstrip()):
            state = match[5] or ""
            offers.append(Offer(match[1], tuple(match[2].split(",")), match[3], state.startswith("installed")))
        elif line.startswith("  ") and offers and not offers[-1].summary:
            last = offers.pop()
            offers.append(Offer(last.name, last.suites, last.version, last.installed, line.strip()))
        elif not _WORDS.fullmatch(line.strip()):
            raise ParseError(_SEARCH, line)
    return tuple(offers)
