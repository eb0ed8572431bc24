"""Mitogen, where it is installed: Ansible keeps one Python on each rig instead of starting one for every task.

It is never needed. Where it does not fit (another version, a login that it does not know), Ansible carries the run by
itself, and a line in the log says why. An operator who wants it so sets `ANSIBLE_STRATEGY=linear`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rigctl.provision.settings import operator_has

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rigctl.model.rig import Rig

OLDEST = (0, 3, 54)
"""Older ones were not tried with the roles."""
ANSIBLE_FROM, ANSIBLE_BELOW = (2, 17), (2, 20)
"""The range of ansible-core that rigctl and this Mitogen have in common."""
STRATEGIES = Path(__file__).parent / "strategies"
"""The folder that Ansible loads our strategy from."""
_START_TIMEOUT_S = 60
"""Mitogen counts SSH, sudo and the start of Python together, where Ansible's time-out is for the connection alone."""
_BECOME_METHODS = {"sudo", "su", "doas"}
_BECOME_FLAG = re.compile(r"-[EHinS]+|--(preserve-env|set-home|login|stdin|non-interactive)")
_STRICT = {"ask", "true", "yes"}
"""OpenSSH's StrictHostKeyChecking that refuses an unknown key where nobody can be asked, as Mitogen does."""


@dataclass(frozen=True)
class Carrier:
    """Who carries tasks to the rigs."""

    name: str
    """mitogen or ansible."""
    why: str = ""
    """Why it is not Mitogen, although that is installed; empty otherwise."""
    environment: dict[str, str] = field(default_factory=dict)
    """What ansible-playbook needs for it."""


def choose_carrier(rigs: Iterable[Rig], environ: Mapping[str, str] | None = None) -> Carrier:
    """Say who carries tasks to these rigs; Mitogen where it is installed and fits all of them.

    Raises:
        UsageError: the ansible.cfg cannot be read.
    """
    own = os.environ if environ is None else environ
    if find_spec("ansible_mitogen") is None:
        return Carrier("ansible")
    why = _why_not(rigs, own)
    if why:
        return Carrier("ansible", f"Mitogen is installed but not used: {why}.")
    environment = {"ANSIBLE_STRATEGY": "rigctl_mitogen", "ANSIBLE_STRATEGY_PLUGINS": str(STRATEGIES)}
    if not operator_has("ANSIBLE_TIMEOUT", "timeout", own):
        environment["ANSIBLE_TIMEOUT"] = str(_START_TIMEOUT_S)
    return Carrier("mitogen", "", environment)


def _why_not(rigs: Iterable[Rig], environ: Mapping[str, str]) -> str:
    if operator_has("ANSIBLE_STRATEGY", "strategy", environ):
        return "the operator's settings name a strategy"
    if operator_has("ANSIBLE_STRATEGY_PLUGINS", "strategy_plugins", environ):
        return "the operator's settings name strategy plugins of their own"
    mitogen, ansible = version("mitogen"), version("ansible-core")
    if _numbers(mitogen) < OLDEST:
        return f"version {mitogen} is older than {'.'.join(map(str, OLDEST))}"
    if not ANSIBLE_FROM <= _numbers(ansible) < ANSIBLE_BELOW:
        return f"it was not tried with ansible-core {ansible}"
    return next((f"{rig.name} has {reason}" for rig in rigs if (reason := _unknown_login(rig))), "")


def _numbers(text: str) -> tuple[int, ...]:
    """`2.19.0rc1` → (2, 19, 0): enough to compare releases."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def _unknown_login(rig: Rig) -> str:
    login = rig.login
    if login.become_method not in _BECOME_METHODS:
        return f"ansible_become_method {login.become_method}, which it does not know"
    strange = [word for word in login.become_flags.split() if not _BECOME_FLAG.fullmatch(word)]
    if strange:
        return f"ansible_become_flags {' '.join(strange)}, which it does not know"
    if login.host_keys not in _STRICT:
        return f"StrictHostKeyChecking {login.host_keys} in its SSH settings, and it keeps host keys strict"
    return ""
