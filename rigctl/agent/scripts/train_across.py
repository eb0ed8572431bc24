"""Training together with other rigs: `--arguments JSON --out FILE`.

Each rig of the group runs this; torchrun joins their processes, one a card, at the first rig's address. The first waits
for the last one. All train together as in train_all, their gradients summed over the network after each step's
backward pass. FILE is written once, at the end:

    {"torch", "device", "model", "rigs", "ranks", "together": RATE, "weights_agree", "interface"}  or  {"error", "hint"}

`ranks` counts the processes of all rigs, RATE (as in train_all) is that of all rigs together as this rig saw it, and
`weights_agree` says whether all processes of all rigs hold the same weights, bit by bit.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
from typing import Any

from .devices import TORCH_MISSING, ScriptError, run, torch_version
from .train_all import launch, together

_SIOCGIFADDR = 0x8915
"""netdevice(7): the IPv4 address of an interface."""


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Join the others, train, and tell the pace of all."""
    if TORCH_MISSING:
        raise ScriptError(f"torch cannot be imported: {TORCH_MISSING}", "rigctl provision RIG --tags pytorch")
    across, cards = arguments["across"], int(arguments["ranks"])
    rigs = [str(rig) for rig in across["rigs"]]
    interface = interface_towards(str(across["address"]))
    environment = {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface} if interface else {}
    place = ["--nnodes", str(len(rigs)), "--node_rank", str(across["rank"])]
    place += ["--master_addr", str(across["address"]), "--master_port", str(across["port"])]
    place += ["--rdzv_conf", f"timeout={int(across['wait_s'])}"]
    try:
        found = launch({**arguments, "alone": False}, place, environment)
    except ScriptError as error:
        others = ", ".join(rig for number, rig in enumerate(rigs) if number != int(across["rank"]))
        where = f"{across['address']} port {across['port']}"
        raise ScriptError(
            f"training together with {others} failed: {error}",
            f"did they reach this step? can each rig reach {where} (firewall), and the others any port of it?",
        ) from error
    rate = together(found)
    world = cards * len(rigs)
    return {
        "torch": torch_version(),
        "device": arguments["training"]["device"],
        "model": arguments["training"]["model"],
        "rigs": len(rigs),
        "ranks": world,
        # Each step ends for all of them when the slowest process of any rig has sent its gradients.
        "together": {
            **rate,
            "tokens_per_s": rate["tokens_per_s"] * len(rigs),
            "step_tokens_per_s": [len(rigs) * step for step in rate["step_tokens_per_s"]],
        },
        "weights_agree": all(one["weights_agree"] for one in found),
        "interface": interface,
    }


def interface_towards(address: str) -> str | None:
    """Name the network interface that leads to an address; None where that cannot be told (IPv6, a name unknown).

    gloo and NCCL would take the one that the host's own name leads to, which often is the loopback.
    """
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.connect((address, 9))  # nothing is sent
            own = one.getsockname()[0]
            for _, name in socket.if_nameindex():
                if _address_of(one, name) == own:
                    return name
    except OSError:
        return None
    return None


def _address_of(one: socket.socket, interface: str) -> str | None:
    try:
        answer = fcntl.ioctl(one.fileno(), _SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
    except OSError:
        return None  # it has none
    return socket.inet_ntoa(answer[20:24])


if __name__ == "__main__":
    sys.exit(run(measure, "Train together with other rigs."))
