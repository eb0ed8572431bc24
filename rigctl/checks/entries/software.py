"""Driver, toolkit, framework and burner."""

from __future__ import annotations

from rigctl.checks.info import CheckInfo

ENTRIES = (
    CheckInfo(
        "software.driver_version",
        "loaded driver, its library, packages and the asked branch are one",
        requires=("dpkg",),
        limit_from=("the role variable `nvidia_driver_branch`",),
        fix="reboot where loaded module and library differ, else rigctl provision RIG --tags nvidia_driver",
    ),
    CheckInfo(
        "software.cuda_toolkit",
        "the CUDA toolkit of the asked version",
        requires=("nvcc",),
        limit_from=("the role variable `cuda_version`",),
        fix="rigctl provision RIG --tags cuda",
    ),
    CheckInfo(
        "software.torch",
        "PyTorch of the asked version and build",
        requires=("PyTorch",),
        limit_from=(
            "the role variables `pytorch_version` and `pytorch_build`",
            "NVIDIA's page on minor version compatibility",
        ),
        fix="rigctl provision RIG --tags pytorch",
    ),
    CheckInfo(
        "software.gpu_burn_build",
        "gpu-burn was built for these cards",
        requires=("gpu-burn",),
        limit_from=("the cards' own compute capability", "the role variables `gpu_burn_dir` and `gpu_burn_commit`"),
        fix="rigctl provision RIG --tags gpu_burn",
    ),
)
