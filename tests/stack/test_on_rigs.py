"""CUDA and container toolkit on one simulated rig; NVIDIA's container tools and the container runtime are stubs."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rigctl import sim

from .stubs import CONTAINER_TOOLKIT

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(900)]
RIGCTL = Path(sys.executable).parent / "rigctl"
TAGS = "base,nvidia_driver,cuda,container_toolkit"
CONTAINERS = {
    "container_toolkit_install": True,
    "container_toolkit_repo_line": "deb [trusted=yes] file:///srv/stub ./",
    "container_toolkit_repo_key_url": "",
}


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stack")
    directory = folder / "state"
    try:
        state = sim.up(sim.UpOptions(count=1, directory=directory, training=False))
        yield SimpleNamespace(state=state, inventory=state.inventory, runs=folder / "runs")
    finally:
        sim.down(directory)


def provision(rig, tags=TAGS, **variables):
    """Provision with role variables of the rig's own; exit code and outcome."""
    own = rig.inventory / "host_vars" / "rig1" / "software.yml"
    own.write_text(json.dumps(variables), encoding="utf-8")
    words = ["provision", "-i", rig.inventory, "--runs", rig.runs, "--tags", tags, "--json"]
    done = subprocess.run([RIGCTL, *words], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["rigs"][0]


def on_rig(rig, command, stdin=""):
    ssh = ["ssh", "-F", rig.state.ssh_config, "rig1", command]
    done = subprocess.run(ssh, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_1_other_lists_of_the_repository_are_cleared_away_first(rig):
    stray = "deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] file:///srv/rigsim/cuda/ /\n"
    on_rig(rig, "sudo tee /etc/apt/sources.list.d/cuda-ubuntu2204-x86_64.list", stray)
    nvidia = "deb https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64/ /\n"
    on_rig(rig, "sudo tee -a /etc/apt/sources.list", nvidia)
    code, outcome = provision(rig, cuda_more_versions=["11.8"])
    assert (code, outcome["state"], outcome["message"]) == (0, "changed", "")
    assert on_rig(rig, "ls /etc/apt/sources.list.d") == "nvidia-cuda.list"
    assert "developer.download" not in on_rig(rig, "cat /etc/apt/sources.list")
    assert "jammy-updates" in on_rig(rig, "cat /etc/apt/sources.list")


def test_2_two_toolkits_are_there_and_the_asked_one_leads(rig):
    assert on_rig(rig, "readlink -f /usr/local/cuda") == "/usr/local/cuda-11.7"
    for version in ("11.7", "11.8"):
        assert f"release {version}" in on_rig(rig, f"/usr/local/cuda-{version}/bin/nvcc --version")
    assert "release 11.7" in on_rig(rig, "sh -lc 'nvcc --version'")


def test_3_again_nothing_is_to_do(rig):
    code, outcome = provision(rig, cuda_more_versions=["11.8"])
    assert (code, outcome["state"], outcome["changed"]) == (0, "ok", 0)


def test_4_a_toolkit_that_the_driver_cannot_run_is_refused_and_can_be_told(rig):
    code, outcome = provision(rig, tags="cuda", cuda_more_versions=["12.2"])
    assert (code, outcome["state"], outcome["role"]) == (4, "failed", "compat")
    assert "CUDA 12.2 does not run on driver 515: it needs 525.60.13 or newer" in outcome["message"]
    # The branch that is wished could run it; the driver that is loaded cannot.
    code, outcome = provision(rig, tags="cuda", cuda_more_versions=["12.2"], nvidia_driver_branch="535")
    assert (code, outcome["state"], outcome["role"]) == (4, "failed", "cuda")
    assert "CUDA 12.2 does not run on driver 515.105.01" in outcome["message"]
    assert "cuda_allow_unrunnable: true" in outcome["message"]
    assert on_rig(rig, "ls -d /usr/local/cuda-1*").split() == ["/usr/local/cuda-11.7", "/usr/local/cuda-11.8"]
    told = {"cuda_more_versions": ["12.2"], "cuda_allow_unrunnable": True}
    code, outcome = provision(rig, tags="cuda", **told)
    assert (code, outcome["state"], outcome["message"]) == (0, "changed", "")
    assert on_rig(rig, "readlink -f /usr/local/cuda") == "/usr/local/cuda-11.7"


def test_5_a_toolkit_that_the_repository_lacks_is_refused_with_what_it_has(rig):
    code, outcome = provision(rig, tags="cuda", cuda_version="11.6")
    assert (code, outcome["state"], outcome["role"]) == (4, "failed", "cuda")
    assert "No package source has CUDA 11.6. On offer: 11.7, 11.8, 12.2, 13.0." in outcome["message"]


def test_6_a_container_sees_the_cards(rig):
    on_rig(rig, "sudo sh", CONTAINER_TOOLKIT)
    code, outcome = provision(rig, tags="container_toolkit", **CONTAINERS)
    assert (code, outcome["state"], outcome["message"]) == (0, "changed", "")
    assert "libcuda.so.515.105.01" in on_rig(rig, "cat /etc/cdi/nvidia.yaml")
    code, outcome = provision(rig, tags="container_toolkit", **CONTAINERS)
    assert (code, outcome["state"], outcome["changed"]) == (0, "ok", 0)


def test_7_the_specification_follows_the_driver(rig):
    on_rig(rig, "sudo sed -i s/515.105.01/515.65.01/ /etc/cdi/nvidia.yaml")
    code, outcome = provision(rig, tags="container_toolkit", **CONTAINERS)
    assert (code, outcome["changed"]) == (0, 1)
    assert "libcuda.so.515.105.01" in on_rig(rig, "cat /etc/cdi/nvidia.yaml")


def test_8_a_container_that_sees_no_card_is_a_failure(rig):
    variables = {**CONTAINERS, "container_toolkit_image": "docker.io/library/blind:1"}
    code, outcome = provision(rig, tags="container_toolkit", **variables)
    assert (code, outcome["state"]) == (4, "failed")
    assert "A container of docker.io/library/blind:1 does not see the rig's cards" in outcome["message"]
    assert "couldn't communicate" in outcome["message"]


def test_9_running_containers_with_cards_are_not_disturbed(rig):
    identity = "0123456789abcdef" * 4
    on_rig(rig, "sudo touch /dev/nvidia0")
    scope = f"docker-{identity}.scope"
    on_rig(rig, f"sudo systemd-run --quiet --scope --unit={scope} sleep 600 </dev/null >/dev/null 2>&1 &")
    on_rig(rig, f"timeout 20 sh -c 'until systemctl is-active {scope}; do sleep 0.2; done'")
    code, outcome = provision(rig, tags="cuda")
    assert (code, outcome["state"], outcome["role"]) == (4, "failed", "container_toolkit")
    assert "Running containers use cards: 0123456789ab sleep" in outcome["message"]
    assert "container_toolkit_running: allow" in outcome["message"]
    code, outcome = provision(rig, tags="cuda", container_toolkit_running="allow")
    assert (code, outcome["message"]) == (0, "")
    on_rig(rig, f"sudo systemctl stop {scope} && sudo rm /dev/nvidia0")
    assert provision(rig, tags="cuda")[0] == 0
