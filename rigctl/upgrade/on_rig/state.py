"""What a rig has: packages with their marks, the files that the roles write, kernel and loaded driver."""

import base64
import os
import re
import subprocess
from pathlib import Path
from typing import Any

FILES = (
    "/etc/apt/preferences.d/*", "/etc/apt/sources.list", "/etc/apt/sources.list.d/*", "/etc/apt/apt.conf.d/*gpu-rig*",
    "/etc/modprobe.d/*", "/etc/modules-load.d/*", "/etc/profile.d/nvidia-cuda.sh", "/etc/ld.so.conf.d/*cuda*",
    "/etc/systemd/system/nvidia-card-settings.service", "/etc/cdi/nvidia.yaml", "/var/lib/gpu-rig/nvidia_driver.json",
    "/var/lib/gpu-rig-container-trial.json", "/etc/default/grub.d/90-gpu-rig-*",
)  # fmt: skip
"""Patterns of what the roles write where it bears on driver, toolkit and kernel."""
SHORT_S = 60


class Refused(Exception):
    """Why something cannot be done, and what to do."""

    def __init__(self, said: str, remedy: str = "") -> None:
        super().__init__(said)
        self.said = said
        self.remedy = remedy


def run(*argv: str, timeout_s: float = SHORT_S, cwd: str | None = None) -> tuple[int, str, str]:
    """Exit status, output and complaints of a command in the C locale; 127 where it is missing, 124 where it hangs."""
    env = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_MODE": "l"}
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, env=env, cwd=cwd, check=False)
    except FileNotFoundError:
        return 127, "", f"{argv[0]} is not installed"
    except subprocess.TimeoutExpired:
        return 124, "", f"{argv[0]} did not end within {timeout_s:.0f} s"
    return done.returncode, done.stdout, done.stderr


def must(*argv: str, timeout_s: float = SHORT_S) -> str:
    """Output of a command that has to succeed. Raises Refused with its last words."""
    code, out, said = run(*argv, timeout_s=timeout_s)
    if code:
        words = " | ".join([line.strip() for line in (out + said).splitlines() if line.strip()][-4:])
        raise Refused(f"{' '.join(argv[:3])}: exit status {code}: {words}")
    return out


def packages() -> list[dict[str, Any]]:
    """Every installed package with version and marks. Raises Refused where dpkg or apt-mark do not answer."""
    rows = must("dpkg-query", "-W", "-f", "${Package}\\t${Architecture}\\t${Version}\\t${db:Status-Abbrev}\\n")
    own = must("dpkg", "--print-architecture").strip()
    manual = set(must("apt-mark", "showmanual").split())
    held = set(must("apt-mark", "showhold").split())
    found = []
    for row in rows.splitlines():
        name, architecture, version, status = row.split("\t")
        if status[1] in "nc":  # removed, its settings may be left
            continue
        full = name if architecture in (own, "all") else f"{name}:{architecture}"
        found.append({"name": full, "version": version, "held": full in held, "manual": full in manual})
    return found


def files(patterns: tuple[str, ...] = FILES, root: str = "/") -> dict[str, str]:
    """Path → base64 of what it holds, for each file that is there. Raises Refused where one cannot be read."""
    found = {}
    for pattern in patterns:
        for path in sorted(Path(root).glob(pattern.lstrip("/"))):
            if path.is_file() and not path.is_symlink():
                try:
                    data = path.read_bytes()
                except OSError as error:
                    raise Refused(f"{path} cannot be read: {error.strerror}") from error
                found["/" + str(path.relative_to(root))] = base64.b64encode(data).decode("ascii")
    return found


def boot_id() -> str:
    """Identity of the present boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def loaded_driver() -> str:
    """Version of the loaded NVIDIA module; empty where none is."""
    path = Path("/sys/module/nvidia/version")
    return path.read_text(encoding="ascii").strip() if path.is_file() else ""


def grub_saved(environment: str = "/boot/grub/grubenv") -> str:
    """The menu entry that GRUB has saved; empty where there is none. What else stands there changes with a start."""
    path = Path(environment)
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    found = re.search(r"^saved_entry=(.*)$", text, re.MULTILINE)
    return found.group(1) if found else ""


def containers() -> list[str]:
    """Running containers that start by themselves, as `runtime name`."""
    found = []
    for runtime in ("docker", "podman"):
        code, out, _ = run(runtime, "ps", "--format", "{{.Names}}")
        for name in out.split() if code == 0 else ():
            policy = run(runtime, "inspect", "--format", "{{.HostConfig.RestartPolicy.Name}}", name)[1].strip()
            if policy in ("always", "unless-stopped"):
                found.append(f"{runtime} {name}")
    return sorted(found)


def capture() -> dict[str, Any]:
    """Everything that is compared afterwards, but for the cards."""
    return {
        "boot_id": boot_id(),
        "kernel": os.uname().release,
        "loaded": loaded_driver(),
        "packages": packages(),
        "files": files(),
        "grub_saved": grub_saved(),
        "containers": containers(),
    }
