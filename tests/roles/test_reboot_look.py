"""What `reboot` takes for a reason not to restart, and what it makes of GRUB's menu."""

import importlib.util
import os
import textwrap
from types import SimpleNamespace

import pytest

from .roles_page import ROLES

spec = importlib.util.spec_from_file_location("reboot_look", ROLES / "reboot" / "files" / "look.py")
look = importlib.util.module_from_spec(spec)
spec.loader.exec_module(look)

OLD, NEW = "5.15.0-91-generic", "6.8.0-40-generic"
MENU = f"""\
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
else
   set default="0"
fi
function load_video {{
  insmod all_video
}}
menuentry 'Ubuntu' --class ubuntu $menuentry_id_option 'gnulinux-simple-aa' {{
	linux	/boot/vmlinuz-{NEW} root=UUID=aa ro
}}
submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced-aa' {{
	menuentry 'Ubuntu, with Linux {NEW}' --class ubuntu $menuentry_id_option 'gnulinux-{NEW}-advanced-aa' {{
		linux	/boot/vmlinuz-{NEW} root=UUID=aa ro
	}}
	menuentry 'Ubuntu, with Linux {NEW} (recovery mode)' $menuentry_id_option 'gnulinux-{NEW}-recovery-aa' {{
		linux	/boot/vmlinuz-{NEW} root=UUID=aa ro recovery
	}}
	menuentry 'Ubuntu, with Linux {OLD}' --class ubuntu $menuentry_id_option 'gnulinux-{OLD}-advanced-aa' {{
		linux	/boot/vmlinuz-{OLD} root=UUID=aa ro
	}}
}}
"""


@pytest.fixture
def rig(tmp_path):
    """A machine without any risk: `rig(path, text)` writes one of its files."""

    def write(path, text=""):
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(textwrap.dedent(text), encoding="utf-8")

    write.root = tmp_path
    (tmp_path / "boot").mkdir()
    write("proc/net/route", "Iface\tDestination\tGateway\nenp6s0\t00000000\t0102000A\nenp6s0\t0002000A\t00000000\n")
    write("sys/class/net/enp6s0/address", "aa:bb:cc:dd:ee:01\n")
    write("sys/class/net/lo/address", "00:00:00:00:00:00\n")
    write("proc/sys/kernel/random/boot_id", "1-2-3\n")
    return write


def names(risks):
    return [one["risk"] for one in risks]


def test_a_machine_without_risks(rig):
    found = look.look(rig.root)
    assert found["risks"] == []
    assert (found["boot_id"], found["next_kernel"], found["on_trial"]) == ("1-2-3", "", "")


@pytest.mark.parametrize(
    ("line", "luks", "risky"),
    [
        ("root UUID=aa none luks", "", True),
        ("root UUID=aa", "", True),
        ("root UUID=aa - luks,discard", "", True),
        ("# root UUID=aa none luks", "", False),
        ("root UUID=aa none luks,tpm2-device=auto", "", False),
        ("root UUID=aa none luks", "Tokens:\n  0: clevis\n", False),
        ("root UUID=aa /etc/keys/root.key luks", "", False),
        ("swap /dev/sda3 /dev/urandom swap", "", False),
        ("data UUID=bb none luks,nofail", "", False),
        ("data UUID=bb none luks,noauto", "", False),
    ],
)
def test_encrypted_volume(rig, monkeypatch, line, luks, risky):
    monkeypatch.setattr(look, "run", lambda *argv, **_: (0, luks))
    rig("etc/crypttab", f"{line}\n")
    assert names(look.encrypted_volumes(rig.root)) == ["encrypted_volume"] * risky


