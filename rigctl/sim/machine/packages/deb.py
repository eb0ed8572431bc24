"""Write Debian packages and archive indexes as plain files; no packaging tools are needed."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

BUILD_TIME = 1_669_852_800
"""Modification time of every packed file, seconds since 1970: the same inputs give the same bytes."""


@dataclass(frozen=True)
class Packed:
    """One file of a package: `data`, or a symbolic link to `link`."""

    path: str
    data: bytes = b""
    mode: int = 0o644
    link: str = ""


@dataclass(frozen=True)
class Package:
    """One binary package."""

    name: str
    version: str
    description: str
    relations: Mapping[str, str] = field(default_factory=dict)
    """Depends, Provides, Conflicts … as they stand in the control file; empty ones are left out."""
    files: Sequence[Packed] = ()
    scripts: Mapping[str, str] = field(default_factory=dict)
    """postinst, prerm, triggers … → content."""
    architecture: str = "amd64"
    section: str = "restricted/misc"

    @property
    def file_name(self) -> str:
        """The name of the package's file in a pool."""
        return f"{self.name}_{self.version.split(':')[-1]}_{self.architecture}.deb"

    def control(self) -> str:
        """Return the control paragraph, without a final empty line."""
        lines = [
            f"Package: {self.name}",
            f"Version: {self.version}",
            f"Architecture: {self.architecture}",
            "Maintainer: rigctl sim <rigctl@localhost>",
            f"Section: {self.section}",
            "Priority: optional",
            *[f"{key}: {value}" for key, value in self.relations.items() if value],
            f"Description: {self.description}",
            " A stand-in for simulated rigs: it drives no hardware.",
        ]
        return "\n".join(lines)

    def build(self) -> bytes:
        """Return the bytes of the `.deb` file."""
        control = [Packed("control", (self.control() + "\n").encode())]
        control += [Packed(name, text.encode(), 0o755) for name, text in self.scripts.items()]
        members = (
            ("debian-binary", b"2.0\n"),
            ("control.tar.gz", _tar(control)),
            ("data.tar.gz", _tar(self.files)),
        )
        return b"!<arch>\n" + b"".join(_ar_member(name, data) for name, data in members)


def index_entry(control: str, file_name: str, data: bytes) -> str:
    """Return the paragraph of a `Packages` file for a package whose file has these bytes."""
    return f"{control.rstrip()}\nFilename: {file_name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"


def write_index(folder: Path, entries: Iterable[str]) -> None:
    """Write `folder/Packages`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Packages").write_text("\n".join(entries), encoding="utf-8")


def write_release(folder: Path, fields: Mapping[str, str]) -> None:
    """Write `folder/Release` with `fields` and the hash of every `Packages` file below `folder`."""
    lines = [f"{key}: {value}" for key, value in fields.items()]
    lines += ["Date: Wed, 30 Nov 2022 00:00:00 UTC", "SHA256:"]
    for index in sorted(folder.rglob("Packages")):
        data = index.read_bytes()
        lines.append(f" {hashlib.sha256(data).hexdigest()} {len(data)} {index.relative_to(folder)}")
    (folder / "Release").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _tar(files: Sequence[Packed]) -> bytes:
    buffer = io.BytesIO()
    # gzip's header carries a time too; tarfile's own `w:gz` would write the present one there.
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", filename="", compresslevel=1, mtime=BUILD_TIME) as packed_bytes,
        tarfile.open(fileobj=packed_bytes, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for folder in _folders(files):
            tar.addfile(_entry(folder, mode=0o755, kind=tarfile.DIRTYPE))
        for packed in files:
            if packed.link:
                tar.addfile(_entry(packed.path, mode=0o777, kind=tarfile.SYMTYPE, link=packed.link))
                continue
            entry = _entry(packed.path, mode=packed.mode, kind=tarfile.REGTYPE)
            entry.size = len(packed.data)
            tar.addfile(entry, io.BytesIO(packed.data))
    return buffer.getvalue()


def _folders(files: Sequence[Packed]) -> list[str]:
    found = set()
    for packed in files:
        parts = packed.path.strip("/").split("/")[:-1]
        found |= {"/".join(parts[: depth + 1]) for depth in range(len(parts))}
    return sorted(found)


def _entry(path: str, *, mode: int, kind: bytes, link: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo("./" + path.strip("/"))
    entry.mode, entry.type, entry.linkname, entry.mtime = mode, kind, link, BUILD_TIME
    entry.uname = entry.gname = "root"
    return entry


def _ar_member(name: str, data: bytes) -> bytes:
    header = f"{name:<16}{BUILD_TIME:<12}{0:<6}{0:<6}{0o100644:<8o}{len(data):<10}`\n".encode()
    return header + data + (b"\n" if len(data) % 2 else b"")
