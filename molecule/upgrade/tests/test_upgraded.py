"""What an upgrade across branches must have cleared away, and that it stays what was asked for."""

NEWER_ELSEWHERE = "535.183.01"
"""NVIDIA's repository has a newer 535 than the one that was asked for from Ubuntu."""


def test_nothing_of_the_branch_before_is_left(host, installed):
    assert [name for name in installed("*nvidia*") if "515" in name] == []
    assert "515" not in host.check_output("apt-mark showhold")
    assert "515" not in host.check_output("cat /etc/apt/preferences.d/gpu-rig-nvidia-driver")


def test_no_module_and_no_library_of_the_branch_before_is_left(host):
    assert "515" not in host.check_output("dkms status")
    assert host.check_output("find /usr/lib/x86_64-linux-gnu -name '*.so.515.*'") == ""


def test_the_newer_driver_of_the_other_source_is_not_to_be_had(host, expected):
    policy = host.check_output("apt-cache policy nvidia-driver-535")
    assert NEWER_ELSEWHERE in policy
    assert f"Candidate: {expected.driver}-" in policy
    would = host.check_output("apt-get dist-upgrade --simulate --quiet")
    assert [line for line in would.splitlines() if line.startswith(("Inst ", "Remv ")) and "nvidia" in line] == []


def test_the_program_that_asks_the_cards_is_of_the_driver_that_runs(host, expected):
    asked = host.check_output("nvidia-smi --query-gpu=driver_version --format=csv,noheader").split()
    assert asked == [expected.driver] * 2
