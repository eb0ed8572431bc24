"""NVIDIA's own packages of Debian 12: DKMS and nvcc really compile, and the real nvidia-smi meets a rig without a card.

Fetches some 2 GB from the host's package sources and compiles for minutes: `make test-real`. The rig needs 6 GB more.
"""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from rigctl import sim
from tests.failures.box import RIGCTL, Box

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.real, pytest.mark.timeout(3600)]
TOOLKIT = {"cuda_source": "distribution", "cuda_version": "11.8", "gpu_burn_compute_capability": "8.6"}
WITHOUT_CODE = r"""
sudo git clone --quiet /srv/rigsim/git/gpu-burn.git /srv/ptx-only && cd /srv/ptx-only
sudo sed -i 's/ \$(NVCCFLAGS) \$(ARCH) / -arch=compute_$(COMPUTE) /' Makefile
sudo git -c user.name=ops -c user.email=ops@localhost commit --quiet --all --message='PTX alone'
sudo git rev-parse HEAD
"""
MODULE = "/lib/modules/$(uname -r)/updates/dkms/nvidia-current.ko"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    directory = tmp_path_factory.mktemp("real") / "state"
    options = sim.UpOptions(count=1, platform="debian-12", archive="real", directory=directory, training=False)
    found = sim.up(options)
    try:
        yield Box(found)
    finally:
        sim.down(directory)


def test_1_the_driver_is_installed_whole_and_that_no_card_answers_is_said_in_one_line(real: Box) -> None:
    outcome = real.provision(timeout_s=3000)
    assert (outcome.code, outcome.rig["role"]) == (4, "nvidia_driver")
    said = "The driver is loaded, but no card answers: NVIDIA-SMI has failed because it couldn't communicate with"
    assert outcome.said.startswith(said)
    assert "\n" not in outcome.said
    assert real.is_consistent()
    assert {"nvidia-driver", "nvidia-kernel-dkms", "libcuda1"} <= set(real.holds().split())


def test_2_dkms_has_compiled_the_module(real: Box) -> None:
    status = re.fullmatch(r"nvidia-current/(535\.[\d.]+), (\S+), x86_64: installed", real.ssh("sudo dkms status"))
    assert status is not None
    assert real.ssh("uname -r") == status[2]
    # kmod's own modinfo, which reads what the compiler and the linker have made
    assert real.ssh(f"/usr/sbin/modinfo -F version {MODULE}") == status[1]
    assert real.ssh(f"/usr/sbin/modinfo -F vermagic {MODULE}").startswith(f"{status[2]} ")
    assert real.loaded == status[1]


