"""The settings under which Ansible runs: ours as defaults, the operator's own ansible.cfg before them."""

from __future__ import annotations

import configparser
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rigctl import assets
from rigctl.errors import UsageError
from rigctl.inventory.ansible_config import config_file

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULTS = (
    # environment variable, value, where an ansible.cfg says the same
    ("ANSIBLE_PIPELINING", "True", (("defaults", "pipelining"), ("connection", "pipelining"),
                                    ("ssh_connection", "pipelining"))),
    ("ANSIBLE_FORKS", "32", (("defaults", "forks"),)),
    ("ANSIBLE_TIMEOUT", "20", (("defaults", "timeout"),)),
)  # fmt: skip
_ALWAYS = {
    "ANSIBLE_HOST_KEY_CHECKING": "True",
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_DEPRECATION_WARNINGS": "False",
    "PYTHONWARNINGS": "ignore",
}
"""What holds whatever an ansible.cfg says; ansible-runner would switch the host key check off."""


def ansible_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment variables for ansible-playbook; what the operator has set, there or in ansible.cfg, stays.

    Raises:
        UsageError: the ansible.cfg cannot be read.
    """
    own = os.environ if environ is None else environ
    config = config_file(own)
    parser = _read(config)
    found = {
        name: value
        for name, value, places in _DEFAULTS
        if name not in own and not any(parser.has_option(section, key) for section, key in places)
    }
    found |= _ALWAYS
    roles = [str(assets.roles_dir()), *_roles_of_operator(parser, config, own)]
    found["ANSIBLE_ROLES_PATH"] = os.pathsep.join(roles)
    found["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), own.get("PATH", os.defpath)])
    if config is not None:
        found["ANSIBLE_CONFIG"] = str(config.absolute())
    return found


def operator_has(variable: str, key: str, environ: Mapping[str, str]) -> bool:
    """Whether the operator has set this, in the environment or in the defaults of an ansible.cfg.

    Raises:
        UsageError: the ansible.cfg cannot be read.
    """
    return variable in environ or _read(config_file(environ)).has_option("defaults", key)


def _read(config: Path | None) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    if config is None:
        return parser
    try:
        parser.read_string(config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise UsageError(f"{config}: cannot be read: {error}", "correct it, or unset ANSIBLE_CONFIG") from error
    return parser


def _roles_of_operator(parser: configparser.ConfigParser, config: Path | None, environ: Mapping[str, str]) -> list[str]:
    """Roles of the operator's own stay usable; relative paths count from the file that names them."""
    if "ANSIBLE_ROLES_PATH" in environ:
        return environ["ANSIBLE_ROLES_PATH"].split(os.pathsep)
    if config is None or not parser.has_option("defaults", "roles_path"):
        return []
    paths = parser.get("defaults", "roles_path").split(os.pathsep)
    return [str(config.absolute().parent / Path(path).expanduser()) for path in paths]
