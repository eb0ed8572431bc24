"""Kernel messages of the simulated rig, into the real journal.

A container has no kernel log of its own. Entries with `_TRANSPORT=kernel` in a journal file are read by the unmodified
`journalctl -k`, and systemd's own `systemd-journal-remote` writes such files from the journal export format.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .paths import Paths

REMOTE = Path("/lib/systemd/systemd-journal-remote")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MACHINE_ID = Path("/etc/machine-id")
WARNING, NOTICE, ERROR = 4, 5, 3


class KernelLog:
    """Appends kernel messages to the journal and to the file that the `dmesg` shim prints."""

    def __init__(self, paths: Paths, journal: Path | None = None, remote: Path = REMOTE) -> None:
        self._paths = paths
        self._journal = journal
        self._remote = remote

    def write(self, *messages: str, priority: int = NOTICE) -> None:
        """Write messages, stamped now; CalledProcessError when the journal cannot be written."""
        wall_us, mono_us = time.time_ns() // 1000, time.monotonic_ns() // 1000
        with self._paths.kernel_log.open("a", encoding="utf-8") as log:
            log.writelines(f"{mono_us} {message}\n" for message in messages)
        if not self._remote.exists():
            return
        text = "".join(_export(m, priority, wall_us + i, mono_us + i) for i, m in enumerate(messages))
        journal = self._journal or _journal_file()
        journal.parent.mkdir(parents=True, exist_ok=True)
        command = [str(self._remote), f"--output={journal}", "-"]
        subprocess.run(command, input=text.encode(), check=True, capture_output=True, timeout=20)


def _journal_file() -> Path:
    """A file of the rig's own machine in the persistent journal: it is read by default and survives a reboot."""
    return Path("/var/log/journal") / MACHINE_ID.read_text(encoding="ascii").strip() / "rigsim-kernel.journal"


def _export(message: str, priority: int, wall_us: int, mono_us: int) -> str:
    boot_id = BOOT_ID.read_text(encoding="ascii").strip().replace("-", "")
    fields = {
        "__REALTIME_TIMESTAMP": wall_us,
        "__MONOTONIC_TIMESTAMP": mono_us,
        "_BOOT_ID": boot_id,
        "_TRANSPORT": "kernel",
        "_MACHINE_ID": MACHINE_ID.read_text(encoding="ascii").strip(),
        "_HOSTNAME": Path("/proc/sys/kernel/hostname").read_text(encoding="utf-8").strip(),
        "_SOURCE_MONOTONIC_TIMESTAMP": mono_us,
        "SYSLOG_FACILITY": 0,
        "SYSLOG_IDENTIFIER": "kernel",
        "PRIORITY": priority,
        "MESSAGE": message,
    }
    return "".join(f"{key}={value}\n" for key, value in fields.items()) + "\n"
