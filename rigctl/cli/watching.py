"""Show a fleet while work goes on: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from rich.live import Live

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.table import Table

REFRESH_HZ = 2


@contextlib.contextmanager
def watching(
    console: Console, table: Callable[[], Table], write_lines: Callable[[threading.Event], None]
) -> Iterator[None]:
    """Show `table()` again and again while the block runs; where there is no terminal, let `write_lines` write.

    `write_lines` runs in a thread of its own and returns soon after its event is set.
    """
    if console.is_terminal:
        with Live(get_renderable=table, console=console, refresh_per_second=REFRESH_HZ, transient=True):
            yield
        return
    ended = threading.Event()
    writer = threading.Thread(target=write_lines, args=(ended,), daemon=True, name="progress")
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
