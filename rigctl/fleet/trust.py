"""Known hosts: which key a rig is trusted by, and how a new one is recorded. Files of OpenSSH, no network.

Understood: plain, hashed, `[host]:port` and wildcard names, `@revoked`. Host certificates (`@cert-authority`) are not:
paramiko cannot check them, so such a rig counts as unknown until its own key is recorded.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rigctl.errors import RigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rigctl.model.rig import Login

SSH_PORT = 22
_DEFAULT_FILES = (
    "~/.ssh/known_hosts",
    "~/.ssh/known_hosts2",
    "/etc/ssh/ssh_known_hosts",
    "/etc/ssh/ssh_known_hosts2",
)
_HASHED = "|1|"


@dataclass(frozen=True)
class HostKey:
    """A host's public key."""

    key_type: str
    """`ssh-ed25519`, for example."""
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """`SHA256:…`, as OpenSSH prints it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")

    @property
    def line(self) -> str:
        """Type and key as they stand in known_hosts."""
        return f"{self.key_type} {base64.b64encode(self.blob).decode()}"


@dataclass(frozen=True)
class KnownKey:
    """One matching line of a known_hosts file."""

    key: HostKey
    file: Path
    line: int
    revoked: bool = False


def known_hosts_files(login: Login) -> tuple[Path, ...]:
    """The files that are read for this rig, the first one being the user's own."""
    return tuple(Path(name).expanduser() for name in login.known_hosts_files or _DEFAULT_FILES)


def known_name(login: Login) -> str:
    """The name under which known_hosts holds the rig: its alias, its address, or `[address]:port`."""
    return login.host_key_alias or address_name(login)


def address_name(login: Login) -> str:
    """The name that address and port alone give."""
    return login.address if login.port == SSH_PORT else f"[{login.address}]:{login.port}"


def find_keys(files: Iterable[Path], name: str) -> tuple[KnownKey, ...]:
    """Find the keys of `name`.

    Raises:
        RigError: a file is there and cannot be read.
    """
    found: list[KnownKey] = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        except OSError as error:
            raise RigError(f"{file} cannot be read: {error.strerror}", f"run: chmod u+r {file}") from error
        for number, line in enumerate(text.splitlines(), 1):
            entry = _entry(line, name)
            if entry is not None:
                key, revoked = entry
                found.append(KnownKey(key, file, number, revoked))
    return tuple(found)


def record_key(login: Login, key: HostKey) -> Path:
    """Append the rig's key to the user's known_hosts file and return that file.

    Raises:
        RigError: it cannot be written, or is no file that keeps anything.
    """
    file = known_hosts_files(login)[0]
    if file.exists() and not file.is_file():
        raise RigError(
            f"{file} keeps no host keys", "remove UserKnownHostsFile from ansible_ssh_common_args and ssh_config"
        )
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "r+b") as stream:
            stream.seek(0)
            whole = stream.read()
            joint = b"" if not whole or whole.endswith(b"\n") else b"\n"
            stream.write(joint + f"{known_name(login)} {key.line}\n".encode())
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise RigError(f"{file} cannot be written: {error.strerror}", f"check the permissions of {file}") from error
    return file


def forget_command(login: Login, file: Path) -> str:
    """The command that removes a rig's key from `file`, for a person to run who knows why the key changed."""
    return f"ssh-keygen -R '{known_name(login)}' -f {file}"


def _entry(line: str, name: str) -> tuple[HostKey, bool] | None:
    words = line.split()
    marker = words.pop(0) if words and words[0].startswith("@") else ""
    if len(words) < 3 or words[0].startswith("#") or marker not in ("", "@revoked"):  # noqa: PLR2004 - names, type, key
        return None
    if not _names_match(words[0], name):
        return None
    try:
        blob = base64.b64decode(words[2], validate=True)
    except binascii.Error:
        return None
    return HostKey(words[1], blob), marker == "@revoked"


def _names_match(field: str, name: str) -> bool:
    """Whether the first field of a known_hosts line stands for `name`; a negated pattern excludes it."""
    matched = False
    for pattern in field.split(","):
        if pattern.startswith(_HASHED):
            matched |= _hash_matches(pattern, name)
        elif pattern.startswith("!"):
            if _pattern_matches(pattern[1:], name):
                return False
        else:
            matched |= _pattern_matches(pattern, name)
    return matched


def _pattern_matches(pattern: str, name: str) -> bool:
    # In known_hosts brackets are literal, they hold host and port; only * and ? are wildcards.
    escaped = pattern.lower().replace("[", "[[]")
    return fnmatch.fnmatchcase(name.lower(), escaped)


def _hash_matches(pattern: str, name: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in pattern[len(_HASHED) :].split("|"))
    except (ValueError, binascii.Error):
        return False
    # OpenSSH's format: HMAC-SHA1 with the salt as key.
    return hmac.compare_digest(hmac.new(salt, name.lower().encode(), hashlib.sha1).digest(), digest)
