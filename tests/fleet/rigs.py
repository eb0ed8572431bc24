"""A rig for tests: how it is reached matters, what it must be does not."""

from __future__ import annotations

from rigctl.model.rig import Login, Rig
from rigctl.model.spec import LimitsSpec, PartsSpec, RigSpec, SoftwareSpec


def rig(name: str, login: Login | None = None) -> Rig:
    parts = PartsSpec(
        gpu_count=1, gpu_model="any", min_gpu_memory_mib=1, pcie_gen_under_load=4, pcie_width_under_load=16
    )
    limits = LimitsSpec(
        max_settled_gpu_temp_c=65, guard_max_gpu_temp_c=85, min_power_share_of_limit=0.9, min_burn_gflops=1
    )
    software = SoftwareSpec(
        driver_branch="515",
        cuda_version="11.7",
        torch_version="auto",
        torch_build="auto",
        gpu_burn_dir="/opt/gpuburn",
        torch_venv="/opt/torch",
    )
    spec = RigSpec(rig_class="any", parts=parts, limits=limits, software=software)
    return Rig(name=name, login=login or Login(address=name), spec=spec, profiles={})
