"""Faults that provisioning meets: what boxes are like before they are rigs, and what archives do meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from rigctl.sim.machine.hardware.rigsim.faults import FaultInfo, Parameter


@dataclass(frozen=True)
class ProvisioningFault:
    """One entry. Acceptance does not look for it, so `rigctl accept` finds nothing and exits 0."""

    name: str
    summary: str
    in_the_field: str
    met: str
    """How `rigctl provision` meets it, in a few words; the tests in tests/failures prove it."""
    parameters: tuple[Parameter, ...] = ()
    needs: str = ""

    @property
    def info(self) -> FaultInfo:
        """The entry as the rig-side catalogue has it."""
        return FaultInfo(self.name, self.summary, found_by=(), exit_code=0, parameters=self.parameters)


PROVISIONING: tuple[ProvisioningFault, ...] = (
    ProvisioningFault(
        "apt_lock_held",
        "Something else installs packages and holds the locks of apt and dpkg.",
        "Unattended upgrades, or the first boot's cloud-init: `Could not get lock /var/lib/dpkg/lock-frontend` "
        "(ansible/ansible#51663, ansible-lockdown/UBUNTU22-CIS#215, canonical/cloud-init#2908).",
        met="waits for the lock; where that takes too long, says so and what to stop",
        parameters=(Parameter("seconds", default=30, low=1, high=3600, summary="how long"),),
    ),
    ProvisioningFault(
        "boot_full",
        "/boot is a small partition, and old kernels have filled it: no initial RAM disk fits.",
        "Installers with an encrypted root make a small /boot; kernels pile up in it.",
        met="refused before the rig is restarted",
    ),
    ProvisioningFault(
        "clock_wrong",
        "The rig's clock is wrong: it is years behind.",
        "A flat battery on the board and no time server in reach; certificates and package lists are then refused.",
        met="refused before anything is changed, with the command that sets it",
        parameters=(Parameter("days", default=700, low=1, high=10_000, summary="how far behind, days"),),
    ),
    ProvisioningFault(
        "compiler_missing",
        "The running kernel was built by a newer gcc than the rig's own, which cannot build modules for it.",
        "`gcc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'` in DKMS's make.log "
        "(pop-os/pop#3117, aws-samples/aws-deep-learning-ami-ubuntu-dcv-desktop#30).",
        met="installs the kernel's own compiler with the driver",
    ),
    ProvisioningFault(
        "disk_full_midway",
        "The disk fills while packages are unpacked: the firmware of a newer driver finds no room.",
        "`cannot copy extracted data … failed to write (No space left on device)`: check points fill what apt had "
        "found free.",
        met="puts the packages back as they were, and names what is full",
        needs="a driver of branch 525 or later that is to be installed",
    ),
    ProvisioningFault(
        "dkms_build_fails",
        "The kernel's interfaces have moved on; a driver of an older branch does not compile against its headers.",
        "A new kernel series came with an upgrade; DKMS's make.log ends with compiler errors "
        "(elementary/settings-system#333, compiler-explorer/infra#1722).",
        met="named, with the branch or kernel to choose; what had come is taken away again",
        parameters=(
            Parameter("branch", default=525, low=400, high=999, summary="the oldest that compiles"),
            Parameter("since", default=0, low=0, high=999, summary="older branches than this one compile too"),
        ),
    ),
    ProvisioningFault(
        "dpkg_interrupted",
        "dpkg was killed in the middle: a package is not configured, and dpkg wants to be told to go on.",
        "A power cut or an impatient Ctrl-C: `dpkg was interrupted, you must manually run 'dpkg --configure -a'`.",
        met="finishes the installation that was interrupted before it begins its own",
    ),
    ProvisioningFault(
        "first_boot_runs",
        "The first boot's cloud-init is still at work, and holds the locks of apt and dpkg.",
        "A machine of a cloud, or one that was installed unattended, answers by SSH before it is ready "
        "(canonical/cloud-init#2908, ansible/ansible#51663).",
        met="waits for it; where that takes too long, says so",
        parameters=(Parameter("seconds", default=30, low=1, high=3600, summary="how long"),),
    ),
    ProvisioningFault(
        "headers_missing",
        "The running kernel has no headers, so no module can be built for it.",
        "`NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver` "
        "(GoogleCloudPlatform/compute-gpu-installation#18, NVIDIA/ansible-role-nvidia-driver#20).",
        met="installs the headers of the running kernel with the driver",
    ),
    ProvisioningFault(
        "held_package",
        "An older library of the driver was installed by hand, and is held.",
        "`held broken packages` when the driver is installed "
        "(NVIDIA/ansible-role-nvidia-driver#28, NVIDIA/ansible-role-nvidia-driver#33).",
        met="refused before anything is installed, with the command that lets the package go",
        needs="an archive of 2022, where 515 is real",
    ),
    ProvisioningFault(
        "index_stale",
        "The archive has withdrawn its newest 515 since the rig read the package lists; its server answers 404.",
        "404 on a package that the lists promise (NVIDIA/ansible-role-nvidia-driver#72).",
        met="named, with the command that reads the lists again",
        needs="an archive of 2022, where 515 is real",
    ),
    ProvisioningFault(
        "key_missing",
        "A foreign package source is signed with a key that the rig does not have.",
        "`NO_PUBKEY` after a change of keys (NVIDIA/nvidia-docker#1631, NVIDIA/cuda-repo-management#39).",
        met="named, with the list and the key",
    ),
    ProvisioningFault(
        "mirror_gone",
        "The package mirror does not answer.",
        "A mirror was closed, or a proxy switched off.",
        met="named, with the command that says which",
    ),
    ProvisioningFault(
        "needrestart_asks",
        "After every installation needrestart asks which services to restart, and waits for the answer.",
        "Ubuntu 22.04 comes so: apt hangs over SSH (antoinedc/MantaUI#1450, projectcalico/calico#12137, "
        "ansible/ansible#35497).",
        met="lets it list what would have to be restarted, for people who install by hand too",
    ),
    ProvisioningFault(
        "nouveau_bound",
        "The cards belong to nouveau, which comes with the initial RAM disk.",
        "`The NVIDIA probe routine was not called` (NVIDIA/gpu-operator#8).",
        met="blacklists nouveau, builds the initial RAM disk again and restarts the rig",
    ),
    ProvisioningFault(
        "persistenced_masked",
        "The unit nvidia-persistenced.service is masked.",
        "Some images come so: `Unit nvidia-persistenced.service is masked` "
        "(NVIDIA/ansible-role-nvidia-driver#79, NVIDIA/nvidia-persistenced#16).",
        met="does not need that unit: a unit of its own sets persistence",
    ),
    ProvisioningFault(
        "secure_boot",
        "Secure Boot is on: a module that is built on the rig is not loaded.",
        "`Key was rejected by service` (linux-surface/linux-surface#906).",
        met="refused before anything is installed",
    ),
    ProvisioningFault(
        "signed_by_conflict",
        "A list of an earlier installation names NVIDIA's repository with another key, and apt reads no list at all.",
        "`Conflicting values set for option Signed-By`, after somebody followed another guide.",
        met="removes the other list, and keeps one of its own",
    ),
    ProvisioningFault(
        "sudo_password",
        "sudo asks for a password (it is `rigsim`).",
        "So are most machines after installing: `sudo: a password is required` (microsoft/superbenchmark#561).",
        met="named, with the two ways to give the password",
    ),
)
