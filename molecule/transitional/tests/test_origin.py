"""Where a real 515 came from, and that Ubuntu's package of that name is not to be had."""


def test_the_driver_is_nvidia_s_own_package(host):
    policy = host.check_output("apt-cache policy nvidia-driver-515")
    assert "Installed: 515.105.01-0ubuntu1\n" in policy
    assert "Candidate: 515.105.01-0ubuntu1\n" in policy


def test_nothing_of_the_branch_that_it_would_have_become_is_there(installed):
    assert [name for name in installed("*nvidia*") if "580" in name] == []


def test_a_full_upgrade_would_not_touch_the_driver(host):
    would = host.check_output("apt-get dist-upgrade --simulate --quiet")
    assert [line for line in would.splitlines() if line.startswith(("Inst ", "Remv ")) and "nvidia" in line] == []