@pytest.mark.parametrize(
    ("mounts", "answers", "risky"),
    [
        ("rpool/ROOT/ubuntu_1 / zfs rw 0 0", ("rpool", "prompt"), True),
        ("rpool/ROOT/ubuntu_1 / zfs rw 0 0", ("rpool", "file:///run/keystore/rpool/system.key"), True),
        ("rpool/ROOT/ubuntu_1 / zfs rw 0 0", ("rpool", "file:///etc/zfs/rpool.key"), False),
        ("rpool/ROOT/ubuntu_1 / zfs rw 0 0", ("-", "none"), False),
        ("/dev/sda2 / ext4 rw 0 0\ntank/data /data zfs rw 0 0", ("tank", "prompt"), False),
    ],
)
def test_encrypted_root_on_zfs(rig, monkeypatch, mounts, answers, risky):
    answers = dict(zip(("encryptionroot", "keylocation"), answers, strict=True))
    monkeypatch.setattr(look, "run", lambda *argv, **_: (0, f"{answers[argv[-2]]}\n"))
    rig("proc/mounts", f"{mounts}\n")
    assert names(look.encrypted_zfs(rig.root)) == ["encrypted_volume"] * risky


@pytest.mark.parametrize(
    ("line", "risky"),
    [
        ("UUID=there /data ext4 defaults 0 2", False),
        ("UUID=gone /data ext4 defaults 0 2", True),
        ("UUID=gone /data ext4", True),
        ("UUID=gone /data ext4 nofail,noatime 0 2", False),
        ("UUID=gone /data ext4 noauto 0 0", False),
        ("UUID=gone none swap sw 0 0", False),
        ('LABEL="gone" /data xfs defaults 0 2', True),
        ("/dev/sdz1 /data ext4 defaults 0 2", True),
        ("/srv/gone /mnt none bind 0 0", True),
        ("filer:/data /data nfs defaults 0 0", False),
        ("//filer/data /data cifs defaults 0 0", False),
        ("tmpfs /tmp tmpfs defaults 0 0", False),
        ("#UUID=gone /data ext4 defaults 0 2", False),
        ("UUID=gone", False),
    ],
)
def test_missing_mount(rig, line, risky):
    rig("dev/disk/by-uuid/there")
    rig("etc/fstab", f"{line}\n")
    assert names(look.missing_mounts(rig.root)) == ["missing_mount"] * risky


@pytest.mark.parametrize(
    ("path", "text", "risky"),
    [
        ("etc/systemd/network/10-lan.network", "[Match]\nName=enp5s0\n", True),
        ("run/systemd/network/10-netplan-enp5s0.network", "[Match]\nName=enp5s0\n[Network]\nDHCP=ipv4\n", True),
        ("etc/systemd/network/10-lan.network", "[Match]\nName=enp5s0 enp6s0\n", False),
        ("etc/systemd/network/10-lan.network", "[Match]\nName=en*\n", False),
        ("etc/systemd/network/10-lan.network", "[Match]\nMACAddress=AA:BB:CC:DD:EE:01\n", False),
        ("etc/systemd/network/10-lan.network", "[Network]\nDHCP=yes\n", False),
        ("etc/NetworkManager/system-connections/lan", "[connection]\ninterface-name=enp5s0\n", True),
        ("etc/NetworkManager/system-connections/lan", "[connection]\nid=lan\n", False),
        ("etc/network/interfaces", "auto lo\niface lo inet loopback\nauto enp5s0\niface enp5s0 inet dhcp\n", True),
        ("etc/network/interfaces", "iface lo inet loopback\niface enp6s0 inet dhcp\n", False),
        ("etc/network/interfaces", "iface lo inet loopback\n", False),
    ],
)
def test_shifted_interface(rig, path, text, risky):
    rig(path, text)
    assert names(look.shifted_links(rig.root)) == ["shifted_interface"] * risky


def test_a_second_interface_that_is_gone_is_no_risk(rig):
    rig("etc/network/interfaces", "iface enp5s0 inet dhcp\niface enp6s0 inet dhcp\n")
    assert look.shifted_links(rig.root) == []


