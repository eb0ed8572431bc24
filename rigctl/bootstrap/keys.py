"""Which public key is put on a rig, and how."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rigctl.errors import UsageError

if TYPE_CHECKING:
    from rigctl.model.rig import Login

_LINE = re.compile(r"(ssh|ecdsa|sk-ssh|sk-ecdsa)-[\w@.-]+ [A-Za-z0-9+/]+={0,3}( .*)?")
_AGENT = "the SSH agent"

INSTALL = r"""
set -eu
umask 077
cd
mkdir -p .ssh
file=.ssh/authorized_keys
key=$(cat)
[ -e "$file" ] || : > "$file"
grep -qxF -- "$key" "$file" && exit 0
# A last line without its end would swallow ours.
[ -z "$(tail -c 1 "$file")" ] || echo >> "$file"
printf '%s\n' "$key" >> "$file"
# The server passes by a file that others may write.
chmod go-w .ssh "$file"
if command -v restorecon > /dev/null; then restorecon -R .ssh; fi
"""
"""Adds the key on standard input to the login's authorized_keys, once."""


@dataclass(frozen=True)
class PublicKey:
    """A key that a rig may be told of."""

    line: str
    """As it stands in authorized_keys."""
    origin: str
    """The private key's file, or the SSH agent."""

    @property
    def file(self) -> str | None:
        """The private key's file; None for one that the agent alone holds."""
        return None if self.origin == _AGENT else self.origin


def find_public_key(login: Login, chosen: Path | None = None) -> PublicKey:
    """The key of `chosen`, else of the login's first key file that is there, else the SSH agent's first.

    Raises:
        UsageError: there is none, or it is no key; before anything was touched.
    """
    names = [str(chosen)] if chosen is not None else list(login.identity_files)
    for name in names:
        private = Path(name.removesuffix(".pub")).expanduser()
        line = _line_of(private)
        if line:
            return PublicKey(line, str(private))
    if chosen is None:
        held = _output("ssh-add", "-L")
        if _LINE.fullmatch(held.partition("\n")[0]):
            return PublicKey(held.partition("\n")[0], _AGENT)
    raise UsageError(
        f"no key to put on the rig: {', '.join(names) or 'no key file'} {'is' if len(names) == 1 else 'are'} not there",
        f"make one: ssh-keygen -t ed25519 -f {names[0] if names else '~/.ssh/id_ed25519'}",
    )


def _line_of(private: Path) -> str:
    """The public key beside `private`, or computed from it; empty where there is neither.

    Raises:
        UsageError: it is there and cannot be used.
    """
    public = Path(f"{private}.pub")
    try:
        if public.is_file():
            line = public.read_text(encoding="utf-8").strip()
        elif private.is_file():
            line = _output("ssh-keygen", "-y", "-P", "", "-f", str(private)).strip()
        else:
            return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{public}: cannot be read: {error}", "name another one with --key") from error
    if not _LINE.fullmatch(line):
        raise UsageError(
            f"{private}: its public key cannot be read", f"write it: ssh-keygen -y -f {private} > {public}"
        )
    return line


def _output(*words: str) -> str:
    """What a program of OpenSSH prints; empty where it fails or is missing."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""
