"""What a rig without a network was provisioned from, and what was left alone."""

BUNDLE = "/var/lib/gpu-rig/bundle"


def test_the_rig_reaches_nothing(host):
    assert host.check_output("ip route show default") == ""
    assert not host.file("/srv/rigsim").exists


def test_apt_reads_the_bundle_and_nothing_else(host):
    assert host.check_output("apt-get indextargets --format '$(REPO_URI)'").split() == [f"file:{BUNDLE}/"]
    assert host.run("apt-get update -o APT::Update::Error-Mode=any").rc == 0


def test_the_rig_s_own_sources_are_as_they_were(host):
    assert host.file("/etc/apt/sources.list").content_string.startswith("deb http://192.0.2.1/ubuntu jammy")
    assert not host.file("/etc/apt/sources.list.d/nvidia-cuda.list").exists


def test_the_driver_is_the_bundle_s(host, expected):
    policy = host.check_output("apt-cache policy nvidia-driver-515")
    assert f"Candidate: {expected.driver}-" in policy
    assert f"file:{BUNDLE} ./ Packages" in policy


def test_gpu_burn_came_from_its_history(host):
    origin = host.check_output("git -C /opt/gpuburn remote get-url origin")
    assert origin.removeprefix("file://").startswith(f"{BUNDLE}/git/gpu-burn-")
