"""`python3 -m rigsim COMMAND`: mount (at boot), run (the service), module boot|load|unload|version, fault …."""

from __future__ import annotations

import logging
import os
import socket
import sys
from typing import TYPE_CHECKING

from . import built_in, module, pcibus, sysfs
from .daemon import METER_PORT, Daemon, read_tuning, serve
from .faultctl import main as fault_main
from .identity import load_identity
from .paths import Paths

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Do one command; returns the exit status."""
    paths = Paths.from_environment()
    command, rest = (arguments[0], list(arguments[1:])) if arguments else ("", [])
    if command == "fault":
        return fault_main(rest)
    if command == "module":
        return _module(paths, rest)
    if command not in {"run", "mount"}:
        print(__doc__, file=sys.stderr)  # noqa: T201
        return 2
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    tuning = read_tuning(paths)
    identity = load_identity(paths.identity, rig=socket.gethostname(), seed=int(tuning.get("seed", 0)))
    if command == "mount":
        sysfs.prepare(paths, identity)
        pcibus.prepare(paths, identity)
        built_in.prepare(paths, identity)
        sysfs.mount(paths)
        return 0
    serve(Daemon(paths, identity, tuning, port=int(os.environ.get("RIGSIM_METER_PORT", METER_PORT))))
    return 0


def _module(paths: Paths, arguments: list[str]) -> int:
    action = arguments[0] if arguments else ""
    if action == "unload":
        module.unload(paths)
        return 0
    if action == "boot":
        sys.stdout.write(f"{module.boot(paths) or 'no nvidia module was loaded'}\n")
        return 0
    if action == "version":
        version = module.loaded_version(paths)
    elif action == "load":
        version = arguments[1] if len(arguments) > 1 else _installed()
    else:
        print(__doc__, file=sys.stderr)  # noqa: T201
        return 2
    if version is None:
        print("no nvidia module for this kernel", file=sys.stderr)  # noqa: T201
        return 1
    if action == "load":
        module.load(paths, version)
    print(version)  # noqa: T201
    return 0


def _installed() -> str | None:
    path = module.installed_file()
    return module.installed_version(path) if path is not None else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
