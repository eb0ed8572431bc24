"""What `container_toolkit` finds of running containers, and of the CDI specification."""

import importlib.util

import pytest

from .roles_page import ROLES


def script(name):
    path = ROLES / "container_toolkit" / "files" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"container_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


running, look = script("running"), script("look")
ID = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "cgroup",
    [
        f"0::/system.slice/docker-{ID}.scope\n",
        f"0::/machine.slice/libpod-{ID}.scope/container\n",
        f"12:devices:/docker/{ID}\n0::/\n",
        f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope\n",
    ],
)
def test_a_container_is_known_by_its_control_group(cgroup):
    assert running.container_of(cgroup) == ID


@pytest.mark.parametrize("cgroup", ["0::/init.scope\n", "0::/user.slice/user-1000.slice/session-1.scope\n", ""])
def test_the_machine_s_own_processes_are_none(cgroup):
    assert running.container_of(cgroup) == ""


def process(proc, number, cgroup, *devices):
    folder = proc / str(number)
    (folder / "root" / "dev").mkdir(parents=True)
    (folder / "cgroup").write_text(cgroup)
    (folder / "comm").write_text("python\n")
    for device in devices:
        (folder / "root" / "dev" / device).touch()


def test_only_containers_that_can_use_a_card_count(tmp_path):
    other = "f" * 64
    process(tmp_path, 1, "0::/init.scope\n", "nvidia0", "nvidiactl")
    process(tmp_path, 7, f"0::/docker-{ID}.scope\n", "nvidia0")
    process(tmp_path, 8, f"0::/docker-{ID}.scope\n", "nvidia0")
    process(tmp_path, 9, f"0::/docker-{other}.scope\n", "null")
    (tmp_path / "10").mkdir()  # has ended
    assert running.containers(tmp_path) == {ID: "python"}


def test_a_machine_that_is_a_container_itself_is_none_of_its_own(tmp_path):
    inner = "e" * 64
    process(tmp_path, 1, f"0::/machine.slice/libpod-{ID}.scope/init.scope\n", "nvidia0")
    process(tmp_path, 7, f"0::/machine.slice/libpod-{ID}.scope/system.slice/ssh.service\n", "nvidia0")
    process(tmp_path, 8, f"0::/machine.slice/libpod-{ID}.scope/system.slice/docker-{inner}.scope\n", "nvidia0")
    assert running.containers(tmp_path) == {inner: "python"}


def test_the_driver_of_a_cdi_specification():
    spec = """
  - containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.515.105.01
  - containerPath: /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.515.105.01
"""
    assert look.drivers_in(spec) == ["515.105.01"]
    assert look.drivers_in(spec + "/usr/lib/libcuda.so.580.95.05") == ["515.105.01", "580.95.05"]
    assert look.drivers_in("") == []


def test_a_record_that_is_none():
    assert look.record("") == look.record("[]") == {}
    assert look.record('{"driver": "515.105.01"}') == {"driver": "515.105.01"}
