"""Ansible's inventory read into rigs; every mistake in it is found here, before any SSH.

- `ansible_view`: what Ansible itself says of hosts, groups and variables
- `resolve`: templates and vaulted values, resolved by Ansible
- `yamlfile`: literal YAML, with file, line and key in each error
- `specs`: spec files, profiles and role variables → `RigSpec`, `ProfileSpec`
- `waivers`: accepted deviations of one rig → `Waiver`
- `logins`: connection variables → `Login`, resolved by OpenSSH's own client
- `load`: all of it put together
"""

from rigctl.inventory.ansible_view import DEFAULT_INVENTORY
from rigctl.inventory.load import load_fleet, load_variables

__all__ = ["DEFAULT_INVENTORY", "load_fleet", "load_variables"]