def test_of_a_bridge_its_own_interface_counts(rig):
    rig("proc/net/route", "Iface\tDestination\nbr0\t00000000\n")
    rig("sys/class/net/br0/address", "aa:bb:cc:dd:ee:02\n")
    rig("sys/class/net/br0/lower_enp6s0/address", "aa:bb:cc:dd:ee:01\n")
    rig("etc/network/interfaces", "iface br0 inet dhcp\n")
    assert look.shifted_links(rig.root) == []
    rig("etc/network/interfaces", "iface br0 inet dhcp\niface enp5s0 inet manual\n")
    assert names(look.shifted_links(rig.root)) == ["shifted_interface"]


@pytest.mark.parametrize(("blocks", "risky"), [(9, True), (10, False)])
def test_small_boot(rig, monkeypatch, blocks, risky):
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=blocks, f_frsize=100))
    assert look.small_boot(rig.root) == []  # without an initial RAM disk there is nothing to make room for
    rig(f"boot/initrd.img-{OLD}", "x" * 1000)
    assert names(look.small_boot(rig.root)) == ["small_boot"] * risky


def test_a_kernel_without_initial_ram_disk(rig):
    rig(f"boot/vmlinuz-{NEW}")
    assert look.headless_kernel(rig.root, NEW) == []
    rig(f"boot/initrd.img-{OLD}")
    assert names(look.headless_kernel(rig.root, NEW)) == ["missing_initramfs"]
    rig(f"boot/initrd.img-{NEW}")
    assert look.headless_kernel(rig.root, NEW) == []


@pytest.mark.parametrize(
    ("states", "found"),
    [
        ("dkms installed\nold config-files\nno not-installed\n", []),
        ("dkms installed\nnvidia-dkms-515 half-configured\n", ["nvidia-dkms-515 (half-configured)"]),
        ("a unpacked\nb unpacked\nc triggers-pending\nd unpacked\n", ["a (unpacked)", "and 1 more"]),
    ],
)
def test_unfinished_packages(rig, monkeypatch, states, found):
    monkeypatch.setattr(look, "run", lambda *argv, **_: (0, states))
    risks = look.unfinished_packages(rig.root)
    assert len(risks) == bool(found)
    assert all(word in risks[0]["found"] for word in found)


def kernels(rig, default="0", grubenv="", trial=""):
    rig("boot/grub/grub.cfg", MENU.replace('set default="0"', f'set default="{default}"'))
    rig("boot/grub/grubenv", f"# GRUB Environment Block\n{grubenv}\n#####")
    if trial:
        rig(look.TRIAL, f"# on trial: {trial}\nGRUB_DEFAULT=saved\n")
    return look.look_at_kernels(rig.root, OLD)


def test_the_kernel_that_starts_next_and_the_ways_to_both(rig):
    found = kernels(rig)
    assert found["next_kernel"] == NEW
    assert found["next_entry"] == f"gnulinux-advanced-aa>gnulinux-{NEW}-advanced-aa"
    assert found["running_entry"] == f"gnulinux-advanced-aa>gnulinux-{OLD}-advanced-aa"


@pytest.mark.parametrize(
    ("default", "grubenv", "following"),
    [
        ("1>2", "", OLD),
        ("1", "", NEW),
        (f"gnulinux-advanced-aa>gnulinux-{OLD}-advanced-aa", "", OLD),
        (f"Advanced options for Ubuntu>Ubuntu, with Linux {OLD}", "", OLD),
        ("${saved_entry}", "", NEW),
        ("${saved_entry}", f"saved_entry=gnulinux-advanced-aa>gnulinux-{OLD}-advanced-aa", OLD),
        ("7", "", ""),
    ],
)
def test_what_grub_starts_by_default(rig, default, grubenv, following):
    assert kernels(rig, default, grubenv)["next_kernel"] == following


def test_a_trial_that_was_begun_goes_on(rig):
    saved = f"saved_entry=gnulinux-advanced-aa>gnulinux-{OLD}-advanced-aa"
    found = kernels(rig, "${saved_entry}", saved, trial=NEW)
    assert (found["next_kernel"], found["on_trial"]) == (NEW, NEW)


def test_a_kernel_on_trial_that_was_removed_is_forgotten(rig):
    found = kernels(rig, "1>2", trial="6.9.0-1-generic")
    assert found["next_kernel"] == OLD
