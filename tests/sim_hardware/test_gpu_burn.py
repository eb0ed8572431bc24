"""The simulated gpu-burn, built with its own Makefile and the simulated nvcc."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import MACHINE, NEEDS_COMPILER, wait_for

pytestmark = NEEDS_COMPILER
SASS = "-gencode arch=compute_86,code=sm_86"
ROW = re.compile(
    r"^\d+\.\d%  proc'd: -?\d+ \(\d+ Gflop/s\) - -?\d+ \(\d+ Gflop/s\)   errors: (-?\d+) ( \(WARNING!\)| \(DIED!\))?- "
    r"(-?\d+) ( \(WARNING!\)| \(DIED!\))?  temps: (\d+ C|--) - (\d+ C|--) ?$"
)


@pytest.fixture(scope="module")
def tree(built, tmp_path_factory):
    """The tree, compiled with machine code for the cards."""
    folder = tmp_path_factory.mktemp("gpu-burn") / "tree"
    shutil.copytree(MACHINE / "gpu_burn_tree", folder)
    command = ["make", "-s", "-C", str(folder), f"CUDAPATH={built / 'cuda-11.7'}", f"NVCCFLAGS={SASS}"]
    subprocess.run(command, check=True, capture_output=True, timeout=180)
    return folder


def burn(rig, tree, *arguments):
    return rig.run("./gpu_burn", *arguments, cwd=tree)


def kill_child(parent, pid):
    """Kill one worker, after making sure that it is the burn's own child."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert int(fields[1]) == parent.pid
    os.kill(pid, signal.SIGKILL)


def rows(text: str) -> list[str]:
    return [part.split("\n")[0] for part in text.split("\r")[1:]]


def test_a_burn_of_healthy_cards(rig, tree):
    reply = burn(rig, tree, "-stts", "1", "-m", "4000", "-c", "compare.fatbin", "4")
    assert reply.returncode == 0, reply.stderr
    found = rows(reply.stdout)
    assert found
    assert all(ROW.match(row) for row in found), found
    assert found[-1].startswith("100.0%")
    rates = [int(rate) for rate in re.findall(r"\((\d+) Gflop/s\)", found[-1])]
    assert rates == pytest.approx([26_600, 26_600], rel=0.03)
    assert "\n\tSummary at:   " in reply.stdout
    end = reply.stdout.partition("Killing processes with SIGTERM (soft kill)")[2]
    assert "force kill" not in end
    assert end.count("Freed memory for dev") == end.count("Uninitted cublas") == 2
    assert end.endswith("done\n\nTested 2 GPUs:\n\tGPU 0: OK\n\tGPU 1: OK\n")
    assert reply.stdout.startswith("GPU 0: NVIDIA GeForce RTX 3090 Ti (UUID: GPU-")
    assert reply.stdout.count("Burning for 4 seconds.") == 3  # ours and each worker's copy
    rig.settle()
    assert rig.state()["gpu.0.procs"] == "0"


def test_faulty_card_exits_0(rig, tree):
    rig.fault("apply", "burn_errors", "slot=2")
    reply = burn(rig, tree, "-stts", "0", "-m", "2000", "2")
    assert reply.returncode == 0
    assert " (WARNING!)" in reply.stdout
    assert reply.stdout.endswith("Tested 2 GPUs:\n\tGPU 0: OK\n\tGPU 1: FAULTY\n")
    assert all(ROW.match(row) for row in rows(reply.stdout))


def test_one_worker_dies_and_its_card_is_still_called_ok(rig, tree):
    process = subprocess.Popen(
        ["./gpu_burn", "-stts", "0", "-m", "2000", "3"],
        cwd=tree,
        env=rig.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: rig.state()["gpu.1.procs"] == "1")
    time.sleep(0.5)
    victim = int(rig.state()["gpu.1.proc.0"].split()[0])
    kill_child(process, victim)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "read[1] error 0" in errors
    assert re.search(r"- -1 \(0 Gflop/s\)   errors: 0 - 1796043519  \(DIED!\)  temps", out)
    assert out.endswith("\tGPU 1: OK\n")


def test_no_worker_lives(rig, tree):
    process = subprocess.Popen(
        ["./gpu_burn", "-stts", "1", "-m", "2000", "30"],
        cwd=tree,
        env=rig.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: rig.state()["gpu.0.procs"] == rig.state()["gpu.1.procs"] == "1")
    for index in (0, 1):
        kill_child(process, int(rig.state()[f"gpu.{index}.proc.0"].split()[0]))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 123
    assert "No clients are alive!  Aborting" in errors


