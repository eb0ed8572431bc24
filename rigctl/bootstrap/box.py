"""What a box is, before anything was installed on it: one look, read by any shell."""

from __future__ import annotations

from collections.abc import Iterator  # noqa: TC003 - pydantic reads annotations

from pydantic import BaseModel, ConfigDict

LOOK = r"""
export LC_ALL=C
say() { printf '%s=%s\n' "$1" "$2"; }
say os "$(sed -n 's/^PRETTY_NAME=//p' /etc/os-release | tr -d '"')"
say kernel "$(uname -r)"
say architecture "$(uname -m)"
say product "$(cat /sys/class/dmi/id/product_name 2> /dev/null)"
say cpu "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
say cpu_threads "$(nproc)"
say memory_kib "$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo)"
say python "$(python3 -c 'import platform; print(platform.python_version())' 2> /dev/null)"
for place in / /boot; do
  df -Pk "$place" 2> /dev/null | sed 1d | while read -r device size used free rest; do
    say disk "$place $device $size $free"
  done
done
if command -v lspci > /dev/null; then
  lspci -d 10de: | grep -E '(VGA compatible|3D|Display) controller' | while read -r card; do say card "$card"; done
else
  for device in /sys/bus/pci/devices/*; do
    case "$(cat "$device/vendor" 2> /dev/null) $(cat "$device/class" 2> /dev/null)" in
      "0x10de 0x03"*) say card "${device##*/} NVIDIA device $(cat "$device/device")";;
    esac
  done
fi
if [ ! -d /sys/firmware/efi ]; then
  say secure_boot 'off (no UEFI)'
else
  # The variable's fifth byte, after four of attributes.
  state=$(od -An -tu1 -j4 -N1 /sys/firmware/efi/efivars/SecureBoot-* 2> /dev/null | tr -d ' ')
  case $state in 1) say secure_boot on;; 0) say secure_boot off;; *) say secure_boot unknown;; esac
fi
if command -v mokutil > /dev/null; then
  case "$(mokutil --sb-state 2> /dev/null)" in
    *enabled*) say secure_boot on;; *disabled*) say secure_boot off;;
  esac
fi
"""
"""Prints `key=value` lines; the last one of a key counts, except for disks and cards."""

_GIB_IN_KIB = 1 << 20


class Disk(BaseModel):
    """One file system."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    place: str
    device: str
    size_gib: float
    free_gib: float


class Box(BaseModel):
    """What a box is; empty where it did not say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    os: str
    kernel: str
    architecture: str
    product: str
    """As its firmware says: a simulated rig says so here."""
    cpu: str
    cpu_threads: str
    memory_gib: float
    python: str
    disks: tuple[Disk, ...]
    cards: tuple[str, ...]
    """As lspci names NVIDIA's cards, with their place."""
    secure_boot: str
    """on, off, or why that is not known."""

    def lines(self) -> Iterator[tuple[str, str]]:
        """What people are told: a word and what was found."""
        yield "system", f"{self.os or 'unknown'}, kernel {self.kernel}, {self.architecture}"
        if self.product:
            yield "machine", self.product
        yield "CPU", f"{self.cpu or 'unknown'}, {self.cpu_threads} threads, {self.memory_gib:.0f} GiB"
        for card in self.cards:
            yield "GPU", card
        if not self.cards:
            yield "GPU", "no NVIDIA card on the PCI bus"
        for disk in self.disks:
            yield "disk", f"{disk.place}: {disk.free_gib:.1f} of {disk.size_gib:.1f} GiB free ({disk.device})"
        yield "Secure Boot", self.secure_boot
        yield "python3", self.python or "not installed: run there: apt-get install python3-minimal"


def read_box(said: str) -> Box:
    """Read what `LOOK` printed. Raises ValueError where a part is missing or no number."""
    values: dict[str, str] = {}
    disks: dict[str, Disk] = {}
    cards: list[str] = []
    for line in said.splitlines():
        key, _, value = line.partition("=")
        if key == "disk":
            place, device, size, free = value.split()
            # /boot that is no file system of its own is the same device again.
            if device not in {disk.device for disk in disks.values()}:
                disks[place] = Disk(place=place, device=device, size_gib=_gib(size), free_gib=_gib(free))
        elif key == "card":
            cards.append(value)
        else:
            values[key] = value.strip()
    memory = _gib(values.pop("memory_kib"))
    return Box.model_validate({**values, "memory_gib": memory, "disks": tuple(disks.values()), "cards": tuple(cards)})


def _gib(kib: str) -> float:
    return round(int(kib) / _GIB_IN_KIB, 1)
