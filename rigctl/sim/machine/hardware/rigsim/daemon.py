"""The daemon: ten times a second it reads what programs ask, advances the physics and shows the state."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

from . import built_in, changes, electrical, fabric, module, pcibus, sysfs, thermal
from .build import build_machine
from .faults import HARDWARE_FAULTS, Applied, Status, locked_book, read_book
from .kernellog import BOOT_ID, ERROR, KernelLog
from .loads import CpuMeter, Use, read_loads
from .mains import Supply, go_off
from .memory import CardMemory, clock_values
from .meter import WallMeter
from .state import STALE_AFTER_S, card_values, identity_values, link_values, render, write_atomically
from .wakes import Wakes
from .wiring import Wiring

if TYPE_CHECKING:
    from collections.abc import Callable

    from .paths import Paths
    from .physics import Card

TICK_S = 0.1
LONGEST_TICK_S = 1.0
"""After a pause (a suspended host) the physics goes on from where it was."""
CPU_EVERY = 5
METER_PORT = 8089
log = logging.getLogger("rigsim")


class Daemon:
    """One rig's hardware. `tick` is one step; `run` is the loop."""

    def __init__(self, paths: Paths, identity: dict[str, Any], tuning: dict[str, Any], port: int = METER_PORT) -> None:
        self.paths = paths
        self.identity = self._given = identity
        self.time_scale = float(tuning.get("time_scale", 1.0))
        self.machine = build_machine(identity, int(tuning.get("seed", 0)))
        self.wiring = Wiring()
        self.memory = CardMemory()
        self.wakes = Wakes()
        self.supply = Supply()
        self.go_off: Callable[[], None] = lambda: go_off(paths)
        self.kernel = KernelLog(paths)
        self.cpu_meter = CpuMeter()
        self.wall_energy_j = 0.0
        self.wall_w = self.machine.wall_w
        self.shown = electrical.Shown()
        self.shown_w = self.wall_w
        self.meter = WallMeter(lambda: (self.shown_w, self.wall_energy_j), float(identity["machine"]["mains_v"]), port)
        self.faults: list[Applied] = []
        self._book_stamp: tuple[int, int] | None = None
        self._module = self._seen_module()
        self._loaded_before = False
        self._ticks = 0

    def start(self) -> None:
        """Prepare the files, let faults that waited for a boot happen, and show a first state."""
        sysfs.prepare(self.paths, self.identity)
        pcibus.prepare(self.paths, self.identity)
        built_in.prepare(self.paths, self.identity)
        self._follow_book()
        self._happen("waiting for a boot")
        self.tick(TICK_S)

    def run(self, stop: threading.Event) -> None:
        """Tick until told to stop; the meter's port is closed at the end."""
        last_s = time.monotonic()
        next_s = last_s + TICK_S
        while not stop.wait(max(0.0, next_s - time.monotonic())):
            now_s = time.monotonic()
            self.tick(min(now_s - last_s, LONGEST_TICK_S))
            last_s, next_s = now_s, max(next_s + TICK_S, now_s)
        self.meter.set_online(online=False)

    def tick(self, dt_s: float) -> None:
        """One step of `dt_s` real seconds."""
        self._follow_book()
        self._follow_module()
        uses = self._follow_loads()
        if self._ticks % CPU_EVERY == 0:
            self.machine.cpu_load = self.cpu_meter.read(time.monotonic())
        active = [one for one in self.faults if one.active]
        thermal.follow(self.machine, active)
        electrical.follow(self.machine, active, self._module)
        asleep = self.wakes.step(dt_s, self.machine.cards, active)
        self.machine.step(dt_s, self.time_scale)
        self._lose_cards(self.wiring.step(dt_s, self.machine.cards, active, asleep))
        self._tell_of_memory(dt_s, active)
        self.wall_w = self.machine.wall_w
        if self.supply.trips(dt_s, self.wall_w, active):
            log.warning("the supply goes off")
            self.go_off()
        self.shown_w = self.shown.power_w(self.wall_w, active)
        self.wall_energy_j += self.wall_w * dt_s
        self.meter.set_online(online=self._fault("wall_meter_offline") is None)
        self._show(uses)
        self._ticks += 1

    def present(self) -> list[Card]:
        """The cards that the PCI bus shows, in bus order: this order is NVML's."""
        missing = self._fault("card_missing")
        slot = missing.values["slot"] if missing is not None else None
        own = {int(one["slot"]): str(one["pci_bus_id"]) for one in self.identity["cards"]}
        cards = [card for card in self.machine.cards if card.parts.slot != slot]
        return sorted(cards, key=lambda card: own[card.parts.slot])

    def _fault(self, name: str) -> Applied | None:
        return next((one for one in self.faults if one.name == name and one.active), None)

    def _follow_book(self) -> None:
        try:
            stat = self.paths.faults.stat()
            stamp = (stat.st_mtime_ns, stat.st_ino)
        except FileNotFoundError:
            stamp = (0, 0)
        if stamp != self._book_stamp:
            self._book_stamp = stamp
            self.faults = read_book(self.paths.faults)
            active = [one for one in self.faults if one.active]
            self.identity = changes.changed(self._given, active)
            changes.show(self.paths, self._given, self.identity, active)
            built_in.show_settings(self.paths, self.identity, active)
            fabric.follow(self.paths, self._given, active)

    def _happen(self, status: Status) -> None:
        """Let the faults that wait as `status` says happen, and say so in the book.

        One that waits for a boot waits for another than that in which it was applied. A fault that is no hardware
        runs its own program.
        """
        boot_id = BOOT_ID.read_text(encoding="ascii").strip()

        def due(one: Applied) -> bool:
            return one.status == status and (status != "waiting for a boot" or one.boot_id != boot_id)

        if not any(map(due, self.faults)):
            return
        with locked_book(self.paths.faults) as applied:
            happened = [one for one in applied if due(one)]
            for one in happened:
                one.status = "active"
        self._follow_book()
        for one in happened:
            if one.name not in HARDWARE_FAULTS:
                program = str(self.paths.machine / "faults.d" / one.name)
                pairs = [f"{key}={value}" for key, value in one.parameters.items()]
                subprocess.Popen([program, "apply", *pairs], start_new_session=True)

    def _follow_module(self) -> None:
        """A module that was just loaded knows no limits, no persistence and no energy yet, and says so in the log."""
        version = module.loaded_version(self.paths)
        if version == self._module:
            return
        self._module = version
        write_atomically(self.paths.run / "module.seen", version or "")
        if version is None:
            self.kernel.write(
                "nvidia-modeset: Unloading", "nvidia-nvlink: Unregistered Nvlink Core, major device number 237"
            )
            return
        for path in self.paths.control.glob("slot.*"):
            path.unlink()
        for card in self.machine.cards:
            card.energy_j = 0.0
        self.kernel.write(
            *module.load_messages(version, [str(self._own(card)["pci_bus_id"]) for card in self.present()])
        )

    def _seen_module(self) -> str | None:
        """The module that an earlier daemon of this boot followed: a restart of ours is no loading of the module."""
        try:
            return (self.paths.run / "module.seen").read_text(encoding="ascii") or None
        except FileNotFoundError:
            return None

    def _follow_loads(self) -> dict[int, list[Use]]:
        """Set each card's load and limit; return the uses by slot."""
        cards = self.present()
        by_name = {str(i): card for i, card in enumerate(cards)} | {self._own(card)["uuid"]: card for card in cards}
        uses: dict[int, list[Use]] = {card.parts.slot: [] for card in cards}
        for use in read_loads(self.paths.loads):
            if use.card in by_name:
                uses[by_name[use.card].parts.slot].append(use)
        for card in self.machine.cards:
            card.load = min(1.0, sum(use.util for use in uses.get(card.parts.slot, [])))
            card.limit_w = self._limit_w(card.parts.slot)
        loaded = any(card.load > 0 for card in self.machine.cards)
        if loaded and not self._loaded_before:
            self._happen("waiting for a load")
        self._loaded_before = loaded
        return uses

    def _limit_w(self, slot: int) -> float:
        try:
            return int((self.paths.control / f"slot.{slot}.power_limit_mw").read_text(encoding="ascii")) / 1000
        except (FileNotFoundError, ValueError):  # never set, or being written at this moment
            return float(self.identity["card"]["power_default_w"])

    def _lose_cards(self, falls: frozenset[int]) -> None:
        """Cards that shut themselves down, and those of the slots `falls`, leave the bus; taken back, they return."""
        for card in self.machine.cards:
            gone = card.parts.slot in falls or card.temp_c >= card.parts.temp_shutdown_c
            if gone and not card.lost:
                bus_id = str(self._own(card)["pci_bus_id"])[4:-2]
                text = f"NVRM: Xid (PCI:{bus_id}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
                self.kernel.write(text, priority=ERROR)
            card.lost = gone or (card.lost and card.parts.slot not in self.wiring.returned)

    def _tell_of_memory(self, dt_s: float, active: list[Applied]) -> None:
        """Let the cards' memory count its errors, and the driver say what it has to say of them."""
        ecc = bool(self.identity["card"].get("ecc"))
        for slot, told in self.memory.step(dt_s, self.machine.cards, active, ecc=ecc):
            card = next((one for one in self.present() if one.parts.slot == slot), None)
            if card is not None:
                bus_id = str(self._own(card)["pci_bus_id"])[4:-2]
                self.kernel.write(f"NVRM: Xid (PCI:{bus_id}): {told}", priority=ERROR)

    def _own(self, card: Card) -> dict[str, Any]:
        return next(own for own in self.identity["cards"] if int(own["slot"]) == card.parts.slot)

    def _show(self, uses: dict[int, list[Use]]) -> None:
        machine, cards = self.machine, self.present()
        wrong = self._fault("burn_errors")
        bus_ids = {card.parts.slot: str(self._own(card)["pci_bus_id"]) for card in cards}
        values: dict[str, object] = {
            "sim.format": 1,
            "sim.seq": self._ticks,
            "sim.t_mono_s": f"{time.monotonic():.3f}",
            "sim.stale_after_s": STALE_AFTER_S,
            "sim.time_scale": self.time_scale,
            "cpu.threads": self.identity["cpu"]["threads"],
            "cpu.load": f"{machine.cpu_load:.3f}",
            "cpu.power_w": f"{machine.cpu_w:.2f}",
            "cpu.temp_c": f"{machine.cpu_temp_c:.2f}",
            "loop.coolant_c": f"{machine.coolant_c:.2f}",
            "loop.flow": machine.flow,
            "wall.power_w": f"{self.wall_w:.1f}",
            "topology.common_ancestor": self.identity["topology"]["common_ancestor"],
            "gpu.count": len(cards),
            **self.wiring.rig(),
            **clock_values([one for one in self.faults if one.active]),
            **built_in.values(self.identity, [one for one in self.faults if one.active]),
        }
        for index, card in enumerate(cards):
            prefix, slot = f"gpu.{index}", card.parts.slot
            errors_per_s = wrong.values["per_s"] if wrong is not None and wrong.values["slot"] == slot else 0
            values |= identity_values(prefix, self.identity, self._own(card))
            values |= card_values(prefix, self.identity, card, uses[slot], errors_per_s)
            values |= thermal.shown(prefix, slot, [one for one in self.faults if one.active])
            values |= link_values(prefix, self.identity, slot, bus_ids, self.wiring.dead_links)
            values |= self.wiring.shown(prefix, card, values)
            values |= self.memory.shown(prefix, slot, self.identity)
        write_atomically(self.paths.state, render(values))
        # A sensor that stands still to the last eighth of a degree is a broken one.
        trembling_c = machine.noise.choice((-1, 0, 0, 1)) * sysfs.CPU_STEP_C
        sysfs.update(self.paths, machine.cpu_temp_c + trembling_c, machine.cpu_energy_j)
        pcibus.update(self.paths, self.identity, bus_ids, self.wiring.port_errors)
        built_in.show_clocks(self.paths, machine)
        sysfs.update_fans(self.paths, thermal.tachometers(machine, self.identity, self.faults, self._ticks))


def read_tuning(paths: Paths) -> dict[str, Any]:
    """`time_scale` and `seed` of this rig; empty when it was never tuned."""
    try:
        tuning: dict[str, Any] = json.loads(paths.tuning.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return tuning


def serve(daemon: Daemon) -> None:
    """Run the daemon in the foreground until SIGTERM or SIGINT."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    daemon.start()
    log.info("%d cards, time scale %g", len(daemon.present()), daemon.time_scale)
    daemon.run(stop)
