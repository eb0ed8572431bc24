"""Look at a rig's NVIDIA driver: what is loaded, what the library is, how the cards are set.

Runs on the rig with the system's Python (3.10 or newer, standard library only), changes nothing, and prints one JSON
object. Its one argument are the role's wishes as JSON: power_limit_w, psu_w, cpu_w, persistence, options (of modules),
settings (the files whose presence is asked).
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

CARD_FIELDS = (
    "index",
    "uuid",
    "power.limit",
    "power.min_limit",
    "power.max_limit",
    "power.default_limit",
    "persistence_mode",
)
REST_W = 100
"""Board, memory, disks and fans beside cards and CPU: our proposal."""
PSU_SHARE = 0.85
"""How much of a power supply's figure may be planned: room for the cards' short peaks, our proposal."""
NOUVEAU_SETTINGS = "etc/modprobe.d/gpu-rig-nouveau.conf"
MODULE_FILES = ("/sys/module/nvidia/version", "/sys/module/nouveau")


def run(*argv: str, timeout_s: int = 60) -> tuple[int, str]:
    """Exit status and output of a command, in the C locale; 127 where it does not exist, 124 where it hangs."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout_s, env={**os.environ, "LC_ALL": "C"}, check=False
        )
    except FileNotFoundError:
        return 127, ""
    except subprocess.TimeoutExpired:
        return 124, f"{argv[0]} did not answer within {timeout_s} s"
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def read_cards(text: str) -> list[dict[str, str]]:
    """Each line of `nvidia-smi --query-gpu`; lines of another shape are no cards."""
    lines = [line.split(", ") for line in text.splitlines()]
    return [dict(zip(CARD_FIELDS, line, strict=True)) for line in lines if len(line) == len(CARD_FIELDS)]


def read_parameters(module: str, root: Path = Path("/")) -> dict[str, str]:
    """What a loaded module was given: nvidia's own by its names with the prefix, others as /sys has them."""
    if module == "nvidia":
        params = root / "proc/driver/nvidia/params"
        text = params.read_text(encoding="utf-8") if params.is_file() else ""
        pairs = (line.partition(": ") for line in text.splitlines())
        return {f"NVreg_{name}": value.strip('"') for name, _, value in pairs}
    folder = root / "sys/module" / module / "parameters"
    # Some may be read by nobody.
    paths = [path for path in folder.glob("*") if path.stat().st_mode & 0o444]
    return {path.name: path.read_text(encoding="utf-8").strip() for path in paths}


def options_differ(asked: dict[str, dict[str, Any]], root: Path = Path("/")) -> list[str]:
    """Options that a loaded module has with another value than the asked one; what it does not show is left out."""
    truth = {"Y": "1", "N": "0", "True": "1", "False": "0"}
    found = []
    for module, options in sorted(asked.items()):
        given = read_parameters(module, root)
        for name, value in sorted(options.items()):
            wanted, has = truth.get(str(value), str(value)), truth.get(given.get(name, ""), given.get(name, ""))
            if name in given and has != wanted:
                found.append(f"{module} {name} is {has}, asked {wanted}")
    return found


def initramfs_stale(kernel: str, root: Path = Path("/")) -> bool:
    """Whether the initial RAM disk is older than the settings that keep nouveau away, as after an interrupted run."""
    settings, image = root / NOUVEAU_SETTINGS, root / f"boot/initrd.img-{kernel}"
    if not settings.is_file() or not (root / f"boot/vmlinuz-{kernel}").is_file():
        return False
    return not image.is_file() or image.stat().st_mtime < settings.stat().st_mtime


