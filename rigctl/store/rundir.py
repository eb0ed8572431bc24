"""One run's directory: the truth of what was asked, done and measured."""

from __future__ import annotations

import gzip
import threading
import time
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import rigctl
from rigctl.errors import UsageError
from rigctl.model.reading import CommandReply, Facts, KernelMessage, Readings, RigEvent, Sample
from rigctl.model.run import RunInfo, RunRig
from rigctl.model.verdict import Record
from rigctl.store.canonical import dumps
from rigctl.store.files import append_durably, fsync_dir, replace_durably, writing
from rigctl.store.ids import find_run, new_run_id
from rigctl.store.lines import read_bytes, read_lines, read_model
from rigctl.store.outcome import JournalEntry, RigOutcome
from rigctl.store.pruned import PACKED, TELEMETRY, THINNED, telemetry_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

Kind = Literal["accept", "check", "provision", "upgrade"]

_CHANGES: tuple[Kind, ...] = ("provision", "upgrade")

_STRUCTURED = frozenset(
    {TELEMETRY, PACKED, THINNED, "events.jsonl", "kernel.jsonl", "commands.jsonl", "facts.json", "outcome.json"}
)
_RUN_FILES = (".json", ".jsonl", ".html", ".xml", ".log")
_TRIES = 32


class RunDir:
    """A run's directory; its methods may be called from several threads.

    Every write is on the disk when the method returns. `readings`, `read_record` and their like raise UsageError
    for damage, naming file and line.
    """

    def __init__(self, path: Path) -> None:
        """Take `path` as it is; use `create` or `open`."""
        self.path = path
        self._journal_lock = threading.Lock()
        self._next_seq: int | None = None
        self._file_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._info: RunInfo | None = None

    @classmethod
    def create(  # noqa: PLR0913 - they are the fields of run.json
        cls,
        root: Path,
        kind: Kind,
        *,
        rigs: Iterable[RunRig] = (),
        profile: str = "",
        asked: Mapping[str, Any] | None = None,
        now: datetime | None = None,
    ) -> RunDir:
        """Make the directory of a new run under `root`, with its run.json and one folder per rig.

        Raises:
            UsageError: `root` cannot be written, or a rig's name cannot be a folder's.
            RigctlError: no room left.
        """
        moment = now or datetime.now(UTC)
        wanted = tuple(rigs)
        for rig in wanted:
            _check_name(rig.name)
        run = cls(_make_folder(root, moment))
        with writing(run.path):
            for rig in wanted:
                (run.path / rig.name).mkdir()
            fsync_dir(run.path)
        info = RunInfo(
            run_id=run.path.name,
            kind=kind,
            profile=profile,
            started_at=moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            rigctl_version=rigctl.__version__,
            asked=dict(asked or {}),
            rigs=wanted,
        )
        run.write_json_atomic("run.json", info)
        return run

    @classmethod
    def open(cls, root: Path, run_id_or_path: str, *, kind: Kind | None = None) -> RunDir:
        """Open a run by id, path or `latest`, after a look at run.json, journal and record.

        Raises:
            UsageError: no such run, a run of another kind than `kind`, or one of these files is damaged.
        """
        run = cls(find_run(root, run_id_or_path, kind))
        info = run.read_info()
        if kind is not None and info.kind != kind:
            raise UsageError(f"run {info.run_id} is of kind {info.kind}, not {kind}", f"name a run of kind {kind}")
        run.journal_entries()
        if run.has_record:
            run.read_record()
        return run

    @property
    def run_id(self) -> str:
        """The run's id, from run.json: a directory may be copied under another name."""
        return self.read_info().run_id

    @property
    def has_record(self) -> bool:
        """Whether the run was judged."""
        return (self.path / "record.json").is_file()

    def rig_path(self, rig: str, name: str = "") -> Path:
        """Return the path of a rig's file, or of its folder, which then exists."""
        _check_name(rig)
        folder = self.path / rig
        if not folder.is_dir():
            with writing(folder):
                folder.mkdir(exist_ok=True)
                fsync_dir(self.path)
        return folder / name if name else folder

    def journal(self, event: str, **detail: Any) -> None:
        """Append one event to journal.jsonl, with wall and monotonic clock."""
        with self._journal_lock:
            if self._next_seq is None:
                entries = self.journal_entries()
                self._next_seq = entries[-1].seq + 1 if entries else 1
            entry = {
                "seq": self._next_seq,
                "t_wall_s": time.time(),
                "t_mono_s": time.monotonic(),
                "event": event,
                "detail": detail,
            }
            line = dumps(entry, indent=None).encode() + b"\n"
            append_durably(self.path / "journal.jsonl", line, mend_cut_line=True)
            self._next_seq += 1

    def journal_entries(self) -> tuple[JournalEntry, ...]:
        """Return the journal; a last line that a crash has cut is left out."""
        return read_lines(self.path / "journal.jsonl", JournalEntry)

    def append_raw(self, rig: str, file: str, data: bytes) -> None:
        """Append bytes as they came to a rig's file."""
        path = self.rig_path(rig, file)
        with self._file_locks[rig]:
            append_durably(path, data)

    def append_run_file(self, file: str, data: bytes) -> None:
        """Append bytes as they came to a file of the whole run, such as ansible.log."""
        with self._file_locks[f"/{file}"]:
            append_durably(self.path / file, data)

    def append_command(self, rig: str, reply: CommandReply) -> None:
        """Append what testinfra asked and got to the rig's commands.jsonl."""
        path = self.rig_path(rig, "commands.jsonl")
        with self._file_locks[rig]:
            append_durably(path, dumps(reply, indent=None).encode() + b"\n", mend_cut_line=True)

    def forget_commands(self, rig: str) -> None:
        """Forget what testinfra had asked a rig, for it is asked again."""
        path = self.rig_path(rig, "commands.jsonl")
        with self._file_locks[rig], writing(path):
            path.unlink(missing_ok=True)

    def write_json_atomic(self, name: str, value: Any) -> Path:
        """Write a model or plain data as canonical JSON to `name`, which may be `RIG/file`."""
        path = self.path / name
        replace_durably(path, dumps(value).encode() + b"\n")
        return path

    def write_text_atomic(self, name: str, text: str) -> Path:
        """Write a text, such as report.html, in one piece."""
        path = self.path / name
        replace_durably(path, text.encode("utf-8", "replace"))
        return path

    def write_rig_outcome(self, rig: str, outcome: RigOutcome) -> None:
        """Write how measuring a rig ended."""
        self.rig_path(rig)
        self.write_json_atomic(f"{rig}/outcome.json", outcome)

    def write_record(self, record: Record) -> Path:
        """Write record.json."""
        return self.write_json_atomic("record.json", record)

    def read_info(self) -> RunInfo:
        """Return run.json, read once: it never changes."""
        if self._info is None:
            self._info = read_model(self.path / "run.json", RunInfo)
        return self._info

    def read_record(self) -> Record:
        """Return record.json.

        Raises:
            UsageError: the run was not judged yet, or the record is damaged or another run's.
        """
        kind = self.read_info().kind
        if not self.has_record and kind in _CHANGES:
            raise UsageError(f"run {self.run_id} is of kind {kind}: it measured nothing", f"its log is in {self.path}")
        if not self.has_record:
            raise UsageError(f"run {self.run_id} has no record yet", f"make it with `rigctl judge {self.run_id}`")
        again = f"remove it and make it again from the readings with `rigctl judge {self.run_id}`"
        record = read_model(self.path / "record.json", Record, again)
        if record.run_id != self.run_id:
            raise UsageError(
                f"{self.path / 'record.json'} is the record of run {record.run_id}, not of {self.run_id}", again
            )
        return record

    def outcome(self, rig: str) -> RigOutcome | None:
        """Return how measuring a rig ended; None when the controller did not live to write it."""
        path = self.path / rig / "outcome.json"
        return read_model(path, RigOutcome) if path.exists() else None

    def commands(self, rig: str) -> tuple[CommandReply, ...]:
        """Return what testinfra asked this rig and got."""
        return read_lines(self.path / rig / "commands.jsonl", CommandReply)

    def readings(self, rig: str) -> Readings:
        """Return everything that this run knows of a rig; what was not measured is empty or None.

        Samples may be thinned or gone (`rigctl.store.pruned.telemetry_state`): `judge_run` refuses those.
        """
        folder = self.path / rig
        facts = folder / "facts.json"
        outcome = self.outcome(rig)
        known = outcome or RigOutcome(
            unreached="measuring this rig did not come to its end: the controller stopped in the middle",
            unreached_fix=f"rigctl accept --resume {self.run_id}; the rig stops its load by itself",
        )
        return Readings(
            rig=rig,
            facts=read_model(facts, Facts) if facts.exists() else None,
            samples=read_lines(telemetry_file(folder), Sample),
            events=read_lines(folder / "events.jsonl", RigEvent),
            logs=_logs(folder),
            kernel=read_lines(folder / "kernel.jsonl", KernelMessage),
            kernel_read=known.kernel_read,
            boot_id_after=known.boot_id_after,
            unreached=known.unreached,
            unreached_fix=known.unreached_fix,
            cuts=known.cuts,
        )

    def compress(self) -> None:
        """Pack each rig's telemetry after the run; reading it stays the same, and a crash leaves it whole."""
        for plain in sorted(self.path.glob(f"*/{TELEMETRY}")):
            with self._file_locks[plain.parent.name]:
                replace_durably(plain.with_name(PACKED), gzip.compress(plain.read_bytes(), 6, mtime=0))
                with writing(plain):
                    plain.unlink()
                    fsync_dir(plain.parent)


def _make_folder(root: Path, moment: datetime) -> Path:
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
    for _ in range(_TRIES):
        folder = root / new_run_id(moment.astimezone(UTC))
        with writing(folder):
            try:
                folder.mkdir()
            except FileExistsError:
                continue  # another run of this minute drew the same digits
            fsync_dir(root)
        return folder
    raise UsageError(f"{root} holds too many runs of one minute", "wait a minute, or name another --runs DIR")


def _check_name(rig: str) -> None:
    if not rig or rig.startswith(".") or "/" in rig or "\0" in rig or rig.endswith(_RUN_FILES):
        raise UsageError(f"a rig cannot be called {rig!r}", "its name is a folder's name in the run directory")


def _logs(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        return {}
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    return {p.name: read_bytes(p).decode("utf-8", "replace") for p in files if p.name not in _STRUCTURED}
