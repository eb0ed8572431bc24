"""Failures of upgrades that are not the rig's own fault alone: packages, kernels, people, and cards that get slower.

Each scene leaves the rig as it found it; a scene that fails shows what was left.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import yaml

from .on_rig import restored_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .on_rig import RigInUse, Upgraded

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(1800)]
NEXT = "5.15.0-92-generic"
"""A kernel that is newer than the rig's own: the one that boots next."""
JOBS = "/run/jobs"
"""While the rig has this file, a job runs there."""
DRAIN = {"kind": "command", "drain": ["true"], "resume": ["true"], "where": "rig",
         "jobs": ["sh", "-c", f"cat {JOBS} 2>/dev/null || true"]}  # fmt: skip
PACKAGE = """\
set -eu
d=$(mktemp -d)
mkdir $d/DEBIAN
printf 'Package: %s\\nVersion: 1\\nArchitecture: all\\nMaintainer: ops\\nDescription: of the site\\n%s\\n' \
  '{name}' '{relation}' >$d/DEBIAN/control
for path in {paths}; do mkdir -p $d$(dirname $path); echo stand-in >$d$path; done
dpkg-deb --build $d $d.deb >/dev/null
sudo dpkg --install $d.deb >/dev/null
rm -r $d $d.deb
"""


def install(rig: RigInUse, name: str, *paths: str, relation: str = "Section: misc") -> None:
    """Install a package of the site's own."""
    rig.ssh(PACKAGE.format(name=name, relation=relation, paths=" ".join(paths)))


def is_refused(refused: Upgraded, step: str, *said: str) -> None:
    """Refused at this step, in these words, with nothing done and nobody's rig."""
    assert (refused.code, refused.end["end"], refused.end["step"]) == (4, "refused", step), refused.said
    assert [word for word in said if word not in refused.said] == [], refused.said
    assert {"change", "restore"}.isdisjoint(one["detail"].get("step") for one in refused.entries)


def is_rolled_back(rig: RigInUse, failed: Upgraded, step: str, *said: str) -> None:
    """Rolled back from this step, in these words; whole, and given back."""
    assert (failed.code, failed.end["end"], failed.end["step"]) == (4, "rolled_back", step), failed.said
    assert [word for word in said if word not in failed.said] == [], failed.said
    assert restored_whole(failed) == ()
    assert not rig.held()
    assert not rig.own_file.exists()


def test_1_a_package_that_somebody_holds_is_named_and_stays(rig: RigInUse) -> None:
    ours = rig.ssh("apt-mark showhold").split()
    rig.set(nvidia_driver_hold=False)
    rig.ssh(f"sudo apt-mark unhold {' '.join(ours)}; sudo apt-mark hold nvidia-utils-515")
    before = rig.packages()
    is_refused(
        rig.upgrade("rig1", "--driver", "535"), "preflight", "held by somebody", "apt-mark unhold nvidia-utils-515"
    )
    assert rig.packages() == before
    assert not rig.held()
    rig.ssh(f"sudo apt-mark hold {' '.join(ours)}")
    rig.set()
    assert rig.is_as_first()


def test_2_a_branch_that_is_only_a_way_to_another_one_is_refused(rig: RigInUse) -> None:
    """The archive of 2026, in which nvidia-driver-535 leads to 580 and 525 to 535."""
    rig.ssh("sudo sed -i.kept s,/2022,/2026, /etc/apt/sources.list; sudo apt-get -qq update")
    rig.set(nvidia_driver_source="ubuntu")
    own = rig.upgrade("rig1", "--driver", "535")
    rig.set()
    every = rig.upgrade("rig1", "--driver", "525")
    rig.ssh("sudo mv /etc/apt/sources.list.kept /etc/apt/sources.list; sudo apt-get -qq update")
    is_refused(own, "preflight", "ubuntu has nvidia-driver-535 only as a transitional package", "cuda_repo")
    is_refused(every, "preflight", "nvidia-driver-525")
    assert rig.is_as_first()


@pytest.mark.parametrize("how", ["needed", "pinned"])
def test_3_a_transaction_that_apt_does_not_make_is_refused(rig: RigInUse, how: str) -> None:
    if how == "needed":
        install(rig, "site-tools", relation="Depends: nvidia-utils-515")
        said = ("would remove site-tools",)
    else:
        rig.put("Package: libnvidia-gl-535\nPin: release *\nPin-Priority: -10\n", "/etc/apt/preferences.d/a-site")
        said = ("apt cannot install 535", "libnvidia-gl-535", "not installable")
    before = rig.packages()
    is_refused(rig.upgrade("rig1", "--driver", "535"), "preflight", *said)
    assert rig.packages() == before
    rig.ssh("sudo dpkg --purge site-tools 2>/dev/null; sudo rm -f /etc/apt/preferences.d/a-site")
    assert rig.is_as_first()


def test_4_who_takes_a_card_between_drain_and_change_keeps_it(rig: RigInUse) -> None:
    takes = "sudo touch /dev/nvidia0; setsid sh -c 'exec sleep 900 3</dev/nvidia0' >/dev/null 2>&1 & echo $!"
    taken: list[str] = []
    # Once the acceptance before it has begun, nobody is looked for any more.
    refused = rig.upgrade_while("before", lambda: taken.append(rig.ssh(takes)), "rig1", "--driver", "535")
    assert rig.ssh("pgrep --exact sleep --count --oldest; pkill --exact sleep") == "1"
    is_refused(refused, "release", "the cards are held by ops: sleep 900", "--evict-users")
    assert taken
    assert rig.is_as_first()
    assert not rig.own_file.exists()


