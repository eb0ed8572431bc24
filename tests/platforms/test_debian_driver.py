"""How the driver role speaks of Debian's packages, whose names do not carry the branch."""

import pytest

from tests.roles.test_driver_look import script

debian, apt_answers, choice, offers = (script(name) for name in ("debian", "apt_answers", "driver_choice", "offers"))
WISHES = {
    "branch": "535", "version": "", "source": "debian", "flavour": "desktop", "modules": "dkms", "known_bad": [],
    "system": "debian",
}  # fmt: skip


def offer(version, *, sources=("debian",), real=True):
    driver = apt_answers.driver_version(version)
    return {"version": version, "driver": driver, "real": real, "bad": "", "installed": False, "sources": [*sources]}


NEW, OLD = offer("535.309.01-0+deb12u1"), offer("535.261.03-1")


@pytest.mark.parametrize(
    ("package", "is_driver"),
    [
        ("nvidia-driver", True),
        ("nvidia-kernel-dkms", True),
        ("nvidia-open-kernel-dkms", True),
        ("libcuda1", True),
        ("libegl-nvidia0", True),
        ("xserver-xorg-video-nvidia", True),
        ("firmware-nvidia-gsp", True),
        ("libnvidia-compute-535", True),
        ("nvidia-modprobe", False),  # a source, and so a version, of its own
        ("nvidia-support", False),
        ("nvidia-container-toolkit", False),
        ("libnvidia-container1", False),
        ("nvidia-cuda-toolkit", False),
    ],
)
def test_which_packages_are_the_driver(package, is_driver):
    assert apt_answers.is_driver(package) is is_driver


@pytest.mark.parametrize(
    ("flavour", "top"),
    [
        ("desktop", ["nvidia-driver", "nvidia-kernel-dkms", "nvidia-smi", "libcuda1"]),
        ("headless", ["nvidia-kernel-dkms", "nvidia-smi", "libcuda1"]),
        ("open", ["nvidia-open-kernel-dkms", "nvidia-driver", "nvidia-smi", "libcuda1"]),
        ("headless-open", ["nvidia-open-kernel-dkms", "nvidia-smi", "libcuda1"]),
    ],
)
def test_what_a_flavour_is_called(flavour, top):
    assert choice.top_packages({**WISHES, "flavour": flavour}, ["6.1.0-57-amd64"]) == top


def test_the_other_kernel_module_goes():
    assert choice.is_old("nvidia-kernel-dkms", {**WISHES, "flavour": "open"})
    assert choice.is_old("nvidia-open-kernel-dkms", WISHES)
    assert not choice.is_old("libcuda1", WISHES)
    assert choice.is_old("nvidia-tesla-470-driver", WISHES)


def test_the_branch_is_in_the_version():
    assert choice.choose([NEW, OLD], WISHES) == ("535.309.01-0+deb12u1", "debian")
    assert choice.choose([NEW, OLD], {**WISHES, "version": "535.261.03"}) == ("535.261.03-1", "debian")


def test_another_branch_is_refused_with_the_one_that_is_there():
    wishes = {**WISHES, "branch": "515"}
    unreal = [{**NEW, "real": False}, {**OLD, "real": False}]
    assert choice.choose(unreal, wishes) == ("", "debian")
    said = choice.not_offered(wishes, unreal, "", [])
    assert said == (
        "debian does not have nvidia-driver of branch 515; on offer: 535.309.01, 535.261.03. Nothing was installed. "
        'Choose: set nvidia_driver_branch: "535".'
    )


def test_a_version_that_is_not_there_is_refused():
    said = choice.not_offered({**WISHES, "version": "535.1"}, [NEW], "", [])
    assert "branch 535 535.1; on offer: 535.309.01." in said
    assert said.endswith('Choose: set nvidia_driver_version: "".')


def test_a_rig_without_non_free_is_told_where_the_driver_is_kept():
    said = choice.not_offered(WISHES, [], "", [])
    assert "Debian keeps it in non-free" in said
    assert "`contrib non-free`" in said


@pytest.mark.parametrize(
    ("wish", "instead"),
    [
        ({"flavour": "server"}, "nvidia_driver_flavour: desktop"),
        ({"flavour": "headless-server-open"}, "nvidia_driver_flavour: headless-open"),
        ({"modules": "signed"}, "nvidia_driver_modules: dkms"),
    ],
)
def test_what_debian_does_not_have_is_refused_with_what_to_set(wish, instead):
    assert debian.refusal({**WISHES, **wish}).endswith(f"Choose: set {instead}.")
    assert debian.refusal(WISHES) == ""


def test_preferences_pin_the_sources_and_leave_the_container_toolkit_alone():
    records = choice.preferences("debian", WISHES, "535.309.01-0+deb12u1").split("\n\n")
    assert records[0] == "Package: libnvidia-container*\nPin: release *\nPin-Priority: 500"
    assert "src:nvidia-graphics-drivers" in records[1]
    assert "Pin: release o=Debian\nPin-Priority: 900" in records[2]
    assert "libcuda1" in records[3]
    assert records[3].endswith("Pin: release *\nPin-Priority: -1")


@pytest.mark.parametrize(
    ("os_release", "asked", "found"),
    [
        ('PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n', "ubuntu", ("debian", "debian")),
        ('NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n', "debian", ("ubuntu", "ubuntu")),
        ("ID=debian\n", "cuda_repo", ("debian", "cuda_repo")),
    ],
)
def test_the_distribution_s_own_archive_has_either_name(tmp_path, os_release, asked, found):
    path = tmp_path / "os-release"
    path.write_text(os_release)
    wishes = offers.on_this_system({**{k: v for k, v in WISHES.items() if k != "system"}, "source": asked}, path)
    assert (wishes["system"], wishes["source"]) == found


def test_a_part_with_another_version_is_a_stranger():
    installs = [["nvidia-driver", "535.309.01-0+deb12u1"], ["libcuda1", "535.261.03-1"], ["nvidia-modprobe", "9"]]
    assert choice.strangers(installs, WISHES, "535.309.01-0+deb12u1") == ["libcuda1 535.261.03-1"]
