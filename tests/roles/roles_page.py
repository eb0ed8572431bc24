"""Write docs/roles.md from the roles themselves: `python tests/roles/roles_page.py`."""

import json
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
ROLES = ROOT / "roles"
PAGE = ROOT / "docs" / "roles.md"
ORDER = ("compat", "base", "kernel", "nvidia_driver", "cuda", "pytorch", "container_toolkit", "gpu_burn", "cpu_burn")
"""As `playbooks/site.yml` calls them."""
BY_OTHERS = ("reboot",)
"""Roles that other roles call."""

INTRODUCTION = """\
# Roles

This page is written by `python tests/roles/roles_page.py` from the roles themselves.

`playbooks/site.yml` calls these roles in this order; `rigctl provision` drives it, and so does plain Ansible:

```
rigctl provision rig1 -i inventory
ANSIBLE_ROLES_PATH=roles ansible-playbook -i inventory playbooks/site.yml --limit rig1
```

All roles work alike. `preflight.yml` checks the variables and says for each what to set instead. What costs time (the
package sources, the cards, the build that is there) is looked at once, by a script that runs on the rig and changes
nothing; the tasks behind it do only what is missing, so that a second run changes nothing. `--check` says what would
change. Only modules of `ansible.builtin` are used.

A task costs time on every rig even where it is skipped, so checks of variables are one task, and what belongs together
and is seldom to be done (installing, compiling, trying) is a file that is included only then.

Each role works by itself, without rigctl and without the others. Copy its folder; along with `cuda` and `pytorch` copy
`compat`, along with `nvidia_driver` both `compat` and `reboot`, along with `kernel` both `nvidia_driver` and `reboot`:

```yaml
- hosts: all
  become: true
  roles:
    - nvidia_driver
```

What a role needs of the rig it looks for itself: `gpu_burn` wants a toolkit and cards, wherever they came from.

## What the roles overwrite on a rig

{overwritten}
## How the driver is chosen

`nvidia_driver` asks the rig's package sources what `nvidia-driver-BRANCH` really is there. A version is taken only
where its description is not that of a transitional package, its own number belongs to the branch (behind `+really.`
where that is written), and it comes from `nvidia_driver_source`. Then apt's preferences allow driver packages from that
source and in that version only, and the transaction is simulated under them; where it would install a package of
another branch or remove something foreign, the role refuses. All of this happens before any driver package is
changed; NVIDIA's CUDA repository has been named to apt by then, since it carries drivers too:

```
ubuntu has nvidia-driver-515 only as a transitional package: it would have become 535. The source cuda_repo has the
real one: nvidia-driver-515 515.105.01 (515.105.01-0ubuntu1). Nothing was installed. Choose: set
nvidia_driver_source: cuda_repo or nvidia_driver_branch: "535".
```

On Debian 12 the driver comes from Debian's own non-free, in packages whose names do not carry the branch
(`nvidia-driver`, `nvidia-kernel-dkms`, `nvidia-smi`, `libcuda1`; the module is `nvidia-current`). There the branch is
compared with the version, and one that Debian does not have is refused with the one that it has:

```
debian does not have nvidia-driver of branch 515; on offer: 535.309.01, 535.261.03. Nothing was installed. Choose: set
nvidia_driver_branch: "535".
```

Where the components `contrib non-free` are missing from apt's sources the role says so; it does not add them. `open`
takes `nvidia-open-kernel-dkms`, and the driver in the version of that module. Ubuntu 24.04 has branches from 550 on;
another one is refused with the nearest. On every other system, or release of these, the first task of `site.yml` stops:
the roles were not tried there.

`nvidia_driver_source: auto` takes the first of Ubuntu's archive, the deb cache (a folder of packages on the rig,
`nvidia_driver_deb_cache`) and NVIDIA's CUDA repository that truly has the branch. Versions that
`roles/nvidia_driver/files/known_bad.yml` names are left out, with the reason. The transaction also brings headers for
the running kernel and the one that boots next, and the gcc that built each; afterwards both must have the module.
`nvidia_driver_modules: signed` takes Ubuntu's signed modules instead, which Secure Boot accepts.

A rig that already has the branch keeps its version until `nvidia_driver_version` asks for another one. After
installing, the loaded driver, the library and the asked version are compared; the rig is restarted where the loaded one
is not the installed one. `nvidia_driver_reboot: ask` stops that rig with a message instead, `never` goes on.

## Nobody is locked out

Where a restart is needed, the role `reboot` looks first, and refuses with the reason and the remedy where the rig would
wait for somebody at the console: an encrypted volume that nothing opens, a line of `/etc/fstab` whose source is gone, a
network configured for an interface that a new card has renamed, a full `/boot`, packages that dpkg has not finished
with. `nvidia_driver` asks before it installs anything and again before the restart. A new kernel is started once on
trial and becomes the default only when the check behind it has passed; a power cycle in between brings the old one
back. A local connection, and the controller under any name, are never restarted.

A transaction that fails is taken back: dpkg is consistent afterwards, with the driver that was there before. A power
limit is refused outside a card's range, above the board's default where `nvidia_driver_psu_w` does not say what the
power supply gives, and where cards, CPU (`nvidia_driver_cpu_w`) and 100 W together exceed 0.85 of it.

`playbooks/decommission.yml` takes the driver off again, and what came with it, and restarts the rig. CUDA, PyTorch and
gpu-burn stay:

```
ANSIBLE_ROLES_PATH=roles ansible-playbook -i inventory playbooks/decommission.yml --limit rig1
```

## How PyTorch is chosen

From the tables of the role `compat`: builds and the least driver they need, Python versions, and the highest CUDA of
each driver branch, each row with its source. Builds for the branch's own CUDA come before those that run only by
minor-version compatibility (the driver then cannot compile PTX); among them the newest version wins. So driver 515 with
Python 3.10 gets 2.0.1+cu117. `pytorch_version` and `pytorch_build` choose by hand; `cpu` needs no driver, and
`distribution` takes `python3-torch` of the distribution. `rigctl compat` asks the same tables, see
[compat.md](compat.md).

## CUDA beside other installations

Before apt reads anything, `cuda` clears away what other installations left of NVIDIA's repository: two lists with
different keys stop apt altogether, and so does a key that was retired. Only packages `cuda-toolkit-X-Y` are installed;
the meta packages `cuda` and `cuda-toolkit` would bring a newer toolkit and a driver. `cuda_more_versions` installs
further ones beside it. A toolkit that the loaded driver cannot run is refused, unless `cuda_allow_unrunnable` is true.

`cuda_source: distribution` takes `nvidia-cuda-toolkit` of the rig's own distribution instead, without what it
recommends: CUDA 11.8 from Debian 12's non-free (1.6 GB to fetch, 5.6 GB on disk). `cuda_version` must name the version
that is there; another one is refused with both named. The toolkit is in `/usr` then, `/usr/local/cuda` leads there, and
NVIDIA's repository is named to apt only where `nvidia_driver_source` (`auto`, `cuda_repo`) may need it. `gpu_burn`
takes the toolkit from there by itself.

## Containers

Before anything else, `container_toolkit` looks for running containers that can use a card and refuses the rig while
there are any: packages reload systemd, and a reload can take the cards from them. Where `container_toolkit_install` is
true, it installs NVIDIA's container toolkit, writes the CDI specification anew whenever the driver is another one, and
lets one container list the cards.

## Variables
"""


