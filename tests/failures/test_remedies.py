"""What apt, dpkg, DKMS and sudo say is recognised, and answered with what to do."""

# ruff: noqa: E501 - texts as they come

import pytest

from rigctl.provision.remedies import recognise

SAID = {
    "a bundle": (
        "base_offline_bundle: The bundle lacks CUDA 12.2; it has 11.7. Make the bundle again where there is a network. Nothing was changed.",
        "the bundle is of no use",
        "rigctl bundle DIR --from RIG",
    ),
    "a lock": (
        (
            "Failed to lock apt for exclusive operation: Failed to lock directory /var/lib/apt/lists/: E:Could not get lock "
            "/var/lib/apt/lists/lock. It is held by process 437 (unattended-upgr)"
        ),
        "process 437 (unattended-upgr) holds apt's lock",
        "systemctl stop unattended-upgrades",
    ),
    "dpkg": (
        "E: dpkg was interrupted, you must manually run 'sudo dpkg --configure -a' to correct the problem.",
        "dpkg was interrupted",
        "sudo dpkg --configure -a",
    ),
    "two lists": (
        (
            "E:Conflicting values set for option Signed-By regarding source file:/srv/cuda/ : /usr/share/keyrings/a.gpg != , "
            "E:The list of sources could not be read."
        ),
        "two lists name the package source file:/srv/cuda/ with different values for Signed-By",
        "grep -rlF file:/srv/cuda/",
    ),
    "a key": (
        (
            "W:GPG error: file:/srv/foreign ./ InRelease: The following signatures couldn't be verified because the public "
            "key is not available: NO_PUBKEY A4B469963BF863CC, E:The repository 'file:/srv/foreign ./ InRelease' is not signed."
        ),
        "signed with the key A4B469963BF863CC, which this rig does not have (file:/srv/foreign)",
        "signed-by",
    ),
    "a key that was signed with SHA-1": (
        (
            "W:GPG error: http://192.0.2.1/x  InRelease: Sub-process /usr/bin/sqv returned an error code (1), error message is: "
            "Signing key on EB693B3035CD5710E231E123A4B469963BF863CC is not bound: Policy rejected non-revocation signature because: "
            "SHA1 is not considered secure since 2026-02-01T00:00:00Z"
        ),
        "no longer accepts SHA-1, with which the key EB693B3035CD5710E231E123A4B469963BF863CC",
        "signed-by",
    ),
    "no signature": (
        "E:The repository 'http://192.0.2.1/x ./ Release' is not signed.",
        "http://192.0.2.1/x ./ Release is not signed",
        "/etc/apt/sources.list.d",
    ),
    "a package that went": (
        "E: Failed to fetch http://192.0.2.1/pool/nvidia-driver-515_515.86.01_amd64.deb  404  Not Found",
        "the archive no longer has a package",
        "sudo apt-get update",
    ),
    "a mirror": (
        (
            "W:Failed to fetch http://192.0.2.1/dists/jammy/InRelease  Could not connect to 192.0.2.1:80 (192.0.2.1). - "
            "connect (111: Connection refused)"
        ),
        "the package source 192.0.2.1:80 does not answer",
        "Acquire::http::Proxy",
    ),
    "a mirror, without a word": (
        "Failed to update apt cache after 5 retries: ",
        "a package source does not answer",
        "sudo apt-get update says which",
    ),
    "sudo": ("Missing sudo password", "sudo asks for a password", "--ask-become-pass"),
    "sudo through Mitogen": (
        "error occurred on host rig1: sudo password is required",
        "sudo asks for a password",
        "--ask-become-pass",
    ),
    "a full disk": (
        "update-initramfs: Generating /boot/initrd.img-5.15.0-91-generic | gzip: stdout: No space left on device",
        "is full (/boot/initrd.img-5.15.0-91-generic)",
        "df -h / /boot",
    ),
    "a module": (
        (
            "Error! Bad return status for module build on kernel: 6.5.0-14-generic (x86_64) | Consult "
            "/var/lib/dkms/nvidia/515.105.01/build/make.log for more information."
        ),
        "does not compile for the kernel 6.5.0-14-generic",
        "/var/lib/dkms/nvidia/515.105.01/build/make.log",
    ),
    "Secure Boot": (
        "could not insert 'nvidia': Key was rejected by service",
        "Secure Boot refused",
        "mokutil --import",
    ),
    "a conflict": (
        "E: Unable to correct problems, you have held broken packages.",
        "a held package, or a version from another source",
        "/etc/apt/sources.list.d",
    ),
    "a hold": (
        "E: Held packages were changed and -y was used without --allow-change-held-packages.",
        "a held package stands in the way",
        "apt-mark unhold",
    ),
}


@pytest.mark.parametrize("what", SAID)
def test_known_words_are_recognised(what):
    message, said, remedy = SAID[what]
    known = recognise(message)
    assert known is not None
    assert said in known.said
    assert remedy in known.remedy
    assert "{" not in known.said + known.remedy
    assert "\n" not in known.said + known.remedy


def test_other_words_are_left_alone():
    assert recognise('nvidia_driver_branch: "abc" must be three digits in quotes') is None
