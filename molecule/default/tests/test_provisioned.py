"""What a provisioned rig must have, asked by testinfra over SSH."""

import json

DRIVER = "515.105.01"
UNIT = "nvidia-card-settings.service"


def test_the_loaded_driver_is_the_installed_one(host):
    assert host.file("/sys/module/nvidia/version").content_string.strip() == DRIVER
    assert host.package("nvidia-driver-515").version.startswith(f"{DRIVER}-")
    assert host.file("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").linked_to.endswith(f".so.{DRIVER}")


def test_the_driver_is_held(host):
    held = host.check_output("apt-mark showhold").split()
    assert {"nvidia-driver-515", "libnvidia-compute-515", "nvidia-dkms-515"} <= set(held)


def test_driver_packages_come_from_one_source(host):
    policy = host.check_output("apt-cache policy nvidia-driver-580")
    assert "Candidate: (none)" in policy  # only the CUDA repository has it, and its drivers are not to be had


def test_cards_keep_their_settings_over_reboots(host):
    unit = host.service(UNIT)
    assert unit.is_enabled
    assert unit.is_running
    limits = host.check_output("nvidia-smi --query-gpu=power.limit --format=csv,noheader,nounits").split()
    assert limits == ["480.00", "480.00"]


def test_the_toolkit_and_neither_driver_nor_newer_toolkit(host):
    assert "release 11.7" in host.check_output("/usr/local/cuda-11.7/bin/nvcc --version")
    installed = host.check_output("dpkg-query -W -f '${Package}\\n' 'cuda*'").split()
    assert "cuda-toolkit-11-7" in installed
    assert not {"cuda", "cuda-toolkit", "cuda-drivers"} & set(installed)


def test_gpu_burn_was_built_for_the_rig_s_cards(host):
    build = json.loads(host.file("/opt/gpuburn/build.json").content_string)
    assert build["compute_capabilities"] == ["8.6"]
    assert (build["driver"], build["toolkit"]) == (DRIVER, "11.7")
    assert build["commit"] == host.check_output("git -C /opt/gpuburn rev-parse HEAD")
    assert host.file("/opt/gpuburn/gpu_burn").mode & 0o111


def test_torch_computes(host):
    assert host.check_output("/opt/rigctl/torch/bin/python -c 'import torch; print(int(torch.ones(3).sum()))'") == "3"


def test_cpu_burner_and_sensors(host):
    assert host.package("stress-ng").is_installed
    assert host.package("lm-sensors").is_installed
