"""The image of simulated rigs: built once from the host's own packages, cached in podman's store by a hash."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rigctl.sim import hostroot
from rigctl.sim.cache import cache_dir, only_one
from rigctl.sim.machine.packages.build import DEFAULT_PLATFORM, definition
from rigctl.sim.podman import LABEL, LIMITS, Podman, PodmanFailed

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = "localhost/rigctl-sim"
ROOT_REPOSITORY = "localhost/rigctl-sim-root"
INIT = "/usr/local/lib/rigsim/init"
"""What a rig's container starts as PID 1."""

_BUILD_TIMEOUT_S = 1200
_STALE_S = 24 * 3600
"""After a build, older images are removed; younger ones may be what another run is about to start rigs from."""


@dataclass(frozen=True)
class Wish:
    """Which image is wanted."""

    platform: str = DEFAULT_PLATFORM
    world: str = ""
    """The archive whose packages are real ones, fetched when the image is built; empty: stand-ins."""
    base: str | None = None
    """An OCI image to start from instead of the host's packages; one of our own is taken as it is."""
    more: tuple[str, ...] = ()
    """Further packages that rigs can install."""

    @property
    def fetched(self) -> hostroot.Fetched:
        """What is fetched beside the common packages."""
        if not self.world:
            return hostroot.Fetched(self.more)
        archive = definition(self.platform)
        packages = archive["worlds"][self.world]["fetched"]
        return hostroot.Fetched((*self.more, *packages), tuple(archive["system"]["components"]))


def ensure_image(podman: Podman, wish: Wish, say: Callable[[str], None]) -> str:
    """Return the name of the rigs' image; build it when there is none for the present inputs.

    Args:
        podman: The podman to build with; its OCI runtime is chosen here.
        wish: What the image shall be.
        say: Called with one line for each step of a build.

    Raises:
        UsageError: the host lacks what a build needs.
        PodmanFailed: a build step failed.
    """
    with only_one("image"):
        if wish.base is not None and _is_ready(podman, wish.base):
            podman.choose_runtime(wish.base)
            return wish.base
        root = _ensure_root(podman, wish, say)
        podman.choose_runtime(root)
        image = f"{REPOSITORY}:{hostroot.tree_hash(hostroot.MACHINE, extra=f'{root}{wish.platform}{wish.world}')}"
        if not podman.image_exists(image):
            say(f"building the image of {wish.platform} rigs (once; about a minute)")
            _build(podman, root, image, wish, say)
            _remove_images(podman, keep={root, image}, older_than_s=_STALE_S)
        return image


def remove_images(podman: Podman) -> list[str]:
    """Remove every image of ours that no container uses; return their names."""
    with only_one("image"):
        return _remove_images(podman, keep=set(), older_than_s=0)


def _is_ready(podman: Podman, image: str) -> bool:
    if not podman.image_exists(image):
        return False
    return bool(podman.call("image", "inspect", "--format", f'{{{{index .Labels "{LABEL}.ready"}}}}', image).strip())


def _ensure_root(podman: Podman, wish: Wish, say: Callable[[str], None]) -> str:
    lists, base, offer = hostroot.package_lists(), wish.base, wish.fetched
    if base is not None:
        known = podman.image_exists(base)
        image_id = podman.call("image", "inspect", "--format={{.Id}}", base) if known else ""
        root = f"{ROOT_REPOSITORY}:{hostroot.tree_hash(extra=f'{base}{image_id}{lists}{offer.packages}')}"
        if not podman.image_exists(root):
            say(f"preparing {base} (once; needs the network)")
            _prepare_foreign(podman, base, root, [*lists["offered"], *offer.packages])
        return root
    release = hostroot.host_release()
    codename = release.rig_codename(wish.platform)
    root = f"{ROOT_REPOSITORY}:{hostroot.tree_hash(extra=f'{codename}{lists}{offer.packages}')}"
    if not podman.image_exists(root):
        say(f"fetching {codename} from this machine's own package sources (once; about a minute)")
        with tempfile.TemporaryDirectory(dir=cache_dir()) as folder:
            tar = Path(folder) / "root.tar"
            hostroot.build_tar(release, codename, tar, offer=offer)
            podman.call("import", "--quiet", f"--change=LABEL {LABEL}.root=1", str(tar), root, timeout_s=300)
    return root


