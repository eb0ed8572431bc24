"""What a bundle holds: `bundle.json`, written last, so that a folder with it is whole."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from rigctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

NAME = "bundle.json"
SCHEMA_VERSION = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Platform(_Part):
    """The kind of rig that the bundle is for."""

    id: str
    version: str
    architecture: str
    python: str


class File(_Part):
    """One file of the bundle."""

    path: str
    """Relative to the bundle."""
    size: int
    sha256: str
    package: str = ""
    """For a package: its name, else empty."""
    version: str = ""


class SystemPart(_Part):
    """The packages that the roles rely on, with all that they need."""

    packages: tuple[str, ...]
    files: tuple[str, ...]


class DriverPart(_Part):
    """One driver."""

    branch: str
    flavour: str
    modules: str
    asked_version: str
    driver: str
    package_version: str
    source: str
    kernels: tuple[str, ...]
    """The kernels whose headers are in the bundle."""
    files: tuple[str, ...]


class ToolkitPart(_Part):
    """One CUDA toolkit."""

    version: str
    files: tuple[str, ...]


class TorchPart(_Part):
    """One PyTorch with all that it needs."""

    asked_version: str
    asked_build: str
    driver: str
    version: str
    build: str
    extra: tuple[str, ...]
    files: tuple[str, ...]


class SourcePart(_Part):
    """One commit of gpu-burn, as a file that git clones from."""

    commit: str
    files: tuple[str, ...]


class Manifest(_Part):
    """Everything in the bundle, and for what."""

    schema_version: int = SCHEMA_VERSION
    platform: Platform
    system: SystemPart
    drivers: tuple[DriverPart, ...]
    toolkits: tuple[ToolkitPart, ...]
    torch: tuple[TorchPart, ...]
    gpu_burn: tuple[SourcePart, ...]
    lists: str
    """The file with the package lists' paragraphs."""
    files: tuple[File, ...]

    @property
    def size(self) -> int:
        """Bytes, without the manifest."""
        return sum(file.size for file in self.files)

    @property
    def sha256(self) -> str:
        """What names exactly this bundle."""
        return hashlib.sha256(self.dumps()).hexdigest()

    def dumps(self) -> bytes:
        """The same content is always the same bytes."""
        return (json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True) + "\n").encode()


def read_manifest(folder: Path) -> Manifest:
    """Read a bundle's manifest.

    Raises:
        UsageError: there is none, or it cannot be read.
    """
    path = folder / NAME
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise UsageError(
            f"{folder} holds no {NAME}: it is no bundle, or was not finished", f"fill it: rigctl bundle {folder}"
        ) from error
    except (OSError, ValidationError) as error:
        what = error if isinstance(error, OSError) else f"{error.error_count()} fields are wrong or missing"
        raise UsageError(f"{path} cannot be read: {what}", f"fill the folder again: rigctl bundle {folder}") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest, whole or not at all, and on the disk before this returns."""
    part = folder / f"{NAME}.part"
    with part.open("wb") as stream:
        stream.write(manifest.dumps())
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(folder / NAME)


def damages(folder: Path, manifest: Manifest) -> Iterator[tuple[File, str]]:
    """Compare every file with the manifest: each that is not as it says, with what is wrong."""
    for file in manifest.files:
        found = _damage(folder / file.path, file)
        if found:
            yield file, found


def is_whole(folder: Path, file: File) -> bool:
    """Whether a file is there with the bytes that it should have."""
    return not _damage(folder / file.path, file)


def _damage(path: Path, file: File) -> str:
    try:
        size = path.stat().st_size
        if size != file.size:
            return f"has {size} bytes instead of {file.size}"
        return "" if sha256_of(path) == file.sha256 else "has other bytes than it should"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def sha256_of(path: Path) -> str:
    """The hash of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sweep(folder: Path, manifest: Manifest, folders: Iterable[str]) -> None:
    """Remove what an earlier filling left and the manifest does not name; only from the bundle's own folders."""
    kept = {folder / file.path for file in manifest.files}
    for name in folders:
        for path in sorted((folder / name).glob("*")):
            if path.is_file() and path not in kept:
                path.unlink()