def test_3_the_real_nvidia_smi_complains_on_stdout_with_status_9(real: Box) -> None:
    assert real.ssh("readlink -f /usr/bin/nvidia-smi") == "/usr/lib/nvidia/current/nvidia-smi"
    said = real.ssh("nvidia-smi 2>/dev/null; echo rc=$?")
    assert said.startswith("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
    assert said.endswith("rc=9")


def test_4_a_second_run_installs_and_builds_nothing(real: Box) -> None:
    before = real.packages()
    again = real.provision(timeout_s=600)
    assert (again.code, again.rig["changed"]) == (4, 0)
    assert "no card answers" in again.said
    assert real.packages() == before


def test_5_the_distribution_s_toolkit_is_refused_where_another_one_is_asked_for(real: Box) -> None:
    real.set(**{**TOOLKIT, "cuda_version": "12.2"})
    refused = real.provision(tags="cuda", timeout_s=600)
    assert (refused.code, refused.rig["role"]) == (4, "cuda")
    said = r"The distribution's nvidia-cuda-toolkit is CUDA 11\.8 \(11\.8\.\S+\), and cuda_version asks for 12\.2\."
    assert re.match(said, refused.said)
    assert 'Set cuda_version: "11.8", or cuda_source: nvidia.' in refused.said


def test_6_check_mode_announces_the_toolkit_and_nothing_else_is_installed_with_it(real: Box) -> None:
    real.set(**TOOLKIT)
    before = real.packages()
    announced = real.provision("--check", tags="cuda", timeout_s=600)
    assert (announced.code, announced.rig["state"]) == (0, "changed")
    assert real.packages() == before
    done = real.provision(tags="cuda", timeout_s=3000)
    assert (done.code, done.rig["state"], done.said) == (0, "changed", "")
    assert "release 11.8" in real.ssh("/usr/bin/nvcc --version")
    assert real.ssh("sh -lc 'command -v nvcc'") == "/usr/bin/nvcc"
    assert real.ssh("readlink -f /usr/local/cuda") == "/usr"
    # recommended, and big
    assert real.ssh("dpkg-query -W -f '${db:Status-Abbrev}' nsight-compute 2>/dev/null") in ("", "un")
    assert real.ssh("ls /etc/apt/sources.list.d") == ""
    assert set(before.splitlines()) <= set(real.packages().splitlines())
    assert real.is_consistent()


def test_7_again_nothing_is_to_do_and_the_agent_finds_the_toolkit(real: Box) -> None:
    again = real.provision(tags="cuda", timeout_s=600)
    assert (again.code, again.rig["changed"]) == (0, 0)
    words = [RIGCTL, "check", real.name, "-i", real.fleet.inventory, "--json"]
    record = json.loads(subprocess.run(words, capture_output=True, text=True, check=False, timeout=300).stdout)
    (verdict,) = [one for one in record["rigs"][0]["verdicts"] if one["check"] == "software.cuda_toolkit"]
    assert (verdict["verdict"], verdict["found"]) == ("pass", "11.8")


def test_8_nvcc_compiles_machine_code_for_the_asked_cards(real: Box) -> None:
    done = real.provision(tags="gpu_burn", timeout_s=1800)
    assert (done.code, done.rig["state"], done.said) == (0, "changed", "")
    assert re.findall(r"sm_\d+", real.ssh("cuobjdump --list-elf /opt/gpuburn/compare.fatbin")) == ["sm_86"]
    assert "sm_" not in real.ssh("cuobjdump --list-ptx /opt/gpuburn/compare.fatbin")
    assert "code for sm_86" in real.ssh("cuobjdump --dump-sass /opt/gpuburn/compare.fatbin")
    assert "libcublas.so.11" in real.ssh("ldd /opt/gpuburn/gpu_burn")
    again = real.provision(tags="gpu_burn", timeout_s=600)
    assert (again.code, again.rig["changed"]) == (0, 0)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [("5", 19, "No CUDA devices"), ("-i 0 5", 123, "(DIED!)"), ("-l", 134, "No CUDA"), ("-h", 0, "Usage: gpu-burn")],
)
def test_9_without_a_card_it_ends_as_gpu_burn_does(real: Box, words: str, status: int, said: str) -> None:
    found = real.ssh(f"cd /opt/gpuburn && ./gpu_burn {words} 2>&1; echo rc=$?")
    assert said in found
    assert f"rc={status}" in found.splitlines()  # the shell reports an abort after it


def test_a_build_of_ptx_alone_is_refused(real: Box) -> None:
    commit = real.ssh(WITHOUT_CODE)
    real.set(**TOOLKIT, gpu_burn_repo="file:///srv/ptx-only", gpu_burn_commit=commit, gpu_burn_dir="/opt/ptx")
    refused = real.provision(tags="gpu_burn", timeout_s=600)
    assert (refused.code, refused.rig["role"]) == (4, "gpu_burn")
    assert refused.said.startswith("compare.fatbin holds no machine code for sm_86, so the driver would")
    assert real.ssh("cuobjdump --list-ptx /opt/ptx/compare.fatbin; ls /opt/ptx/build.json").count("sm_86.ptx") == 1
