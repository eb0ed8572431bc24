"""What `dpkg-query -W` and `dpkg -l` say of packages, and the upstream version inside a Debian version."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rigctl.parse import ParseError

FORMAT = r"${Package}\t${Version}\t${db:Status-Status}\n"
"""The `-f` format that `parse` reads."""
_FIELDS = 3
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+(?::[a-z0-9]+)?")
_STATES = frozenset({
    "not-installed", "config-files", "half-installed", "unpacked", "half-configured", "triggers-awaited",
    "triggers-pending", "installed",
})  # fmt: skip
"""dpkg's own words for a package's state (dpkg-query(1))."""
_ROW = re.compile(r"([uihrp])([ncHUFWti])([ R])\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+(\S.*))?")
_HEAD = re.compile(r"Desired=.*|\| Status=.*|\|{1,2}/ (?:Err\?=.*|Name .*)|\+\+\+-.*")


@dataclass(frozen=True)
class Package:
    """One package that dpkg knows."""

    name: str
    version: str
    installed: bool
    """True also for a held one; False for one whose configuration files alone are left."""

    @property
    def upstream(self) -> str:
        """The version of the software itself.

        Without epoch and packaging revision. `515.76+really.515.65.01-0ubuntu0` is 515.65.01: Ubuntu once went back
        to an older driver under a version that sorts above the newer one.
        """
        return self.version.partition(":")[2 if ":" in self.version else 0].split("-")[0].split("+really.")[-1]


def parse(text: str) -> tuple[Package, ...]:
    """Read the output of `dpkg-query -W -f FORMAT`. Raises ParseError for a line of another form."""
    packages = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != _FIELDS or not _NAME.fullmatch(fields[0]) or fields[2] not in _STATES:
            raise ParseError("`dpkg-query -W`", line)
        name, version, status = fields
        packages.append(Package(name, version, status == "installed"))
    return tuple(packages)


def parse_list(text: str) -> tuple[Package, ...]:
    """Read `dpkg -l`. Raises ParseError for a line of another form.

    `ii` and, where it is held, `hi` are installed; `rc` is removed and has left its configuration. Long names are cut
    where dpkg thinks that it writes to a terminal.
    """
    packages = []
    for line in filter(str.strip, text.splitlines()):
        if _HEAD.fullmatch(line.rstrip()):
            continue
        match = _ROW.fullmatch(line.rstrip())
        if match is None:
            raise ParseError("`dpkg -l`", line)
        version = "" if match[5] == "<none>" else match[5]
        packages.append(Package(match[4].partition(":")[0], version, match[2] == "i"))
    return tuple(packages)
