"""The test of the host's memory as it runs on a rig: how much, inside which limits, and what it brings home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rigctl.agent.scripts import host_memory as script
from rigctl.checks import host_memory as check
from rigctl.model.verdict import Verdict
from rigctl.parse import stress_ng
from tests.checks import healthy as h

MEMINFO = "MemTotal:       65000000 kB\nMemFree:         100 kB\nMemAvailable:    {free} kB\n"
CGROUP = "0::/system.slice/rigctl-2026-11-30T2300Z-7f3a.service\n"
STRESS_NG = """#!/bin/sh
printf '%s\\n' "$@" >"{place}/asked"
while [ "$1" != --yaml ]; do shift; done
cat >"$2" <<'Y'
{report}Y
{said}
exit {status}
"""
SYSTEMD_RUN = """#!/bin/sh
printf '%s\\n' "$@" >"{place}/scope"
while [ "${{1#--}}" != "$1" ]; do shift; done
exec "$@"
"""


@pytest.fixture
def rig(tmp_path, monkeypatch):
    """A rig's programs and /proc, of ours."""

    def put(status=0, said="", free=4_000_000):
        texts = {
            "stress-ng": STRESS_NG.format(
                place=tmp_path, report=json.loads(h.host_memory())["report"], status=status, said=said
            ),
            "systemd-run": SYSTEMD_RUN.format(place=tmp_path),
        }
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        (tmp_path / "proc/self").mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc/meminfo").write_text(MEMINFO.format(free=free))
        (tmp_path / "proc/self/cgroup").write_text(CGROUP)
        return tmp_path / "proc"

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return put


def test_it_tests_a_share_of_what_is_free_inside_a_limit_that_ends_with_the_run(rig, tmp_path):
    found = script.measure({"seconds": 300, "share": 0.5}, rig())
    assert found["bytes"] == 2_000_000 * 1024 // script.MIB * script.MIB
    asked = (tmp_path / "asked").read_text().split("\n")
    assert asked[asked.index("--vm-bytes") + 1] == str(found["bytes"])
    assert {"--verify", "--oomable", "--vm-keep"} <= set(asked)
    scope = (tmp_path / "scope").read_text().split("\n")
    assert "--property=BindsTo=rigctl-2026-11-30T2300Z-7f3a.service" in scope
    limit = next(int(word.rpartition("=")[2]) for word in scope if "MemoryMax" in word)
    assert found["bytes"] < limit < found["bytes"] * 1.2
    assert "--property=MemorySwapMax=0" in scope
    assert stress_ng.parse(found["report"])[0].stressor == "vm"


@pytest.mark.parametrize(("status", "verdict"), [(0, Verdict.PASS), (2, Verdict.FAIL), (3, Verdict.ERROR)])
def test_from_the_rigs_program_to_the_verdict(rig, status, verdict):
    said = "echo 'stress-ng: fail:  [12] vm: detected 3 bit errors while stressing memory'" if status else ""
    found = script.measure({"seconds": 300, "share": 0.5}, rig(status, said))
    logs = h.with_logs(host_memory__json=json.dumps(found))
    (said_of_it,) = check.host_memory(h.spec(), h.readings(logs=logs))
    assert said_of_it.verdict is verdict
    assert ("bit errors" in said_of_it.reason) == bool(status)


def test_too_little_memory_no_unit_and_no_words_of_the_kernel(rig):
    with pytest.raises(script.MemoryTestError, match="only 29 MiB"):
        script.measure({"seconds": 1, "share": 0.5}, rig(free=30_000))
    least = script.LEAST_BYTES
    assert script.size_of(least, 1.0) == least
    with pytest.raises(script.MemoryTestError):
        script.size_of(least - 1, 1.0)
    with pytest.raises(script.MemoryTestError, match="unit"):
        script.unit_of("0::/user.slice/session-1.scope\n")
    with pytest.raises(script.MemoryTestError, match="meminfo"):
        script.free_bytes("MemTotal: 5 kB\n")


def test_a_rig_without_the_program_says_so_in_its_file(tmp_path):
    program = Path(script.__file__)
    out = tmp_path / "host_memory.json"
    argv = [sys.executable, str(program), "--arguments", '{"seconds": 1, "share": 0.1}', "--out", str(out)]
    done = subprocess.run(argv, check=False, env={"PATH": str(tmp_path)}, timeout=60)
    assert done.returncode == 1
    assert "not installed" in json.loads(out.read_text())["error"]
