"""The coverage-guided fuzzer: `make fuzz` gives every parser some seconds of it, starting from its known forms.

atheris (the optional extra `fuzz`) sees which branches of a parser an input takes and keeps what takes new ones. What
an input may not do is said in `targets.Target.check`; beside that, the stranger among the lines of an accepted text
must be seen. An input that does it is printed, and belongs into `forms/` or a test once the parser is mended.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .targets import STRANGER, TARGETS, Refused, Target

SECONDS = 20
"""Per parser."""
_MAX_LENGTH = 4096
"""Characters of an input: the largest form is about this long, and longer inputs are slower and find no more."""


def say(line: str) -> None:
    """Write one line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def one_input(target: Target, data: bytes) -> None:
    """Try one input; AssertionError, or any exception that a parser may not raise, is a find."""
    text = data.decode("utf-8", errors="replace")
    try:
        target.check(text)
    except Refused:
        return
    lines = text.splitlines(keepends=True)
    if not target.by_line or not lines:
        return
    # Where the stranger goes depends on the input, so that the same input always does the same.
    at = len(data) * 7919 % (len(lines) + 1)
    if any(not line.endswith(("\n", "\r")) for line in lines[:at]):
        return
    try:
        target.read("".join([*lines[:at], STRANGER + "\n", *lines[at:]]))
    except Refused:
        return
    raise AssertionError(f"{target.name}: a stranger at line {at + 1} is not seen")


def _in_this_process(name: str, seconds: int, folder: Path) -> None:
    """Fuzz one parser until the time is over; atheris ends the process."""
    import atheris  # noqa: PLC0415 - an optional extra

    target = next(target for target in TARGETS if target.name == name)
    for case, text in target.forms.items():
        (folder / case).write_bytes(text.encode())
    atheris.instrument_all()
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={_MAX_LENGTH}",
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-verbosity=0",
    ]
    options += ["-print_final_stats=1", f"-artifact_prefix={folder}/find-"]
    atheris.Setup([sys.argv[0], *options, str(folder)], lambda data: one_input(target, data))
    atheris.Fuzz()


def _fuzz(target: Target, seconds: int) -> bool:
    """Fuzz one parser in a process of its own; True when nothing was found."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.parse.fuzz", "--child", folder, "--seconds", str(seconds), target.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 120)
        said = done.stdout + done.stderr
        runs = next((line.split()[-1] for line in said.splitlines() if "number_of_executed_units" in line), "no")
        finds = sorted(Path(folder).glob("find-*"))
        say(f"{target.name:<18} {runs:>9} inputs  {'nothing found' if not done.returncode else 'FOUND'}")
        if done.returncode:
            say("\n".join(said.splitlines()[-40:]))
            for find in finds:
                say(f"the input: {find.read_bytes()!r}")
        return done.returncode == 0


def main() -> int:
    """Fuzz the parsers that are named, or all; exit status 1 when something was found, 2 without atheris."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *(target.name for target in TARGETS)], metavar="PARSER")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="for each parser")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        _in_this_process(asked.names[0], asked.seconds, asked.child)
    try:
        import atheris  # noqa: F401, PLC0415 - an optional extra
    except ImportError:
        say("error: atheris is not installed\nhint: pip install 'rigctl[fuzz]' (it has no wheel for every Python)")
        return 2
    targets = [target for target in TARGETS if not asked.names or target.name in asked.names]
    results = [_fuzz(target, asked.seconds) for target in targets]
    say(f"{len(results)} parsers, {results.count(False)} with finds")
    return 0 if all(results) else 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    sys.exit(main())
