"""DCGM's own diagnosis, where DCGM is installed: `--arguments JSON --out FILE`, run by the rig's own Python.

FILE is written once, at the end: `{"installed": false}`, or

    {"installed": true, "argv", "exit_status", "seconds", "output"}     or     {"error", "hint"}

`output` is what `dcgmi diag -j` said, as it came; its exit status is not 0 where a test failed, too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from typing import Any

from .devices import ScriptError, run


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run the diagnosis at the level that the arguments name."""
    program = shutil.which(arguments["program"])
    if program is None:
        return {"installed": False}
    argv, limit_s = [program, "diag", "-r", str(arguments["level"]), "-j"], float(arguments["limit_s"])
    begun = time.monotonic()
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ScriptError(f"dcgmi diag did not end in {limit_s:g} s", "`systemctl restart nvidia-dcgm`") from error
    except OSError as error:
        raise ScriptError(f"{program} cannot be run: {error.strerror}", "install DCGM anew") from error
    return {
        "installed": True,
        "argv": argv,
        "exit_status": done.returncode,
        "seconds": round(time.monotonic() - begun, 1),
        "output": done.stdout.decode("utf-8", errors="replace"),
    }


if __name__ == "__main__":
    sys.exit(run(measure, "Ask DCGM for its diagnosis."))
