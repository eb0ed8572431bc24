"""What is Debian's own way."""


def test_the_rig_is_debian(host):
    assert (host.system_info.distribution, host.system_info.codename) == ("debian", "bookworm")


def test_the_module_has_debian_s_name_and_is_built_for_the_kernel(host, expected):
    kernel = host.check_output("uname -r")
    assert host.check_output("dkms status") == f"nvidia-current/{expected.driver}, {kernel}, x86_64: installed"
    assert host.check_output("modinfo -F version nvidia-current") == expected.driver
    assert host.file(f"/lib/modules/{kernel}/updates/dkms/nvidia-current.ko").exists


def test_driver_packages_come_from_debian_alone(host, expected):
    policy = host.check_output("apt-cache policy nvidia-driver")
    assert f"*** {expected.driver}-" in policy
    assert "1001" in policy
    assert "Pin: release o=Debian" in host.file("/etc/apt/preferences.d/gpu-rig-nvidia-driver").content_string
