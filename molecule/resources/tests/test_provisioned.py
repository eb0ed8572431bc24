"""What every provisioned rig must have, asked by testinfra over SSH."""

import json

UNIT = "nvidia-card-settings.service"


def parts(expected):
    """The driver's own package, its NVML library's and its module's; Debian's names do not carry the branch."""
    branch = expected.driver.partition(".")[0]
    branched = [f"{name}-{branch}" for name in ("nvidia-driver", "libnvidia-compute", "nvidia-dkms")]
    return getattr(expected, "packages", branched)


def test_the_loaded_driver_is_the_installed_one(host, expected):
    assert host.file("/sys/module/nvidia/version").content_string.strip() == expected.driver
    assert host.package(parts(expected)[0]).version.startswith(f"{expected.driver}-")
    library = host.file("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")
    assert library.linked_to.endswith(f".so.{expected.driver}")


def test_all_of_the_driver_is_of_one_version(expected, installed):
    packages = {name: version for name, version in installed("*nvidia*").items() if name[-1].isdigit()}
    assert parts(expected)[1] in packages
    assert {version.partition("-")[0] for version in packages.values()} == {expected.driver}


def test_the_driver_and_no_other_is_held(host, expected, installed):
    held = set(host.check_output("apt-mark showhold").split())
    assert set(parts(expected)) <= held
    versions = installed("*nvidia*")
    assert {name for name in held & set(versions) if not versions[name].startswith(f"{expected.driver}-")} == set()


def test_dpkg_finds_nothing_half_done(host):
    assert host.check_output("dpkg --audit") == ""
    assert host.run("apt-get check -qq").rc == 0


def test_cards_keep_their_settings_over_reboots(host):
    unit = host.service(UNIT)
    assert unit.is_enabled
    assert unit.is_running
    limits = host.check_output("nvidia-smi --query-gpu=power.limit --format=csv,noheader,nounits").split()
    assert limits == ["480.00", "480.00"]


def test_the_toolkit_and_neither_driver_nor_newer_toolkit(host, expected, installed):
    assert f"release {expected.toolkit}" in host.check_output(f"/usr/local/cuda-{expected.toolkit}/bin/nvcc --version")
    packages = installed("cuda*")
    assert f"cuda-toolkit-{expected.toolkit.replace('.', '-')}" in packages
    assert not {"cuda", "cuda-toolkit", "cuda-drivers"} & set(packages)


def test_gpu_burn_was_built_for_the_rig_s_cards(host, expected):
    build = json.loads(host.file("/opt/gpuburn/build.json").content_string)
    assert build["compute_capabilities"] == ["8.6"]
    assert (build["driver"], build["toolkit"]) == (expected.driver, expected.toolkit)
    assert build["commit"] == host.check_output("git -C /opt/gpuburn rev-parse HEAD")
    assert host.file("/opt/gpuburn/gpu_burn").mode & 0o111


def test_torch_computes(host):
    assert host.check_output("/opt/rigctl/torch/bin/python -c 'import torch; print(int(torch.ones(3).sum()))'") == "3"


def test_cpu_burner_and_readers_of_sensors_and_disks(host):
    for name in ("stress-ng", "lm-sensors", "nvme-cli", "fio"):
        assert host.package(name).is_installed
