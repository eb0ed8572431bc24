"""A PostgreSQL server of the tests' own: in a private folder, on a socket there, as a user without rights."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
"""Debian keeps the server's programs off the path."""
OWNER = "nobody"
_START_S = 60


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a running server, without a database."""
    if not DEBIAN:
        pytest.fail("there is no PostgreSQL server here: run `tools/setup.sh tests`")
    folder = Path(tempfile.mkdtemp(prefix="rigctl-pg-"))
    user = pwd.getpwnam(OWNER)
    root = os.geteuid() == 0
    if root:
        os.chown(folder, user.pw_uid, user.pw_gid)

    def call(*words: str | Path) -> None:
        as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"] if root else []
        log = (folder / "log").open("ab")
        with log:
            done = subprocess.run(
                [*as_user, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False, cwd=folder,
                env={**os.environ, "HOME": str(folder), "LC_ALL": "C.UTF-8"}, timeout=_START_S,
            )  # fmt: skip
        assert done.returncode == 0, (folder / "log").read_text(encoding="utf-8", errors="replace")

    data = folder / "data"
    call(DEBIAN[-1] / "initdb", "-D", data, "-U", "rigctl", "-A", "trust", "-E", "UTF8", "--no-sync")
    settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    call(
        DEBIAN[-1] / "pg_ctl",
        "-D",
        data,
        "-w",
        "-t",
        str(_START_S),
        "-l",
        folder / "server.log",
        "-o",
        settings,
        "start",
    )
    try:
        yield f"host={folder}"
    finally:
        call(DEBIAN[-1] / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture
def postgresql(server: str) -> Iterator[str]:
    """The URL of an empty database."""
    import psycopg  # noqa: PLC0415 - only where a server is asked for

    name = f"t{os.urandom(6).hex()}"
    with psycopg.connect(f"{server} user=rigctl dbname=postgres", autocommit=True) as asked:
        asked.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        yield f"postgresql://rigctl@/{name}?{server}"
        asked.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]


@pytest.fixture(params=["sqlite", "postgresql"])
def index_url(request: pytest.FixtureRequest) -> str | None:
    """Each test on both: the file beside the runs, and a real server."""
    url: str | None = request.getfixturevalue("postgresql") if request.param == "postgresql" else None
    return url
