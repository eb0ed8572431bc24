"""The few settings of ansible.cfg that say how rigs are reached, found as Ansible finds them."""

from __future__ import annotations

import configparser
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rigctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class ConnectionDefaults:
    """What holds where the inventory says nothing; None = not set anywhere."""

    remote_user: str | None = None
    remote_port: str | None = None
    private_key_file: str | None = None
    timeout: str | None = None
    ssh_args: str | None = None
    ssh_common_args: str | None = None
    ssh_extra_args: str | None = None
    become_method: str | None = None
    become_flags: str | None = None


_SETTINGS = {
    # field: (environment, section, key), as in Ansible's documentation of its settings
    "remote_user": ("ANSIBLE_REMOTE_USER", "defaults", "remote_user"),
    "remote_port": ("ANSIBLE_REMOTE_PORT", "defaults", "remote_port"),
    "private_key_file": ("ANSIBLE_PRIVATE_KEY_FILE", "defaults", "private_key_file"),
    "timeout": ("ANSIBLE_TIMEOUT", "defaults", "timeout"),
    "ssh_args": ("ANSIBLE_SSH_ARGS", "ssh_connection", "ssh_args"),
    "ssh_common_args": ("ANSIBLE_SSH_COMMON_ARGS", "ssh_connection", "ssh_common_args"),
    "ssh_extra_args": ("ANSIBLE_SSH_EXTRA_ARGS", "ssh_connection", "ssh_extra_args"),
    "become_method": ("ANSIBLE_BECOME_METHOD", "privilege_escalation", "become_method"),
    "become_flags": ("ANSIBLE_BECOME_FLAGS", "privilege_escalation", "become_flags"),
}


def connection_defaults() -> ConnectionDefaults:
    """Read environment and ansible.cfg.

    Raises:
        UsageError: ansible.cfg is damaged.
    """
    path = config_file(os.environ)
    parser = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=(";",), strict=False)
    if path is not None:
        try:
            parser.read_string(path.read_text(encoding="utf-8"), source=str(path))
        except (OSError, UnicodeDecodeError, configparser.Error) as error:
            raise UsageError(f"{path}: cannot be read: {error}", "correct it; ansible-config view shows it") from error
    found = {
        field: os.environ.get(variable) or parser.get(section, key, fallback=None) or None
        for field, (variable, section, key) in _SETTINGS.items()
    }
    return ConnectionDefaults(**found)


def config_file(environ: Mapping[str, str]) -> Path | None:
    """Find ansible.cfg where Ansible does: ANSIBLE_CONFIG, the current folder, the user's own, the machine's."""
    named = environ.get("ANSIBLE_CONFIG")
    if named:
        path = Path(named).expanduser()
        return path / "ansible.cfg" if path.is_dir() else path if path.is_file() else None
    places = [Path("~/.ansible.cfg").expanduser(), Path("/etc/ansible/ansible.cfg")]
    # Ansible ignores the file of a folder into which anybody may write.
    if not Path.cwd().stat().st_mode & stat.S_IWOTH:
        places.insert(0, Path.cwd() / "ansible.cfg")
    return next((place for place in places if place.is_file()), None)
