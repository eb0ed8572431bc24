"""Opening an index: SQLite beside the runs, or a database by URL; its tables are brought to this version first."""

from __future__ import annotations

import os
import socket
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from rigctl.errors import RigctlError, UsageError
from rigctl.store.index.tables import HEAD

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from sqlalchemy import Connection, Engine

FILE = "index.sqlite"
VARIABLE = "RIGCTL_INDEX"
BUSY_S = 60
"""Another process may be writing so long, seconds."""
LOCK = 7_190_431
"""The advisory lock under which one of several controllers writes (any number that nobody else uses there)."""
_VERSIONS = "alembic_version"


def open_engine(runs: Path, url: str | None) -> tuple[Engine, str]:
    """Return the database and the name under which it holds these runs.

    Args:
        runs: The folder of the run directories.
        url: A database by SQLAlchemy's URL; None takes `RIGCTL_INDEX`, and without that a file in `runs`.

    Raises:
        UsageError: the URL means nothing, its driver is missing, or the file's folder cannot be written.
        RigctlError: the database does not answer, or the file is damaged.
    """
    own = own_url(runs)
    asked = url or os.environ.get(VARIABLE) or own
    if asked == own:
        runs.mkdir(parents=True, exist_ok=True)
        engine, root = _engine(own), ""
    else:
        engine, root = _engine(asked), f"{socket.gethostname()}:{runs.resolve()}"
    try:
        _bring_up_to_date(engine)
    except DBAPIError as error:
        engine.dispose()
        raise unusable(engine, error) from error
    return engine, root


class Asked:
    """A connection in a transaction, whose complaints are ours."""

    def __init__(self, engine: Engine, *, writes: bool = False) -> None:
        self._engine = engine
        self._connection = engine.connect().execution_options(rigctl_writes=writes)

    def __enter__(self) -> Connection:
        self._connection.begin()
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._connection:
            if error is None:
                self._connection.commit()
        if isinstance(error, DBAPIError):
            raise unusable(self._engine, error) from error


def own_url(runs: Path) -> str:
    """The URL of the file beside the runs; it moves with them, so it names no place."""
    return f"sqlite:///{runs / FILE}"


def unusable(engine: Engine, error: DBAPIError) -> RigctlError:
    """Say what is wrong with a database, without its password."""
    said = str(error.orig).strip().splitlines()
    where = engine.url.render_as_string(hide_password=True)
    hint = "delete the file: it is made again from the run directories" if _is_file(engine) else "is the server up?"
    return RigctlError(f"the index {where} cannot be used: {said[0] if said else type(error.orig).__name__}", hint)


def lock(connection: Connection) -> None:
    """Be the only one that writes, until the transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        options: dict[str, Any] = {"connect_args": {"timeout": BUSY_S}} if parsed.drivername == "sqlite" else {}
        engine = create_engine(parsed, **options)
    except (ArgumentError, NoSuchModuleError) as error:
        hint = "such as postgresql://user@host/rigctl"
        raise UsageError(f"{VARIABLE}: {url!r} is no database's URL", hint) from error
    except ModuleNotFoundError as error:
        hint = "pip install 'rigctl[postgresql]'"
        raise UsageError(f"the database's driver is not installed: {error.name}", hint) from error
    if _is_file(engine):
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "begin", _begin)
    return engine


def _is_file(engine: Engine) -> bool:
    return engine.dialect.name == "sqlite"


def _prepare(connection: Any, _record: Any) -> None:
    """Readers and one writer at once; transactions are begun by us and not by the driver."""
    connection.isolation_level = None
    for line in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", "PRAGMA foreign_keys=ON"):
        connection.execute(line)


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("rigctl_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _bring_up_to_date(engine: Engine) -> None:
    with engine.connect() as connection:
        if _version(connection) == HEAD:
            return
    with engine.connect().execution_options(rigctl_writes=True) as connection, connection.begin():
        lock(connection)
        found = _version(connection)
        if found != HEAD:
            _migrate(connection, found)


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_VERSIONS):
        return None
    return connection.execute(text(f"SELECT version_num FROM {_VERSIONS}")).scalar()  # noqa: S608 - a constant


def _migrate(connection: Connection, found: str | None) -> None:
    from alembic import command  # noqa: PLC0415 - seldom needed, and slow to load
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(files("rigctl.store.index") / "migrations"))
    config.attributes["connection"] = connection
    known = {one.revision for one in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise UsageError(
            f"the index is of a newer version ({found}) than this rigctl knows ({HEAD})",
            "use the newer rigctl, or another index (RIGCTL_INDEX, or another --runs folder)",
        )
    command.upgrade(config, "head")