def load(role: str, path: str) -> dict:
    return yaml.safe_load((ROLES / role / path).read_text(encoding="utf-8"))


def overwritten(role: str) -> str:
    """What the role's README says of it: a list in Markdown."""
    text = (ROLES / role / "README.md").read_text(encoding="utf-8")
    return text.partition("What it overwrites on the machine:\n\n")[2].partition("\n\n")[0]


def render() -> str:
    lists = "".join(f"**{role}**\n\n{overwritten(role)}\n\n" for role in (*ORDER, *BY_OTHERS))
    parts = [INTRODUCTION.replace("{overwritten}\n", lists)]
    for role in (*ORDER, *BY_OTHERS):
        spec = load(role, "meta/argument_specs.yml")["argument_specs"]["main"]
        defaults = load(role, "defaults/main.yml")
        parts.append(f"### {role}\n\n{spec['short_description']}\n\n| variable | default | what |\n|---|---|---|")
        for name, option in spec["options"].items():
            what = " ".join(option["description"].split())
            if "choices" in option:
                what += f" One of {', '.join(f'`{choice}`' for choice in option['choices'])}."
            default = json.dumps(defaults[name], ensure_ascii=False).replace("|", "\\|")
            parts.append(f"| `{name}` | `{default}` | {what} |")
        parts.append("")
    return "\n".join(parts).rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
