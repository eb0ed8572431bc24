"""Software: what the roles were asked to install is what is loaded, installed and built on the host."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from rigctl.acceptance.asking import ask
from rigctl.checks import software
from rigctl.parse import dpkg

if TYPE_CHECKING:
    from testinfra.host import Host

    from rigctl.acceptance.plugin import Judge
    from rigctl.model.reading import Readings
    from rigctl.model.spec import RigSpec

DRIVER_PACKAGES = f"dpkg-query -W -f '{dpkg.FORMAT}' 'libnvidia-compute*' libnvidia-ml1"
"""Every flavour of every branch has this package; from branch 590 on its name carries none. Debian has the other."""
TORCH_VERSION = "import importlib.metadata as m; print(m.version('torch'))"


@pytest.mark.check("software.driver_version")
def test_driver_version(host: Host, spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Loaded module, library, packages and the asked branch are one driver."""
    module = host.file("/sys/module/nvidia/version")
    loaded_now = module.content_string.strip() if module.exists else "none"
    judge(software.driver_version(spec, readings, ask(host, DRIVER_PACKAGES), loaded_now))


@pytest.mark.check("software.cuda_toolkit")
def test_cuda_toolkit(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """The CUDA toolkit is of the asked version."""
    judge(software.cuda_toolkit(spec, readings))


@pytest.mark.check("software.torch")
def test_torch(host: Host, spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """PyTorch is of the asked version and build, in the environment that trains."""
    python = shlex.quote(f"{spec.software.torch_venv}/bin/python")
    judge(software.torch(spec, readings, ask(host, f"{python} -I -c {shlex.quote(TORCH_VERSION)}")))


@pytest.mark.check("software.gpu_burn_build")
def test_gpu_burn_build(host: Host, spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """gpu-burn and its kernel are there, built for these cards."""
    folder = spec.software.gpu_burn_dir
    kernel = any(host.file(f"{folder}/{name}").exists for name in ("compare.fatbin", "compare.ptx"))
    present = {"gpu_burn": host.file(f"{folder}/gpu_burn").exists, "compare.fatbin": kernel}
    judge(software.gpu_burn_build(spec, readings, present))
