"""Where the packages of a rig with Ubuntu's own 515 may come from."""


def test_driver_packages_come_from_one_source(host):
    policy = host.check_output("apt-cache policy nvidia-driver-580")
    assert "Candidate: (none)" in policy  # only the CUDA repository has it, and its drivers are not to be had