def _prepare_foreign(podman: Podman, base: str, root: str, offered: list[str]) -> None:
    """Install what a rig needs into an image that somebody else made, through its own package sources."""
    installed = hostroot.package_lists()["installed"]
    script = (
        "set -eu; export DEBIAN_FRONTEND=noninteractive APT_CONFIG=/mnt/apt.conf; "
        "rm -f /etc/apt/apt.conf.d/docker-clean; apt-get update -q; "
        f"apt-get install -yq --no-install-recommends {' '.join(installed)}; apt-get clean; "
        f"apt-get install -yq --download-only --no-install-recommends {' '.join(offered)}; "
        "mkdir -p /srv/rigsim/pool/debian; mv /var/cache/apt/archives/*.deb /srv/rigsim/pool/debian/"
    )
    if not podman.image_exists(base):
        podman.call("pull", "--quiet", base, timeout_s=_BUILD_TIMEOUT_S)
    podman.choose_runtime(base)
    with tempfile.TemporaryDirectory(dir=cache_dir()) as folder:
        Path(folder).chmod(0o755)  # apt fetches as a user of its own
        # Only for as long as this container runs: nothing of the host's settings stays in the image.
        (Path(folder) / "apt.conf").write_text(hostroot.apt_settings(certificates="/mnt/host.crt"), encoding="utf-8")
        shutil.copy("/etc/ssl/certs/ca-certificates.crt", Path(folder) / "host.crt")
        _run_and_commit(podman, [f"--volume={folder}:/mnt:ro", base, "sh", "-c", script], root, kind="root")


def _build(podman: Podman, root: str, image: str, wish: Wish, say: Callable[[str], None]) -> None:
    options = ["--network=none", f"--volume={hostroot.MACHINE}:/mnt:ro"]
    options += [f"--env=RIGSIM_PLATFORM={wish.platform}", f"--env=RIGSIM_WORLD={wish.world}"]
    output = _run_and_commit(podman, [*options, root, "sh", "/mnt/image/build.sh"], image, kind="ready")
    for line in output.splitlines():
        if line.startswith("· "):
            say(line.removeprefix("· "))


def _run_and_commit(podman: Podman, run: list[str], image: str, *, kind: str) -> str:
    """Run a container (`run`: options, image, command) and keep what it leaves as `image`; return its output."""
    name = f"rigctl-sim-build-{image.rpartition(':')[2]}"
    podman.remove([name])
    try:
        output = podman.call("run", f"--name={name}", *LIMITS, *run, timeout_s=_BUILD_TIMEOUT_S)
        change = [f"--change=LABEL {LABEL}.{kind}=1", f'--change=CMD ["{INIT}"]']
        podman.call("commit", "--quiet", *change, name, image, timeout_s=600)
    finally:
        podman.remove([name])
    return output


def _remove_images(podman: Podman, keep: set[str], older_than_s: float) -> list[str]:
    """Remove images of ours, but for those in `keep`, younger ones, and ones that something still stands on."""
    removed = []
    for kind in ("ready", "root"):
        listed = json.loads(podman.call("images", "--format=json", f"--filter=label={LABEL}.{kind}=1"))
        old = [one for one in listed if time.time() - one["Created"] >= older_than_s]
        for name in {name for one in old for name in one.get("Names") or []} - keep:
            if not name.startswith(REPOSITORY):
                continue
            try:
                podman.call("image", "rm", name)
            except PodmanFailed:  # a container still uses it
                continue
            removed.append(name)
    return removed
