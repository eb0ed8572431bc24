"""The part of a driver that DKMS builds: its source tree, and what its package does when it comes and goes."""

from __future__ import annotations

from .deb import Packed

MODULES = ("nvidia", "nvidia-modeset", "nvidia-drm", "nvidia-uvm", "nvidia-peermem")


def dkms_scripts(name: str, version: str) -> dict[str, str]:
    """Return the scripts of a package whose module DKMS calls `name`, as `nvidia` or Debian's `nvidia-current`."""
    module = f"-m {name} -v {version}"
    postinst = f"""#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
dkms add {module}
for modules in /lib/modules/*; do
  [ -e "$modules/build" ] || continue
  dkms build {module} -k "${{modules##*/}}"
  dkms install {module} -k "${{modules##*/}}"
done
"""
    prerm = f'#!/bin/sh\nset -e\ncase "$1" in remove|upgrade|deconfigure) dkms remove {module} --all ;; esac\n'
    return {"postinst": postinst, "prerm": prerm}


def dkms_source(name: str, version: str) -> Packed:
    """Return the source tree: what DKMS has to know, and no source. Under another name the files are renamed too."""
    lines = [f'PACKAGE_NAME="{name}"', f'PACKAGE_VERSION="{version}"', 'AUTOINSTALL="yes"']
    for index, module in enumerate(MODULES):
        lines += [f'BUILT_MODULE_NAME[{index}]="{module}"', f'DEST_MODULE_LOCATION[{index}]="/kernel/drivers/char"']
        if name != "nvidia":
            lines += [f'DEST_MODULE_NAME[{index}]="{module.replace("nvidia", name, 1)}"']
    return Packed(f"/usr/src/{name}-{version}/dkms.conf", ("\n".join(lines) + "\n").encode())
