"""What the suite asks of drivers, asked on all rigs at once before they are judged.

The suite itself goes from rig to rig. One whose driver has begun to hang would hold all others for as long as each
of its questions may take.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from rigctl.acceptance.asking import NO_ANSWER, AskingBackend, ask
from rigctl.checks.probes import not_asked
from rigctl.model.reading import CommandReply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rigctl.acceptance.plugin import Case

# With a dead card nvidia-smi can hang for good, so each call is bounded on the rig.
TOPO = "timeout -k 5 30 nvidia-smi topo -m"
NVLINK = "timeout -k 5 30 nvidia-smi nvlink -s"
TIMED_OUT = frozenset({124, 137})
"""What `timeout` ends with when it had to end a command."""
AT_ONCE = 32


def questions(case: Case) -> list[str]:
    """Return what the suite will ask this rig's driver."""
    parts = case.rig.spec.parts
    wanted = [TOPO] if parts.links or parts.nvswitch_links else []
    wanted += [NVLINK] if parts.min_nvlink_gb_per_s else []
    return [command for command in wanted if not_asked(case.readings, command) is None]


def ask_ahead(cases: Sequence[Case], record: Callable[[str, CommandReply], None]) -> None:
    """Ask all rigs at once; their tests then find the answers. `record(rig, reply)` keeps what was not asked."""
    if not cases:
        return
    with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(cases)), thread_name_prefix="ask") as pool:
        for case, answers in zip(cases, pool.map(_answers, cases), strict=True):
            for reply in answers:
                if reply.stderr.startswith(_NOT_ASKED):
                    record(case.rig.name, reply)
            backend = case.host.backend
            if isinstance(backend, AskingBackend):
                backend.ahead = {reply.command: reply for reply in answers}


_NOT_ASKED = "not asked: "


def _answers(case: Case) -> list[CommandReply]:
    """Ask one rig, one question after another; nothing more once the driver has not answered in time."""
    replies: list[CommandReply] = []
    for command in questions(case):
        if replies and (replies[-1].exit_status in TIMED_OUT or replies[-1].exit_status < 0):
            why = f"{_NOT_ASKED}`{replies[-1].command}` was not answered in time"
            replies.append(CommandReply(command=command, exit_status=NO_ANSWER, stdout="", stderr=why))
        else:
            replies.append(ask(case.host, command))
    return replies