def test_5_a_kernel_that_came_meanwhile_without_headers_is_refused(rig: RigInUse) -> None:
    refused = with_a_new_kernel(rig, lambda: None)
    with_kernel = rig.packages()
    is_refused(refused, "release", f"the kernel {NEXT} has no headers", "Nothing was installed")
    assert not rig.held()
    rig.ssh(f"sudo dpkg --purge linux-image-{NEXT}")
    assert [line for line in with_kernel if NEXT not in line] == rig.first
    assert rig.is_as_first()


def test_6_a_kernel_that_came_meanwhile_and_breaks_the_module_leads_back(rig: RigInUse) -> None:
    def headers() -> None:
        put_headers(rig)
        words = "#define LEAST_NVIDIA_BRANCH 580\n#define SINCE_NVIDIA_BRANCH 535\n"
        rig.ssh(f"sudo mkdir /usr/src/linux-headers-{NEXT}/include")
        rig.put(words, f"/usr/src/linux-headers-{NEXT}/include/rigsim-interfaces.h")

    failed = with_a_new_kernel(rig, headers)
    is_rolled_back(rig, failed, "change", f"does not compile for the kernel {NEXT}")
    rig.ssh(f"sudo rm -rf /usr/src/linux-headers-{NEXT} /lib/modules/{NEXT}")
    assert rig.is_as_first()


@pytest.fixture
def low_floor(rig: RigInUse) -> Iterator[None]:
    """The spec asks for less than what the cards do, so that only the comparison with before can tell."""
    path = rig.fleet.inventory / "host_vars" / "rig1" / "spec.yml"
    text = path.read_text(encoding="utf-8")
    spec = yaml.safe_load(text)["rig_spec_host"]
    spec["limits"] = {"min_burn_gflops": 20_000}
    spec["sources"]["limits.min_burn_gflops"] = "these tests"
    path.write_text(yaml.safe_dump({"rig_spec_host": spec}), encoding="utf-8")
    yield
    path.write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("low_floor")
def test_7_a_driver_that_is_slower_by_15_percent_is_rolled_back(rig: RigInUse) -> None:
    rig.fault("cards_slow", since="535")
    failed = rig.upgrade("rig1", "--driver", "535")
    is_rolled_back(rig, failed, "verify", "slower after the upgrade than before", "throughput.burn_gflops")
    # 85 % of what they did, give or take what else this machine does.
    assert re.search(r"burn_gflops\[slot1 [^]]*\] [\d.]+, was [\d.]+ \(-1[2-9]%\)", failed.said)
    rig.clear()
    assert rig.is_as_first()


@pytest.mark.usefixtures("low_floor")
def test_8_cards_that_stay_slow_are_left_drained_until_they_are_mended(rig: RigInUse) -> None:
    rig.fault("cards_slow", when="boot")
    failed = rig.upgrade("rig1", "--driver", "535")
    assert (failed.code, failed.end["end"], failed.end["step"]) == (4, "left_drained", "check_restored"), failed.said
    assert "slower after the upgrade than before" in failed.said
    assert "slower after the way back too than before" in failed.said
    assert restored_whole(failed) == ()
    assert (rig.held(), rig.loaded()) == (True, "515.105.01")
    rig.clear()
    finished = rig.upgrade("--resume", failed.run.name)
    is_rolled_back(rig, finished, "verify")
    assert rig.is_as_first()


def test_9_a_kernel_that_came_meanwhile_has_its_module_before_it_boots(rig: RigInUse) -> None:
    upgraded = with_a_new_kernel(rig, lambda: put_headers(rig))
    assert (upgraded.code, upgraded.end["end"]) == (0, "upgraded"), upgraded.said
    assert rig.ssh(f"modinfo -k {NEXT} -F version nvidia") == rig.loaded() == "535.183.01"
    back = rig.upgrade("rig1", "--driver", "515")
    assert (back.code, back.end["end"]) == (0, "upgraded"), back.said
    rig.ssh(f"sudo dpkg --purge linux-image-{NEXT} linux-headers-{NEXT}")
    assert rig.is_as_first()


def put_headers(rig: RigInUse) -> None:
    headers = f"/usr/src/linux-headers-{NEXT}"
    install(rig, f"linux-headers-{NEXT}", f"{headers}/Makefile")
    rig.ssh(f"sudo ln -sfn {headers} /lib/modules/{NEXT}/build")


def with_a_new_kernel(rig: RigInUse, then: Callable[[], None]) -> Upgraded:
    """Upgrade, while the rig waits for a job at whose end another kernel is the one that boots next."""

    def comes() -> None:
        install(rig, f"linux-image-{NEXT}", f"/boot/vmlinuz-{NEXT}", f"/lib/modules/{NEXT}/modules.builtin")
        rig.ssh(f"sudo update-initramfs -c -k {NEXT}")
        then()
        rig.ssh(f"sudo rm {JOBS}")

    rig.set(rig_drain=DRAIN)
    rig.put("job 7 of ada\n", JOBS)
    done = rig.upgrade_while("drain", comes, "rig1", "--driver", "535")
    rig.set()
    return done
