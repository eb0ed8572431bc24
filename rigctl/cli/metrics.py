"""`rigctl metrics`: figures for Prometheus, a dashboard for Grafana, rules that alarm."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rigctl.cli.common import DEFAULT_RUNS, IndexOpt, RunsOpt, console
from rigctl.errors import UsageError

EPILOG = "Example: rigctl metrics --output /var/lib/prometheus/node-exporter/rigctl.prom · rigctl metrics rules"
_STDOUT = Path("-")


class What(StrEnum):
    """What is printed."""

    VALUES = "values"
    DASHBOARD = "dashboard"
    RULES = "rules"


WhatArg = Annotated[
    What,
    typer.Argument(
        metavar="[values|dashboard|rules]",
        help="The metrics themselves, the dashboard for Grafana (JSON), or the alert rules for Prometheus (YAML).",
    ),
]
OutputOpt = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write there instead, in one step; values end in .prom; - is stdout."
    ),
]
OnlyOpt = Annotated[
    Path | None,
    typer.Option(
        "-i",
        "--inventory",
        envvar="RIGCTL_INVENTORY",
        metavar="PATH",
        help="Ansible inventory: its rigs and no others, those that were never accepted too.",
        show_default="all rigs of a year's runs",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("metrics", epilog=EPILOG)(metrics_command)


def metrics_command(
    what: WhatArg = What.VALUES,
    output: OutputOpt = None,
    inventory: OnlyOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    index_url: IndexOpt = None,
) -> None:
    """Write metrics of the rigs' newest acceptances for node_exporter's textfile collector, or print what uses them."""
    if what is not What.VALUES:
        _shipped(what, output)
        return
    from rigctl.inventory import load_fleet  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.metrics import look, registry_of, require_place, text, write_textfile  # noqa: PLC0415
    from rigctl.store.index import Index  # noqa: PLC0415

    target = None if output in (None, _STDOUT) else output
    if not runs.is_dir():
        raise UsageError(f"there is no folder of runs {runs}", "name it with --runs, or start with `rigctl accept`")
    if target is not None:
        require_place(target)
    fleet = load_fleet(inventory, "all") if inventory is not None else None
    rigs = {rig.name: rig.spec.rig_class for rig in fleet} if fleet is not None else None
    with Index.open(runs, index_url) as index:
        unreadable = index.update().unreadable
        for folder, why in unreadable:
            console.print(f"left out: {folder}: {why}", markup=False, soft_wrap=True)
        registry = registry_of(look(index, datetime.now(UTC), rigs=rigs, unreadable=len(unreadable)))
    if target is None:
        typer.echo(text(registry), nl=False)
    else:
        write_textfile(target, registry)
        typer.echo(str(target))


def _shipped(what: What, output: Path | None) -> None:
    from rigctl.metrics.shipped import dashboard, rules  # noqa: PLC0415
    from rigctl.store.files import replace_durably  # noqa: PLC0415

    shown = dashboard() if what is What.DASHBOARD else rules()
    if output is None or output == _STDOUT:
        typer.echo(shown, nl=False)
        return
    replace_durably(output, shown.encode())
    typer.echo(str(output))
