"""Failure modes of provisioning that are no fault of a simulated rig: how each is met, and where that is tested."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mode:
    """One row of docs/failure-modes.md."""

    mode: str
    in_the_field: str
    met: str
    tests: tuple[str, ...]


_ROLE = "NVIDIA/ansible-role-nvidia-driver"
_LOOK = "tests/roles/test_driver_look.py"
_STACK = "tests/stack/test_on_rigs.py"
_PROVISION = "tests/provision/test_on_rigs.py"
_REBOOT = "tests/roles/test_reboot_on_rigs.py"
_OPTIONS = "tests/failures/test_driver_options.py"

OTHERS = (
    Mode(
        "The archive has the branch only as a transitional package for another one.",
        "`nvidia-driver-550-server` silently became 570 (pop-os/pop#3549).",
        "refused before anything is installed, with the source or the branch to choose",
        (f"{_PROVISION}::test_1_a_transitional_package_is_refused_and_nothing_is_installed",),
    ),
    Mode(
        "No source has the asked branch at all.",
        f"`No package matching 'cuda-drivers-510' is available` ({_ROLE}#60, {_ROLE}#73, {_ROLE}#89).",
        "refused before anything is installed, with the nearest branches that are real",
        (
            f"{_LOOK}::test_an_unknown_branch_is_answered_with_the_nearest_real_ones",
            f"{_LOOK}::test_nobody_has_the_branch",
        ),
    ),
    Mode(
        "A branch from 590 on: its packages do not carry the branch in their names.",
        "Names with a branch end at 580; from 590 on `nvidia-driver-pinning-VERSION` keeps a version.",
        "refused, with the reason and the nearest branches",
        (f"{_OPTIONS}::test_5_a_branch_whose_packages_do_not_carry_its_name_is_refused_with_the_reason",),
    ),
    Mode(
        "An exact version is wanted, and the archive has moved past it.",
        f"Old versions vanish from archives ({_ROLE}#17, aws-samples/aws-deep-learning-ami-ubuntu-dcv-desktop#50).",
        "refused with what is on offer; a folder of packages (`nvidia_driver_deb_cache`) is a source too",
        (
            f"{_LOOK}::test_an_exact_version_that_nobody_has_is_refused",
            "tests/roles/test_driver_on_rigs.py::test_5_a_folder_of_packages_is_a_source",
        ),
    ),
    Mode(
        "Two sources have driver packages, and apt mixes them.",
        "`nvidia-dkms-530 : Depends: nvidia-kernel-common-530 (>= 530.41.03)`; the CUDA repository wins by its pin "
        f"(aws-samples/aws-deep-learning-ami-ubuntu-dcv-desktop#18, {_ROLE}#35).",
        "driver packages come from one source only, by a pin",
        (
            f"{_LOOK}::test_preferences_allow_one_source_and_one_version",
            f"{_PROVISION}::test_3_the_other_source_has_the_real_one",
        ),
    ),
    Mode(
        "Unattended upgrades move the driver under a running rig.",
        "NVML says mismatch on running machines (lyulyul/shine-cluster#30, pando85/homelab#4110).",
        "NVIDIA's packages are on the blacklist of unattended-upgrades, and held",
        (f"{_OPTIONS}::test_3_unattended_upgrades_leave_the_driver_alone",),
    ),
    Mode(
        "The branch is changed package by package.",
        f"`held broken packages` ({_ROLE}#28, {_ROLE}#33).",
        "one transaction; the old branch goes whole",
        (f"{_PROVISION}::test_8_another_branch_replaces_the_first_one_whole",),
    ),
    Mode(
        "A driver version whose cards stop answering.",
        "Xid 119 and 120 on 525 before 525.105.17 (NVIDIA/open-gpu-kernel-modules#446).",
        "not installed, with the reason; a rig that has it moves on",
        (f"{_LOOK}::test_a_known_bad_version_is_refused_with_its_reason_and_a_rig_that_has_it_moves_on",),
    ),
    Mode(
        "The module needs an option: GSP firmware off, HMM off.",
        "`NVreg_EnableGpuFirmware=0` (NVIDIA/open-gpu-kernel-modules#1125), `uvm_disable_hmm=1` (release notes of "
        "CUDA 13.1).",
        "`nvidia_driver_module_options`; the rig is restarted where the loaded module has another value",
        (f"{_OPTIONS}::test_4_options_of_the_module_are_in_force_after_one_run",),
    ),
    Mode(
        "A kernel of another series came, and the old branch does not compile for it.",
        "A new series came with a meta-package (elementary/settings-system#333).",
        "`nvidia_driver_kernel_series` keeps the others away; where another one boots next, refused",
        (f"{_OPTIONS}::test_1_a_kernel_of_another_series_is_refused_before_anything_is_changed",),
    ),
    Mode(
        "A kernel that boots next has no module.",
        f"`NVIDIA-SMI has failed` after a kernel's upgrade ({_ROLE}#6).",
        "the module is built for every kernel that may boot, before the restart",
        ("tests/roles/test_driver_scripts.py::test_a_module_that_is_missing_is_built_and_what_is_left_is_said",),
    ),
    Mode(
        "A power limit outside the card's own range, or more than the power supply bears.",
        "Machines with two cards switch off in training.",
        "refused, with the range and the most that fits",
        (
            f"{_PROVISION}::test_5_a_power_limit_outside_the_card_s_range_is_refused",
            "tests/roles/test_driver_on_rigs.py::test_2_a_power_supply_that_is_too_small_is_refused",
        ),
    ),
    Mode(
        "Other lists, pins, packages and retired keys of NVIDIA's repository.",
        f"`A later version is already installed` ({_ROLE}#74); `GPG error` after the key was changed "
        "(NVIDIA/nvidia-docker#1631).",
        "cleared away before apt reads them",
        (
            f"{_STACK}::test_1_other_lists_of_the_repository_are_cleared_away_first",
            "tests/roles/test_cuda_sources.py::test_the_retired_key_is_known_by_its_signature",
        ),
    ),
    Mode(
        "The meta package `cuda` brings the newest toolkit and a driver.",
        "cirruslabs/linux-image-templates#64",
        "only `cuda-toolkit-X-Y` is installed",
        (f"{_STACK}::test_2_two_toolkits_are_there_and_the_asked_one_leads",),
    ),
    Mode(
        "A toolkit that is newer than the driver.",
        "`CUDA_ERROR_UNSUPPORTED_PTX_VERSION` (GoogleCloudPlatform/compute-gpu-installation#42).",
        "refused by the tables before SSH, and by the driver that is loaded",
        (f"{_STACK}::test_4_a_toolkit_that_the_driver_cannot_run_is_refused_and_can_be_told",),
    ),
    Mode(
        "A rig that must be restarted while somebody uses it.",
        "",
        "`nvidia_driver_reboot: ask` stops there and says so",
        (f"{_PROVISION}::test_7_where_a_reboot_is_to_be_asked_for_the_rig_is_not_restarted",),
    ),
    Mode(
        "A local connection: the restart would be the controller's own.",
        f"`would reboot the control node` ({_ROLE}#20)",
        "refused, under the controller's other names too",
        (f"{_REBOOT}::test_a_local_connection_is_refused",),
    ),
    Mode(
        "A restart that ends at the console: encrypted volume or root on ZFS, missing mount, renamed interface, "
        "small /boot.",
        "",
        "refused before anything is installed, each with its remedy",
        (
            f"{_REBOOT}::test_provision_refuses_before_anything_is_installed",
            "tests/roles/test_reboot_look.py::test_encrypted_root_on_zfs",
        ),
    ),
    Mode(
        "A new kernel does not start, or fails the check behind it.",
        "",
        "started once on trial; a power cycle brings the old one back",
        (f"{_REBOOT}::test_new_kernels_are_started_on_trial",),
    ),
    Mode(
        "Provisioning itself is interrupted.",
        "",
        "run again, it ends as an uninterrupted one does",
        (
            "tests/failures/test_interrupted.py::test_an_interrupted_provisioning_ends_as_an_uninterrupted_one_when_run_again",
        ),
    ),
)
