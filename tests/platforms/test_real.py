"""NVIDIA's own packages of Debian 12: DKMS really compiles, and the real nvidia-smi meets a machine without a card.

Fetches some 300 MB from the host's package sources and compiles for minutes: `make test-real`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rigctl import sim
from tests.failures.box import Box

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.real, pytest.mark.timeout(3600)]
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
