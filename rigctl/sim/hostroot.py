"""Build the root file system of simulated rigs from the host's own package sources, without a container registry."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rigctl.errors import UsageError

MACHINE = Path(__file__).parent / "machine"
"""Everything that goes into a rig's image."""

_RELEASES = {
    "ubuntu": {"ubuntu-22.04": "jammy", "ubuntu-24.04": "noble"},
    "debian": {"ubuntu-22.04": "bookworm", "ubuntu-24.04": "bookworm", "debian-12": "bookworm"},
}
"""Host distribution → platform → the release that its rigs get: the true one, or Debian 12 with Ubuntu's identity."""

_KEYRINGS = {
    "ubuntu": "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
    "debian": "/usr/share/keyrings/debian-archive-keyring.gpg",
}
_POCKETS = ("", "-updates", "-security")

_FETCH = 'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get install --yes --download-only --no-install-recommends'
_FORGET = 'cd "$1/etc" && rm -rf apt/sources.list apt/sources.list.d/* apt/apt.conf.d/99mmdebstrap resolv.conf hostname'
"""Shell lines of mmdebstrap's hooks: fetch packages for later, take the host's own settings out again."""


@dataclass(frozen=True)
class HostRelease:
    """What the host is, as far as it decides what its rigs can be."""

    distribution: str
    """`debian` or `ubuntu`."""
    codename: str
    """The host's own release, such as `bookworm`."""

    def rig_codename(self, platform: str) -> str:
        """Return the release that is installed in rigs of a platform.

        Raises:
            UsageError: rigs of this platform cannot be built from the host's packages.
        """
        own = _RELEASES[self.distribution]
        if platform not in own:
            raise UsageError(
                f"rigs of {platform} cannot be built from the packages of this {self.distribution.capitalize()} host",
                f"choose one of: {', '.join(own)}; or give an image, such as --image {platform.replace('-', ':')}",
            )
        return own[platform]


@dataclass(frozen=True)
class Fetched:
    """What comes into the root beside `packages.json`, for rigs to install."""

    packages: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    """Parts of the archive that the host itself does not use, such as `non-free`."""


def host_release(os_release: Path = Path("/etc/os-release")) -> HostRelease:
    """Read what the host is.

    Raises:
        UsageError: it is neither Debian nor Ubuntu, so no rig can be built from its package sources.
    """
    fields = {}
    for line in os_release.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        fields[key] = value.strip().strip('"')
    names = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    distribution = next((name for name in names if name in _RELEASES), None)
    if distribution is None:
        raise UsageError(
            f"rigs are built from the packages of a Debian or Ubuntu host; this one is {fields.get('PRETTY_NAME')}",
            "give a ready image: rigctl sim up --image ubuntu:22.04",
        )
    codename = fields.get("UBUNTU_CODENAME") or fields.get("VERSION_CODENAME", "")
    return HostRelease(distribution, codename)


def package_lists() -> dict[str, list[str]]:
    """Return which real packages every rig has (`installed`) and which it can install (`offered`)."""
    lists: dict[str, list[str]] = json.loads((MACHINE / "image" / "packages.json").read_text(encoding="utf-8"))
    return {key: value for key, value in lists.items() if isinstance(value, list)}


def sources(release: HostRelease, codename: str, more_components: tuple[str, ...] = ()) -> str:
    """Return an apt source list for the rig's release `codename`, from the addresses the host itself uses.

    Raises:
        UsageError: apt knows no source of the host's own distribution.
    """
    form = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)"
    command = ["apt-get", "indextargets", "--format", form, "Created-By: Packages"]
    targets = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.splitlines()
    suites = {release.codename + pocket: codename + pocket for pocket in _POCKETS}
    components: dict[tuple[str, str], set[str]] = {}
    for target in targets:
        uri, suite, component, origin = target.split("|")
        own = origin in ("", release.distribution.capitalize()) or origin.startswith("$")
        if own and suite in suites:
            components.setdefault((uri, suites[suite]), set(more_components)).add(component)
    if not components:
        raise UsageError(
            f"apt names no package source for {release.distribution} {release.codename}",
            "see 'apt-get indextargets'; /etc/apt/sources.list or sources.list.d must name the host's own archive",
        )
    keyring = _KEYRINGS[release.distribution]
    signed = f"[signed-by={keyring}] " if Path(keyring).exists() else ""
    return "".join(f"deb {signed}{uri} {suite} {' '.join(sorted(set_))}\n" for (uri, suite), set_ in components.items())


def build_tar(release: HostRelease, codename: str, tar: Path, *, offer: Fetched) -> None:
    """Write the rig's root file system to `tar`; the packages a rig can install lie in /srv/rigsim/pool/debian.

    Args:
        release: What the host is.
        codename: What to install.
        tar: The file to write.
        offer: Further packages that rigs can install, beside those in `packages.json`.

    Raises:
        UsageError: mmdebstrap is not installed or failed (its last lines are in the message).
    """
    if shutil.which("mmdebstrap") is None:
        raise UsageError(
            "building the rigs' image needs mmdebstrap, and it is not installed",
            "install it: apt-get install mmdebstrap (or: make setup)",
        )
    lists = package_lists()
    offered = [*lists["offered"], *offer.packages]
    source_list = tar.with_suffix(".list")
    source_list.write_text(sources(release, codename, offer.components), encoding="utf-8")
    command = [
        "mmdebstrap",
        "--variant=minbase",
        "--quiet",
        f"--include={','.join(lists['installed'])}",
        *[f"--aptopt={line}" for line in _apt_options()],
        # Fetched while there is a network; on the rig they come from a local repository. apt runs on the host, so a
        # private certificate authority or a proxy of the host works and leaves no trace in the image.
        f"--customize-hook={_FETCH} {' '.join(offered)}",
        '--customize-hook=mkdir -p "$1/srv/rigsim/pool/debian"',
        '--customize-hook=mv "$1"/var/cache/apt/archives/*.deb "$1/srv/rigsim/pool/debian/"',
        f"--customize-hook={_FORGET}",
        codename,
        str(tar),
        str(source_list),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode != 0:
        last = [line for line in done.stderr.splitlines() if line.strip()][-6:]
        raise UsageError(
            f"mmdebstrap could not build the rigs' root ({' / '.join(last)})",
            "does 'apt-get update' work on this machine? Else give a ready image: rigctl sim up --image ubuntu:22.04",
        )


def tree_hash(*folders: Path, extra: str = "") -> str:
    """Return a hash over the names, modes and contents of all files in `folders`, and over `extra`."""
    digest = hashlib.sha256(extra.encode())
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                mode = "x" if path.stat().st_mode & 0o100 else "-"
                digest.update(f"\0{path.relative_to(folder)}\0{mode}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def apt_settings(certificates: str) -> str:
    """Return an apt configuration file with the host's own settings, and its authorities' file at `certificates`."""
    return "\n".join([*_apt_options(), f'Acquire::https::CaInfo "{certificates}";']) + "\n"


def _apt_options() -> list[str]:
    """Return the host's apt settings that decide whether downloads work: proxies, certificates, retries, dates."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, timeout=60, check=False).stdout
    wanted = (
        "Acquire::http",
        "Acquire::https",
        "Acquire::Retries",
        "Acquire::Check-Valid-Until",
        "Acquire::Check-Date",
    )
    return [line for line in dump.splitlines() if line.startswith(wanted) and not line.endswith('"";')]
