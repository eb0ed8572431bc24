"""`rigctl site`: the static site of a fleet."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from rigctl.cli.common import DEFAULT_RUNS, IndexOpt, JsonOpt, RunsOpt, console, emit_json
from rigctl.errors import UsageError

EPILOG = "Example: rigctl site --output site --serve"
OutputOpt = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write into.")]
ServeOpt = Annotated[
    bool, typer.Option("--serve", help="Serve it on this machine, with /metrics for Prometheus, until Ctrl-C.")
]
PortOpt = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="With --serve: the port.")]
AnewOpt = Annotated[bool, typer.Option("--anew", help="Write every page again.")]
PORT = 8780
METRICS = "/metrics"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("site", epilog=EPILOG)(site_command)


def site_command(
    output: OutputOpt = Path("site"),
    serve: ServeOpt = False,
    port: PortOpt = PORT,
    anew: AnewOpt = False,
    runs: RunsOpt = DEFAULT_RUNS,
    index_url: IndexOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Write fleet, rigs, runs and checks as pages that open from a file or any web server; only what changed."""
    from rigctl.site import build  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.store.index import Index  # noqa: PLC0415

    if not runs.is_dir():
        raise UsageError(f"there is no folder of runs {runs}", "name it with --runs, or start with `rigctl accept`")
    with Index.open(runs, index_url) as index:
        unreadable = index.update().unreadable
        built = build(index, output, datetime.now(UTC).replace(microsecond=0), anew=anew)
    for folder, why in (*unreadable, *built.left_out):
        console.print(f"left out: {folder}: {why}", markup=False, soft_wrap=True)
    if as_json:
        emit_json({"path": str(output / "index.html"), "pages": built.pages, "runs": built.runs})
    else:
        typer.echo(str(output / "index.html"))
    if serve:
        _serve(output, port, runs, index_url)


def _serve(folder: Path, port: int, runs: Path, index_url: str | None) -> None:
    from rigctl.metrics import Endpoint  # noqa: PLC0415
    from rigctl.site.serve import server_for  # noqa: PLC0415

    try:
        server = server_for(folder, port, {METRICS: Endpoint(runs, index_url).answer})
    except OSError as error:
        raise UsageError(f"port {port} cannot be used: {error.strerror}", "name another one with --port") from error
    with server:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        console.print(f"{address}/ · metrics for Prometheus at {address}{METRICS} (Ctrl-C ends it)", soft_wrap=True)
        server.serve_forever()
