"""Templates and vaulted values, resolved by Ansible itself: the slow path, taken only where there are some."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rigctl.errors import UsageError
from rigctl.inventory.ansible_view import ansible_environment, ansible_program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.inventory.ansible_view import AnsibleView

_TIMEOUT_S = 120
_QUIET = {
    # Resolved values may be secrets: they leave Ansible through the pipe alone.
    "ANSIBLE_LOG_PATH": "/dev/null",
    "ANSIBLE_CALLBACKS_ENABLED": "ansible.builtin.default",
    "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
    "ANSIBLE_RETRY_FILES_ENABLED": "0",
    "ANSIBLE_DISPLAY_FAILED_STDERR": "0",
    "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
}


def needs_ansible(value: Any) -> bool:
    """Whether only Ansible can say what `value` is: a template, or a vaulted or unsafe value."""
    if isinstance(value, str):
        return "{{" in value or "{%" in value
    if isinstance(value, dict):
        return any(str(k).startswith("__ansible_") or needs_ansible(v) for k, v in value.items())
    return isinstance(value, list) and any(needs_ansible(v) for v in value)


def resolve(
    view: AnsibleView, wanted: Mapping[str, Mapping[str, Any]], defaults: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return `wanted` (host → variable → value as written) with every template and vaulted value resolved.

    `defaults` are the roles' defaults: weaker than anything in the inventory, and templates may refer to them.

    Raises:
        UsageError: a value cannot be resolved; with rig and Ansible's reason.
    """
    open_names = {
        host: tuple(sorted(name for name, value in values.items() if needs_ansible(value)))
        for host, values in wanted.items()
    }
    resolved = {host: dict(values) for host, values in wanted.items()}
    if not any(open_names.values()):
        return resolved
    answered = _play(view, {h: names for h, names in open_names.items() if names}, defaults)
    for host, names in open_names.items():
        if names:
            resolved[host].update(answered[host])
    return resolved


def _play(view: AnsibleView, names: Mapping[str, tuple[str, ...]], defaults: Mapping[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="rigctl-resolve-") as folder:
        playbook = _write_playbook(Path(folder), names, defaults)
        command = [ansible_program("ansible-playbook"), "-i", str(view.path), str(playbook)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
                env=ansible_environment() | _QUIET,
            )
        except subprocess.TimeoutExpired as error:
            raise UsageError(
                f"{view.path}: Ansible did not resolve the connection variables within {_TIMEOUT_S} s",
                "look for a lookup in them that waits",
            ) from error
    said = (json.loads(base64.b64decode(data)) for data in re.findall(r"RIGCTL:([A-Za-z0-9+/=]+):", done.stdout))
    answered = {values.pop("inventory_hostname"): values for values in said}
    for host, wanted in names.items():
        if host not in answered:
            raise UsageError(
                f"{view.path}: {host}: cannot resolve {', '.join(wanted)}: {_reason(done.stdout + done.stderr)}",
                "define what the template refers to; vaulted values need ANSIBLE_VAULT_PASSWORD_FILE",
            )
    return answered


def _write_playbook(folder: Path, names: Mapping[str, tuple[str, ...]], defaults: Mapping[str, Any]) -> Path:
    """Write one play per set of names: a role whose defaults are the shipped roles' and that only speaks."""
    plays = []
    for index, group in enumerate(dict.fromkeys(names.values())):
        role = folder / "roles" / f"rigctl_resolve_{index}"
        (role / "defaults").mkdir(parents=True)
        (role / "tasks").mkdir()
        (role / "defaults" / "main.yml").write_text(yaml.safe_dump(dict(defaults)), encoding="utf-8")
        pairs = ", ".join(f"'{name}': {name}" for name in ("inventory_hostname", *group))
        message = f"RIGCTL:{{{{ {{{pairs}}} | to_json | b64encode }}}}:"
        task = {"name": "Say", "ansible.builtin.debug": {"msg": message}}
        (role / "tasks" / "main.yml").write_text(yaml.safe_dump([task], width=10**6), encoding="utf-8")
        hosts = [host for host, own in names.items() if own == group]
        plays.append({"name": "Resolve", "hosts": hosts, "gather_facts": False, "roles": [role.name]})
    playbook = folder / "resolve.yml"
    playbook.write_text(yaml.safe_dump(plays), encoding="utf-8")
    return playbook


def _reason(output: str) -> str:
    for form in (r'"msg": "((?:[^"\\]|\\.)+)"', r"\[ERROR\]: (.+)"):
        found = re.search(form, output)
        if found:
            return " ".join(found[1].replace("\\n", " ").split())[:300]
    return "Ansible gave no reason"
