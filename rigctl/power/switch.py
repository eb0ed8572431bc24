"""The ways to a rig's supply: management controller, smart plug, wake-on-LAN; each asked once, bounded, in words."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Protocol

from rigctl.errors import RigError

if TYPE_CHECKING:
    from rigctl.model.power import Ipmi, Plug, Power, Wake

IPMI_S = 20
"""ipmitool tries for so long, seconds; a controller that boots itself answers late."""
PLUG_S = 5
MAX_BYTES = 64 * 1024
ON, OFF = "on", "off"


class SwitchFailed(RigError):
    """The way to the supply did not answer, or refused."""


class Switch(Protocol):
    """One way to a rig's supply."""

    name: str
    cuts_mains: bool
    """Whether off means that the supply itself has no current: then nothing tells when the system has shut down."""

    def state(self) -> str:
        """`on` or `off`. Raises SwitchFailed."""

    def set_on(self) -> None:
        """Switch on. Raises SwitchFailed."""

    def set_off(self) -> None:
        """Switch off, at once. Raises SwitchFailed."""


class IpmiSwitch:
    """The management controller, through ipmitool."""

    cuts_mains = False

    def __init__(self, spec: Ipmi) -> None:
        self._spec = spec
        self.name = f"IPMI at {spec.address}"

    def state(self) -> str:
        """What the controller says of the chassis."""
        return ipmi_state(self._ask("chassis", "power", "status"))

    def set_on(self) -> None:
        """Switch on."""
        self._ask("chassis", "power", "on")

    def set_off(self) -> None:
        """Switch off, at once."""
        self._ask("chassis", "power", "off")

    def _ask(self, *words: str) -> str:
        program = shutil.which("ipmitool")
        if program is None:
            raise SwitchFailed("ipmitool is not installed on the controller", "run: apt-get install ipmitool")
        # The password goes through the environment: a command line is for everybody to read.
        login = ("-I", self._spec.interface, "-H", self._spec.address, "-U", self._spec.user, "-E")
        secret = {"IPMI_PASSWORD": self._spec.password.get_secret_value()}
        try:
            done = subprocess.run(
                [program, *login, *words],
                capture_output=True,
                text=True,
                timeout=IPMI_S,
                check=False,
                stdin=subprocess.DEVNULL,
                env=os.environ | secret,
            )
        except subprocess.TimeoutExpired as error:
            raise SwitchFailed(
                f"{self.name}: no answer within {IPMI_S} s", "is its network cable in, and the address right?"
            ) from error
        if done.returncode != 0:
            said = done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}"
            raise SwitchFailed(f"{self.name}: {said}", "user, password and privilege of rig_power.ipmi: right?")
        return done.stdout


def ipmi_state(text: str) -> str:
    """`on` or `off` from `ipmitool chassis power status`. Raises SwitchFailed for another form."""
    found = re.fullmatch(r"Chassis Power is (on|off)", text.strip(), re.IGNORECASE)
    if found is None:
        raise SwitchFailed(f"ipmitool said {text.strip()[:80]!r}, and neither on nor off", "ask it by hand")
    return found[1].lower()


class PlugSwitch:
    """A smart plug."""

    cuts_mains = True

    def __init__(self, spec: Plug) -> None:
        self._spec = spec
        self._base = spec.url.rstrip("/")
        self.name = f"plug at {self._base}"

    def state(self) -> str:
        """What the plug says of its relay."""
        return plug_state(self._spec.form, self._get(self._paths()[0]))

    def set_on(self) -> None:
        """Close the relay, and see that it is closed."""
        self._set(ON)

    def set_off(self) -> None:
        """Open the relay, and see that it is open."""
        self._set(OFF)

    def _set(self, wanted: str) -> None:
        _, path_on, path_off = self._paths()
        self._get(path_on if wanted == ON else path_off)
        found = self.state()
        if found != wanted:
            raise SwitchFailed(
                f"{self.name} stays {found}", "look at the plug: is its relay locked by a rule of its own?"
            )

    def _paths(self) -> tuple[str, str, str]:
        """What asks, switches on, switches off."""
        channel = self._spec.channel
        if self._spec.form == "tasmota":
            relay = f"Power{channel or ''}"
            return f"/cm?cmnd={relay}", f"/cm?cmnd={relay}%20On", f"/cm?cmnd={relay}%20Off"
        if self._spec.form == "shelly":
            base = "/rpc/Switch"
            return (
                f"{base}.GetStatus?id={channel}",
                f"{base}.Set?id={channel}&on=true",
                f"{base}.Set?id={channel}&on=false",
            )
        return f"/relay/{channel}", f"/relay/{channel}?turn=on", f"/relay/{channel}?turn=off"

    def _get(self, path: str) -> Any:
        # The plug stands in the rig's own network: no proxy.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(self._base + path, timeout=PLUG_S) as reply:
                return json.loads(reply.read(MAX_BYTES))
        except (OSError, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise SwitchFailed(
                f"{self.name}: {reason}", "is rig_power.plug right, and the plug in the network?"
            ) from error


def plug_state(form: str, answer: Any) -> str:
    """`on` or `off` from a plug's answer. Raises SwitchFailed for another form."""
    if isinstance(answer, dict):
        if form == "tasmota":
            said = [value for key, value in answer.items() if re.fullmatch(r"POWER\d?", key)]
            if len(said) == 1 and said[0] in ("ON", "OFF"):
                return str(said[0]).lower()
        else:
            said = [answer.get("output" if form == "shelly" else "ison")]
            if isinstance(said[0], bool):
                return ON if said[0] else OFF
    raise SwitchFailed(
        f"the plug said {json.dumps(answer)[:80]}, which is no {form} relay", "is rig_power.plug.form right?"
    )


def magic_packet(mac: str) -> bytes:
    """Six bytes of ones and the address sixteen times, as AMD's paper of 1995 has it."""
    return b"\xff" * 6 + bytes.fromhex(mac.replace(":", "")) * 16


def wake(spec: Wake) -> None:
    """Send the packet; nothing answers it. Raises SwitchFailed where it cannot be sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            channel.sendto(magic_packet(spec.mac), (spec.broadcast, spec.port))
    except OSError as error:
        raise SwitchFailed(
            f"wake-on-LAN to {spec.broadcast}: {error}", "rig_power.wake.broadcast must be the rig's own network's"
        ) from error


def switches(power: Power) -> list[Switch]:
    """The ways that can switch both on and off: the management controller first, which needs nobody to cut mains."""
    found: list[Switch] = []
    if power.ipmi is not None:
        found.append(IpmiSwitch(power.ipmi))
    if power.plug is not None:
        found.append(PlugSwitch(power.plug))
    return found