def look_at_rig() -> dict[str, Any]:
    """What is loaded, what would be loaded, and what the cards report."""
    loaded, nouveau = (Path(path) for path in MODULE_FILES)
    library = run("ldconfig", "-p")[1]
    place = re.search(r"libnvidia-ml\.so\.1 .*=> (\S+)", library)
    found = re.search(r"\.so\.(\d+(?:\.\d+)+)$", os.path.realpath(place.group(1))) if place else None
    rc, cards = run("nvidia-smi", f"--query-gpu={','.join(CARD_FIELDS)}", "--format=csv,noheader,nounits")
    efi = [path.read_bytes() for path in Path("/sys/firmware/efi/efivars").glob("SecureBoot-*")]
    kernel = os.uname().release
    return {
        "kernel": kernel,
        "loaded": loaded.read_text(encoding="ascii").strip() if loaded.is_file() else "",
        "nouveau": nouveau.is_dir(),
        "library": found.group(1) if found else "",
        "cards": read_cards(cards) if rc == 0 else [],
        "cards_error": " ".join(cards.split())[:300].rstrip(".") or f"nvidia-smi: exit status {rc}",
        "dkms": run("dkms", "status")[1].strip(),
        "headers_missing": not Path(f"/lib/modules/{kernel}/build").exists(),
        "initramfs": shutil.which("update-initramfs") is not None,
        "initramfs_stale": initramfs_stale(kernel),
        "kernel_on_trial": Path("/etc/default/grub.d/90-gpu-rig-trial.cfg").is_file(),
        "secure_boot": any(value[-1:] == b"\x01" for value in efi),
    }


def refused_limits(cards: list[dict[str, str]], limit_w: float | None) -> list[str]:
    """The cards whose own range does not hold the asked power limit, W."""
    if limit_w is None:
        return []
    return [
        f"card {card['index']} (…{card['uuid'][-4:]}, {card['power.min_limit']} to {card['power.max_limit']} W)"
        for card in cards
        if not as_watts(card["power.min_limit"], -1) <= limit_w <= as_watts(card["power.max_limit"], -1)
    ]


def limit_refusal(cards: list[dict[str, str]], limit_w: float | None, psu_w: float | None, cpu_w: float) -> str:
    """Why the cards' power limit, W, cannot be set with this power supply; empty where it can."""
    outside = refused_limits(cards, limit_w)
    if outside:
        return (
            f"nvidia_driver_power_limit_w: {limit_w} is outside the range of {' and '.join(outside)}. Choose a figure "
            "within it, or leave the variable out for the board's default."
        )
    defaults = [as_watts(card["power.default_limit"], 0) for card in cards]
    if psu_w is None:
        raised = [default for default in defaults if limit_w is not None and limit_w > default]
        return (
            f"nvidia_driver_power_limit_w: {limit_w} is more than the board's own {raised[0]:.0f} W. Say with "
            "nvidia_driver_psu_w what the power supply gives, or stay at the board's figure."
            if raised
            else ""
        )
    cards_w = sum(defaults) if limit_w is None else limit_w * len(cards)
    total_w, planned_w = cards_w + cpu_w + REST_W, PSU_SHARE * psu_w
    if total_w <= planned_w:
        return ""
    most_w = int((planned_w - cpu_w - REST_W) // max(len(cards), 1))
    return (
        f"{len(cards)} cards at {cards_w:.0f} W together, {cpu_w:.0f} W for the CPU (nvidia_driver_cpu_w) and "
        f"{REST_W} W for the rest are {total_w:.0f} W, more than {PSU_SHARE} of nvidia_driver_psu_w: {psu_w:.0f}. "
        f"Set nvidia_driver_power_limit_w to at most {most_w}, or fit a larger power supply."
    )


def cards_differ(cards: list[dict[str, str]], limit_w: float | None, persistence: bool) -> bool:
    """Whether some card is set otherwise than asked."""
    wanted = "Enabled" if persistence else "Disabled"
    return any(
        card["persistence_mode"] != wanted or (limit_w is not None and as_watts(card["power.limit"], -1) != limit_w)
        for card in cards
    )


def as_watts(text: str, otherwise: float) -> float:
    """A figure of nvidia-smi; `otherwise` where the card does not tell (`[N/A]`)."""
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else otherwise


def main(argument: str) -> None:
    """Print the JSON object."""
    wishes = json.loads(argument)
    looked = look_at_rig()
    limit_w = wishes["power_limit_w"]
    looked["limit_refusal"] = limit_refusal(looked["cards"], limit_w, wishes["psu_w"], wishes["cpu_w"])
    looked["options_differ"] = options_differ(wishes["options"])
    looked["settings"] = [path for path in wishes["settings"] if Path(path).exists()]
    looked["cards_differ"] = cards_differ(looked["cards"], limit_w, wishes["persistence"])
    json.dump(looked, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
