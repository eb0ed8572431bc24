"""Write the inventory of simulated rigs: the shipped rig class, with what simulation changes said openly."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import yaml

from rigctl import assets
from rigctl.errors import UsageError
from rigctl.sim.machine.packages.build import definition
from rigctl.sim.state import USER

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.sim.state import State, Training

WHEELHOUSE = "/srv/wheelhouse"
"""Where rigs see the controller's wheels, read-only."""

METER_URL = "http://127.0.0.1:8089/cm?cmnd=Status%208"
"""The simulated wall meter as the rig itself sees it."""

GPU_BURN_REPOSITORY = "file:///srv/rigsim/git/gpu-burn.git"
CUDA_REPOSITORY = "deb [trusted=yes] file:///srv/rigsim/cuda /"

TRAINING: dict[str, Any] = {
    "device": "cpu",
    "model": "gpt_tiny",
    "seq_len": 128,
    "micro_batch": 8,
    "grad_accum": 1,
    "dtype": "fp32",
    "threads": 1,
    "warmup_steps": 3,
    "measured_steps": 10,
}
"""The training workload of simulated rigs (model TrainingSpec, without its floor): there is no GPU to train on."""

HOST_MEMORY: dict[str, Any] = {"seconds": 10, "share_of_free": 0.005}
"""What is free there is the host's memory, which simulated rigs share with it and with each other."""

_PROFILE_KEYS = ("idle_seconds", "cpu_burn_seconds", "gpu_burn_seconds", "all_burn_seconds", "train", "sample_hz")
PROFILES: dict[str, dict[str, Any]] = {
    name: dict(zip(_PROFILE_KEYS, figures, strict=True))
    for name, figures in {
        "quick": (2, 0, 0, 0, False, 4),
        "smoke": (2, 4, 20, 10, True, 4),
        "standard": (3, 8, 30, 15, True, 4),
        "full": (3, 20, 120, 30, True, 4),
        "soak": (3, 20, 600, 60, True, 2),
    }.items()
}
"""Short burns: the simulated cooling loop settles `time_scale` times faster than a real one."""
for _name in ("standard", "full", "soak"):
    PROFILES[_name]["workloads"] = ["disk"] if _name == "standard" else ["disk", "host_memory"]
PROFILES["full"]["step_load_seconds"] = 30
PROFILES["soak"] |= {"wakes": 4, "wake_rest_seconds": 4, "wake_load_seconds": 3, "step_load_seconds": 30}


def rig_classes() -> list[str]:
    """Return the names of the rig classes in the shipped inventory."""
    groups = assets.starter_inventory_dir() / "group_vars"
    return sorted(path.name.removeprefix("class_") for path in groups.glob("class_*"))


def write_inventory(state: State, gpu_burn_commit: str) -> None:
    """Write `state.inventory`; what an earlier `up` wrote there is replaced.

    Raises:
        UsageError: the shipped inventory has no such rig class.
    """
    source = assets.starter_inventory_dir() / "group_vars" / f"class_{state.rig_class}"
    if not source.exists():
        raise UsageError(
            f"the shipped inventory has no rig class {state.rig_class}",
            f"choose one of: {', '.join(rig_classes())}",
        )
    shutil.rmtree(state.inventory, ignore_errors=True)
    shutil.copytree(source, state.inventory / "group_vars" / source.name)
    choose_software(state.inventory / "group_vars" / source.name / "software.yml", state.platform)
    _dump(state.inventory / "rigs.yml", _hosts(state), "Simulated rigs, written by rigctl sim up.")
    _dump(
        state.inventory / "group_vars" / "all" / "simulated.yml",
        _common(state, gpu_burn_commit),
        "What simulation changes: sources inside the rigs, short burns.",
    )
    for rig in state.rigs:
        _dump(
            state.inventory / "host_vars" / rig.name / "spec.yml",
            {"rig_spec_host": _exceptions(state.training)},
            "What is true of this rig alone, merged over its class's rig_spec.",
        )


def choose_software(path: Path, platform: str) -> None:
    """Ask for what a platform's archive has, where that is something else than what the class asks for."""
    other = definition(platform)["system"].get("software", {})
    if other:
        asked = yaml.safe_load(path.read_text(encoding="utf-8"))
        _dump(path, {**asked, **other}, f"The class's software, with the versions that {platform} has.")


def _hosts(state: State) -> dict[str, Any]:
    connection = (
        f"-o UserKnownHostsFile={state.known_hosts} -o GlobalKnownHostsFile=/dev/null "
        "-o StrictHostKeyChecking=yes -o IdentitiesOnly=yes"
    )
    hosts = {rig.name: {"ansible_host": "127.0.0.1", "ansible_port": rig.port} for rig in state.rigs}
    return {
        "all": {
            "vars": {
                "ansible_user": USER,
                "ansible_become": True,
                "ansible_python_interpreter": "/usr/bin/python3",
                "ansible_ssh_private_key_file": str(state.identity_file),
                "ansible_ssh_common_args": connection,
            },
            "children": {f"class_{state.rig_class}": {"hosts": hosts}},
        }
    }


def _common(state: State, gpu_burn_commit: str) -> dict[str, Any]:
    common: dict[str, Any] = {
        "rig_profiles": PROFILES,
        "gpu_burn_repo": GPU_BURN_REPOSITORY,
        "gpu_burn_commit": gpu_burn_commit,
        "cuda_repo_line": CUDA_REPOSITORY,
        "cuda_repo_key_url": "",
    }
    if state.training is not None:
        common |= torch_variables(state.training)
    return common


def torch_variables(training: Training) -> dict[str, Any]:
    """Return the role variables that say where rigs get PyTorch from."""
    if training.from_distribution:
        return {"pytorch_build": "distribution"}
    return {
        "pytorch_version": training.torch_version.partition("+")[0],
        "pytorch_build": "cpu",
        "pytorch_wheelhouse": WHEELHOUSE,
    }


def _exceptions(training: Training | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "wall_meter": {"url": METER_URL},
        "allow_step_load": True,
        "compute": None,
        "host_memory": HOST_MEMORY,
    }
    if training is not None and training.floor_tokens_per_s is not None:
        found["training"] = {**TRAINING, "min_tokens_per_s": training.floor_tokens_per_s, "provisional": False}
        found["sources"] = {
            "training.min_tokens_per_s": f"0.75 × {training.tokens_per_s:.0f} tokens/s, measured by throwaway "
            "containers on this machine when the simulated rigs were brought up"
        }
    return found


def _dump(path: Path, data: dict[str, Any], about: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)
    path.write_text(f"---\n# {about}\n{text}", encoding="utf-8")