def test_killed_burn_leaves_the_cards_idle(rig, tree):
    process = subprocess.Popen(
        ["./gpu_burn", "30"],
        cwd=tree,
        env=rig.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_for(lambda: rig.state()["gpu.1.util_gpu_pct"] == "100")
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(timeout=10) == -signal.SIGKILL
    wait_for(lambda: rig.state()["gpu.1.util_gpu_pct"] == "0")


def test_one_card_only_is_called_gpu_0(rig, tree):
    reply = burn(rig, tree, "-stts", "0", "-m", "2000", "-i", "1", "1")
    assert reply.stdout.endswith("Tested 1 GPUs:\n\tGPU 0: OK\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-c", "/opt/rig-health/compare.fatbin", "5"], "Usage: gpu-burn [OPTIONS] [TIME]"),
        (["-c", "/opt/gpu-lab/compare.fatbin", "5"], "ID 0: NVIDIA GeForce RTX 3090 Ti, 24564MB"),
        (["-h"], "-stts T"),
        (["-l"], "ID 1: NVIDIA"),
    ],
)
def test_options_are_found_anywhere(rig, tree, arguments, says):
    reply = burn(rig, tree, *arguments)
    assert reply.returncode == 0
    assert says in reply.stdout
    assert "Burning" not in reply.stdout


def test_time_must_come_last(rig, tree):
    assert "Burning for 0 seconds." in burn(rig, tree, "-stts", "0", "7", "-d").stdout


def test_bad_memory(rig, tree):
    assert burn(rig, tree, "-m", "lots", "5").returncode == 22


def test_without_a_driver(rig, tree, tmp_path):
    bare = type(rig)(rig.paths, rig.environment | {"RIGSIM_RUN": str(tmp_path)})
    reply = burn(bare, tree, "5")
    assert reply.returncode == 19
    assert reply.stdout.count("Burning for 5 seconds.") == 2
    assert "cuInit returned 100 (no CUDA-capable device is detected)" in reply.stderr
    assert "No CUDA devices\n" in reply.stderr
    listing = burn(bare, tree, "-l")
    assert listing.returncode == -signal.SIGABRT


def build_compare(built, folder, *flags):
    shutil.copy(MACHINE / "gpu_burn_tree" / "compare.cu", folder)
    command = [str(built / "cuda-11.7" / "bin" / "nvcc"), *flags, "-fatbin", "compare.cu", "-o", "compare.fatbin"]
    return subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("flags", "images"),
    [
        (["-arch=compute_86"], ["ptx 86"]),
        (["-arch=sm_86"], ["ptx 86", "sass 86"]),
        (["-gencode", "arch=compute_86,code=sm_86"], ["sass 86"]),
        (["-gencode=arch=compute_86,code=[sm_86,compute_86]"], ["ptx 86", "sass 86"]),
        ([], ["ptx 52", "sass 52"]),
    ],
)
def test_nvcc_makes_what_it_was_asked_for(built, tmp_path, flags, images):
    assert build_compare(built, tmp_path, *flags).returncode == 0
    lines = (tmp_path / "compare.fatbin").read_text().splitlines()
    assert [line for line in lines if line.startswith(("ptx", "sass"))] == images


def test_cuobjdump_lists_machine_code_and_ptx(built, tmp_path):
    assert build_compare(built, tmp_path, "-arch=compute_80", "-gencode", "arch=compute_86,code=sm_86").returncode == 0
    cuobjdump = str(built / "cuda-11.7" / "bin" / "cuobjdump")
    listed = subprocess.run(
        [cuobjdump, "--list-elf", "compare.fatbin"], check=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert listed.stdout == "ELF file    1: compare.1.sm_86.cubin\n"
    refused = subprocess.run([cuobjdump, "--list-elf", "compare.cu"], check=False, cwd=tmp_path, capture_output=True)
    assert refused.returncode == 1


def test_nvcc_refuses_what_it_does_not_know(built, tmp_path):
    reply = build_compare(built, tmp_path, "-arch=compute_89")
    assert reply.returncode == 1
    assert "Unsupported gpu architecture 'compute_89'" in reply.stderr


def test_nvcc_says_its_version(built):
    command = [str(built / "cuda-11.7" / "bin" / "nvcc"), "--version"]
    assert "release 11.7, V11.7" in subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("images", "says"),
    [
        ("toolkit 12.2\nptx 86\n", "unsupported toolchain"),
        ("toolkit 11.7\nsass 80\n", None),
        ("toolkit 11.7\nsass 75\n", "no kernel image is available"),
        ("toolkit 11.7\nptx 87\n", "no kernel image is available"),
    ],
)
def test_the_driver_judges_what_it_is_given(rig, tree, tmp_path, images, says):
    (tmp_path / "other.fatbin").write_text(f"rigsim-fatbin 1\n{images}")
    reply = burn(rig, tree, "-stts", "0", "-m", "2000", "-i", "0", "-c", str(tmp_path / "other.fatbin"), "1")
    assert (says in reply.stderr) if says else (reply.returncode == 0)
    assert reply.returncode == (123 if says else 0)
