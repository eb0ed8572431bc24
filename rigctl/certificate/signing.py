"""Signatures by `ssh-keygen -Y`: the same form that git and OpenSSH use; verifiable without rigctl."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rigctl.errors import UsageError

NAMESPACE = "rigctl-certificate"
"""Keeps a signature for something else from passing as one of a certificate."""
DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
DEFAULT_SIGNERS = Path("~/.ssh/allowed_signers")
_TIMEOUT_S = 120
"""For a person who types a passphrase or touches a key, seconds."""
_KEY = re.compile(r"Good .* signature with (\S+) key (SHA256:\S+)")


@dataclass(frozen=True)
class Signer:
    """Who signed."""

    fingerprint: str
    principal: str | None
    """The name under which the key stands among the allowed signers; None: it is not among them."""


class BadSignature(Exception):
    """What is there is not what was signed."""


def find_key(key: Path | None) -> Path:
    """Return the private key to sign with.

    Raises:
        UsageError: there is none.
    """
    if key is not None:
        if not key.expanduser().is_file():
            raise UsageError(f"there is no key {key}", "make one with `ssh-keygen -t ed25519 -f FILE`")
        return key.expanduser()
    for name in DEFAULT_KEYS:
        path = Path("~/.ssh").expanduser() / name
        if path.is_file():
            return path
    raise UsageError("there is no SSH key to sign with", "name one with --key, or make one: `ssh-keygen -t ed25519`")


def sign(data: bytes, key: Path) -> bytes:
    """Return the armoured signature of `data`; a passphrase is asked for on the terminal by OpenSSH itself.

    Raises:
        UsageError: OpenSSH refused; its last line says why.
    """
    with tempfile.TemporaryDirectory(prefix="rigctl-sign-") as folder:
        file = Path(folder) / "statement"
        file.write_bytes(data)
        done = _ssh_keygen(["-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(file)], stdin=None)
        if done.returncode:
            raise UsageError(f"{key} did not sign: {_last_line(done)}", "use a private key that you can unlock")
        return file.with_suffix(".sig").read_bytes()


def check(data: bytes, signature: bytes, signers: Path | None, when: datetime) -> Signer:
    """Say who signed `data`.

    Args:
        data: What was signed.
        signature: As `sign` returned it.
        signers: A file in the form of ssh-keygen's ALLOWED SIGNERS; None: nobody vouches for any key.
        when: The time at which the key must have been valid.

    Raises:
        BadSignature: the signature is not one of `data`, or its key was not valid then.
        UsageError: the file of allowed signers cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="rigctl-verify-") as folder:
        sig = Path(folder) / "signature"
        sig.write_bytes(signature)
        done = _ssh_keygen(["-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(sig)], stdin=data)
        found = _KEY.search(done.stdout.decode(errors="replace"))
        if done.returncode or found is None:
            raise BadSignature(_last_line(done))
        fingerprint = found[2]
        return Signer(fingerprint, _principal(sig, data, signers, when) if signers is not None else None)


def _principal(sig: Path, data: bytes, signers: Path, when: datetime) -> str | None:
    if not signers.is_file():
        raise UsageError(f"there is no file of allowed signers {signers}", "name it with --signers")
    # A trailing Z is read as UTC by OpenSSH 9 only; without it the local time zone counts, for old and new ones.
    at = f"-Overify-time={when.astimezone():%Y%m%d%H%M%S}"
    named = _ssh_keygen(["-Y", "find-principals", "-s", str(sig), "-f", str(signers), at], stdin=None)
    if named.returncode:
        return None
    principal = named.stdout.decode(errors="replace").splitlines()[0]
    words = ["-Y", "verify", "-f", str(signers), "-I", principal, "-n", NAMESPACE, "-s", str(sig), at]
    done = _ssh_keygen(words, stdin=data)
    if done.returncode:
        raise BadSignature(f"{principal}: {_last_line(done)}")
    return principal


def public_line(key: Path) -> str:
    """The public half of a private key, for a file of allowed signers. Raises UsageError where it cannot be read."""
    done = _ssh_keygen(["-y", "-f", str(key)], stdin=None)
    if done.returncode:
        raise UsageError(f"{key} has no readable public half: {_last_line(done)}", "name another key with --key")
    return done.stdout.decode().strip()


def _ssh_keygen(words: list[str], stdin: bytes | None) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise UsageError("there is no ssh-keygen here", "install OpenSSH's client (`apt-get install openssh-client`)")
    command = [program, *words]
    if stdin is None:  # the terminal's, where a passphrase may be typed
        return subprocess.run(command, capture_output=True, check=False, timeout=_TIMEOUT_S)
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=_TIMEOUT_S)


def _last_line(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"ssh-keygen ended with {done.returncode}"


def now() -> datetime:
    """The time of signing."""
    return datetime.now(UTC)
