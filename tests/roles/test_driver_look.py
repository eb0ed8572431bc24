"""What `nvidia_driver` reads out of apt, dpkg and nvidia-smi, and what it refuses."""

import fnmatch
import importlib.util
import json
import os
import sys

import pytest

from .roles_page import ROLES


def script(name):
    """A script of the role, which finds its modules beside it here; on a rig they are shipped with it."""
    folder = str(ROLES / "nvidia_driver" / "files")
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(f"driver_{name}", ROLES / "nvidia_driver" / "files" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


look, offers = script("look"), script("offers")
choice = sys.modules["driver_choice"]
answers_of = sys.modules["apt_answers"]

SOURCES = """\
Package files:
 100 /var/lib/dpkg/status
     release a=now
 500 file:/srv/cuda  Packages
     release o=NVIDIA,l=NVIDIA CUDA,c=
 500 http://archive.example/ubuntu jammy-updates/restricted amd64 Packages
     release v=22.04,o=Ubuntu,a=jammy-updates,n=jammy,l=Ubuntu,c=restricted,b=amd64
     origin archive.example
 500 http://own.example/apt ./ Packages
     release l=My drivers,c=
Pinned packages:
"""
BOTH = """\
nvidia-driver-515:
  Installed: (none)
  Candidate: 525.147.05-0ubuntu2.22.04.1
  Version table:
     525.147.05-0ubuntu2.22.04.1 500
        500 http://archive.example/ubuntu jammy-updates/restricted amd64 Packages
     515.105.01-0ubuntu1 500
        500 file:/srv/cuda  Packages
"""
INSTALLED = """\
nvidia-driver-515:
  Installed: 515.65.01-0ubuntu0.22.04.1
  Candidate: 525.147.05-0ubuntu2.22.04.1
  Version table:
     525.147.05-0ubuntu2.22.04.1 500
        500 http://archive.example/ubuntu jammy-updates/restricted amd64 Packages
 *** 515.65.01-0ubuntu0.22.04.1 100
        100 /var/lib/dpkg/status
"""
SHOW = """\
Package: nvidia-driver-515
Version: 525.147.05-0ubuntu2.22.04.1
Depends: nvidia-driver-535
Description-en: Transitional package for nvidia-driver-535
 Further lines.

Package: nvidia-driver-515
Version: 515.105.01-0ubuntu1
Description: NVIDIA driver metapackage
"""
BECOMES = """\
Inst nvidia-utils-535 (535.129.03-0ubuntu0.22.04.1 Ubuntu:22.04/jammy-updates [amd64])
Inst nvidia-driver-535 [515.65.01-0ubuntu0.22.04.1] (535.129.03-0ubuntu0.22.04.1 Ubuntu:22.04/jammy-updates [amd64])
Inst nvidia-driver-515 (525.147.05-0ubuntu2.22.04.1 Ubuntu:22.04/jammy-updates [amd64])
Remv gdm3 [42.0-1ubuntu7]
Conf nvidia-driver-515 (525.147.05-0ubuntu2.22.04.1 Ubuntu:22.04/jammy-updates [amd64])
"""
ALL_REAL = """\
Inst nvidia-driver-515 (515.105.01-0ubuntu1 NVIDIA CUDA [amd64])
"""
WISHES = {
    "branch": "515", "version": "", "source": "ubuntu", "flavour": "desktop", "modules": "dkms", "known_bad": [],
    "system": "ubuntu",
}  # fmt: skip
KERNEL = {
    "release": "5.15.0-91-generic", "running": True, "headers": True, "compiler": 11, "compiler_present": True,
    "compiler_too_old": False, "module": "",
}  # fmt: skip


@pytest.fixture
def apt(monkeypatch):
    """An apt that gives recorded answers."""
    answers = {"table": BOTH, "simulation": (0, BECOMES), "show": SHOW, "dpkg": "", "names": ""}

    def run(*argv, timeout_s=60):
        if argv[:2] == ("apt-cache", "policy"):
            return 0, answers.get(argv[-1], answers["table"]) if len(argv) > 2 else SOURCES
        if argv[:2] == ("apt-cache", "pkgnames"):
            return 0, answers["names"]
        if argv[0] == "dpkg-query":
            return 0, answers["dpkg"]
        answers["asked"] = argv
        return (0, answers["show"]) if argv[:2] == ("apt-cache", "show") else answers["simulation"]

    monkeypatch.setattr(offers, "run", run)
    monkeypatch.setattr(offers, "look_at_kernels", lambda _wished: [KERNEL])
    return answers


@pytest.mark.parametrize(
    ("package", "driver"),
    [
        ("515.105.01-0ubuntu0.22.04.1", "515.105.01"),
        ("515.76+really.515.65.01-0ubuntu0.22.04.1", "515.65.01"),
        ("1:535.54.03-0ubuntu1", "535.54.03"),
        ("510.108.03~rc1-1", "510.108.03"),
    ],
)
def test_driver_version(package, driver):
    assert answers_of.driver_version(package) == driver


@pytest.mark.parametrize(
    ("package", "branch"),
    [
        ("nvidia-driver-515", "515"),
        ("nvidia-driver-515-server", "515"),
        ("libnvidia-compute-535", "535"),
        ("nvidia-compute-utils-580", "580"),
        ("xserver-xorg-video-nvidia-515", "515"),
        ("nvidia-firmware-535-535.129.03", "535"),
        ("nvidia-headless-no-dkms-470", "470"),
        ("linux-modules-nvidia-515-server-5.15.0-91-generic", "515"),
        ("nvidia-settings", ""),
        ("dkms", ""),
    ],
)
def test_branch_of(package, branch):
    assert answers_of.branch_of(package) == branch


def test_sources_are_named_as_operators_ask_for_them():
    words = [choice.source_word(release) for release in answers_of.read_sources(SOURCES).values()]
    assert words == ["", "cuda_repo", "ubuntu", "release l=My drivers"]


def test_transitional_only_is_refused_with_what_it_would_become_and_who_has_the_real_one(apt):
    found = offers.look_at_offers(WISHES)
    assert found["target"] == ""
    assert not found["to_install"]
    assert "only as a transitional package: it would have become 535" in found["refusal"]
    assert "The source cuda_repo has the real one: nvidia-driver-515 515.105.01" in found["refusal"]
    assert 'set nvidia_driver_source: cuda_repo or nvidia_driver_branch: "535"' in found["refusal"]


def test_the_real_one_of_the_asked_source_is_taken(apt):
    apt["simulation"] = 0, ALL_REAL
    found = offers.look_at_offers({**WISHES, "source": "cuda_repo"})
    assert found["target"] == "515.105.01-0ubuntu1"
    assert (found["target_driver"], found["to_install"], found["refusal"]) == ("515.105.01", True, "")


def test_an_exact_version_that_nobody_has_is_refused(apt):
    found = offers.look_at_offers({**WISHES, "source": "cuda_repo", "version": "515.48.07"})
    assert found["target"] == ""
    assert "does not have nvidia-driver-515 515.48.07" in found["refusal"] or "transitional" in found["refusal"]


def test_a_rig_keeps_the_real_version_it_has(apt):
    apt.update(table=INSTALLED, simulation=(0, ""))
    found = offers.look_at_offers(WISHES)
    assert (found["target_driver"], found["to_install"], found["refusal"]) == ("515.65.01", False, "")


def test_a_transaction_of_another_branch_is_refused(apt):
    apt["simulation"] = 0, ALL_REAL + "Inst libnvidia-compute-535 (535.54.03-0ubuntu1 NVIDIA CUDA [amd64])\n"
    assert (
        "would also install libnvidia-compute-535 535.54.03"
        in offers.look_at_offers({**WISHES, "source": "cuda_repo"})["refusal"]
    )


def test_a_transaction_that_removes_something_foreign_is_refused(apt):
    apt["simulation"] = 0, ALL_REAL + "Remv gdm3 [42.0]\nRemv nvidia-driver-510 [510.108.03-0ubuntu1]\n"
    assert "would remove gdm3." in offers.look_at_offers({**WISHES, "source": "cuda_repo"})["refusal"]


def test_a_transaction_that_apt_cannot_do_is_refused_with_apt_s_words(apt):
    apt["simulation"] = 100, "E: Unable to correct problems, you have held broken packages."
    assert "you have held broken packages" in offers.look_at_offers({**WISHES, "source": "cuda_repo"})["refusal"]


def test_nobody_has_the_branch(apt):
    apt.update(table="", show="", simulation=(100, "E: Unable to locate package nvidia-driver-999"))
    assert (
        "no configured package source has nvidia-driver-999"
        in offers.look_at_offers({**WISHES, "branch": "999"})["refusal"]
    )


def test_preferences_allow_one_source_and_one_version():
    records = choice.preferences("cuda_repo", WISHES, "515.105.01-0ubuntu1").split("\n\n")
    assert [record.splitlines()[1:] for record in records] == [
        ["Pin: release *", "Pin-Priority: 500"],  # the container toolkit's library comes from elsewhere
        ["Pin: version 515.105.01-0ubuntu1", "Pin-Priority: 1001"],
        ["Pin: release l=NVIDIA CUDA", "Pin-Priority: 900"],
        ["Pin: release *", "Pin-Priority: -1"],
    ]
    # Of the branch's own packages none may be left out: apt would keep it at another version.
    exact = records[1].splitlines()[0].split()[1:]
    names = ("libnvidia-compute-515", "nvidia-dkms-515-open", "xserver-xorg-video-nvidia-515")
    assert all(any(fnmatch.fnmatch(name, pattern) for pattern in exact) for name in names)
    assert not any(fnmatch.fnmatch("linux-modules-nvidia-515-5.15.0-91-generic", pattern) for pattern in exact)


def card(**changes):
    usual = ("0", "GPU-0000-a91f", "450.00", "100.00", "480.00", "450.00", "Enabled")
    return {**dict(zip(look.CARD_FIELDS, usual, strict=True)), **changes}


def test_a_power_limit_outside_the_card_s_range_is_refused_by_that_card():
    cards = [card(), card(index="1", **{"power.max_limit": "450.00"})]
    assert look.refused_limits(cards, 480) == ["card 1 (…a91f, 100.00 to 450.00 W)"]
    assert look.refused_limits(cards, None) == []
    assert look.refused_limits([card(**{"power.max_limit": "[N/A]"})], 300) != []


@pytest.mark.parametrize(
    ("limit", "persistence", "differs"),
    [(450, True, False), (480, True, True), (None, True, False), (450, False, True)],
)
def test_cards_differ(limit, persistence, differs):
    assert look.cards_differ([card()], limit, persistence) is differs


def test_lines_of_another_shape_are_no_cards():
    assert look.read_cards(
        "0, GPU-1, 450.00, 100.00, 480.00, 450.00, Enabled\nUnable to determine the device handle"
    ) == [{**card(), "uuid": "GPU-1"}]


def test_another_branch_goes_in_the_same_transaction(apt):
    apt.update(
        dpkg="nvidia-utils-510 510.108.03-0ubuntu1 hi\nnvidia-settings 510.47.03 ii\nlibnvidia-gl-470 470.1-1 rc\n"
    )
    apt["simulation"] = 0, ALL_REAL + "Remv nvidia-utils-510 [510.108.03-0ubuntu1]\n"
    found = offers.look_at_offers({**WISHES, "source": "cuda_repo"})
    assert found["transaction"] == ["nvidia-driver-515=515.105.01-0ubuntu1", "nvidia-utils-510-"]
    assert apt["asked"][-len(found["transaction"]) :] == tuple(found["transaction"])
    assert (found["held"], found["packages"], found["refusal"]) == (["nvidia-utils-510"], ["nvidia-driver-515"], "")


def test_a_left_over_of_another_branch_alone_is_a_reason_to_act(apt):
    apt.update(table=INSTALLED, dpkg="nvidia-utils-510 510.108.03-0ubuntu1 ii\n")
    apt["simulation"] = 0, "Remv nvidia-utils-510 [510.108.03-0ubuntu1]\n"
    assert offers.look_at_offers(WISHES)["to_install"]


def test_each_script_prints_one_json_object(apt, capsys, monkeypatch):
    monkeypatch.setattr(look, "look_at_rig", lambda: {"cards": [card()]})
    look.main(
        json.dumps(
            {"power_limit_w": 480, "psu_w": None, "cpu_w": 150, "persistence": True, "settings": [], "options": {}}
        )
    )
    assert json.loads(capsys.readouterr().out)["cards_differ"]
    offers.main(json.dumps(WISHES))
    assert json.loads(capsys.readouterr().out)["target"] == ""


AUTO = {**WISHES, "source": "auto"}
BAD = [{"from": "515.100", "below": "515.106", "reason": "it hangs", "source": "somewhere#1"}]


def test_auto_takes_the_branch_from_the_first_source_that_truly_has_it(apt):
    apt["simulation"] = 0, ALL_REAL
    found = offers.look_at_offers(AUTO)
    assert (found["target_driver"], found["source"], found["refusal"]) == ("515.105.01", "cuda_repo", "")
    assert "Pin: release l=NVIDIA CUDA" in found["preferences"]
    apt["table"] = BOTH.replace(
        "500 file:/srv/cuda  Packages", "500 http://archive.example/ubuntu jammy-updates/restricted amd64 Packages"
    )
    assert offers.look_at_offers(AUTO)["source"] == "ubuntu"


def test_auto_that_finds_nothing_says_so(apt):
    apt.update(table="", show="", simulation=(100, "E: Unable to locate package"))
    assert "no configured package source has nvidia-driver-515" in offers.look_at_offers(AUTO)["refusal"]


def test_a_whole_package_version_may_be_asked_for(apt):
    really = "515.76+really.515.65.01-0ubuntu0.22.04.1"
    apt.update(table=BOTH.replace("515.105.01-0ubuntu1", really), simulation=(0, ""))
    for asked in ("515.65.01", really):
        found = offers.look_at_offers({**AUTO, "version": asked})
        assert (found["target"], found["target_driver"]) == (really, "515.65.01")


def test_a_known_bad_version_is_refused_with_its_reason_and_a_rig_that_has_it_moves_on(apt):
    apt["simulation"] = 0, ALL_REAL
    refusal = offers.look_at_offers({**AUTO, "known_bad": BAD})["refusal"]
    assert "515.105.01 is known to be bad: it hangs (somewhere#1). Nothing was installed." in refusal
    apt["table"] = INSTALLED.replace(
        "     525.147",
        "     515.107.02-0ubuntu1 500\n        500 file:/srv/cuda  Packages\n     525.147",
    ).replace("515.65.01", "515.105.01")
    assert offers.look_at_offers({**AUTO, "known_bad": BAD})["target_driver"] == "515.107.02"


def test_an_unknown_branch_is_answered_with_the_nearest_real_ones(apt):
    show = "".join(
        f"Package: nvidia-driver-{branch}\nVersion: {version}\nDescription: {text}\n\n"
        for branch, version, text in (
            ("470", "470.182.03-1", "NVIDIA driver metapackage"),
            ("510", "525.147.05-1", "Transitional package for nvidia-driver-535"),
            ("535", "535.129.03-1", "NVIDIA driver metapackage"),
            ("535-server", "535.129.03-1", "NVIDIA Server Driver metapackage"),
            ("580", "580.95.05-1", "NVIDIA driver metapackage"),
        )
    )
    apt.update(table="", show=show, names="nvidia-driver-470\n", simulation=(100, "E: Unable to locate package"))
    refusal = offers.look_at_offers({**WISHES, "branch": "550"})["refusal"]
    assert "The nearest that are real: nvidia-driver-535, nvidia-driver-580, nvidia-driver-470." in refusal


@pytest.mark.parametrize(
    ("flavour", "modules", "top"),
    [
        ("desktop", "dkms", ["nvidia-driver-535"]),
        ("open", "dkms", ["nvidia-driver-535-open"]),
        ("server", "dkms", ["nvidia-driver-535-server"]),
        ("headless", "dkms", ["nvidia-headless-535", "nvidia-utils-535"]),
        ("headless-server-open", "dkms", ["nvidia-headless-535-server-open", "nvidia-utils-535-server"]),
        ("headless", "signed", ["nvidia-headless-no-dkms-535", "nvidia-utils-535", "linux-modules-nvidia-535-K"]),
        ("server", "signed", ["nvidia-driver-535-server", "linux-modules-nvidia-535-server-K"]),
    ],
)
def test_what_a_flavour_is_called(flavour, modules, top):
    wishes = {**WISHES, "branch": "535", "flavour": flavour, "modules": modules}
    assert choice.top_packages(wishes, ["K"]) == top
    assert not any(choice.is_old(name, wishes) for name in top)


@pytest.mark.parametrize(
    ("package", "flavour", "modules", "old"),
    [
        ("libnvidia-compute-515", "server", "dkms", True),
        ("libnvidia-compute-515-server", "server", "dkms", False),
        ("nvidia-dkms-515", "open", "dkms", True),
        ("nvidia-utils-515", "open", "dkms", False),
        ("nvidia-dkms-515-open", "desktop", "dkms", True),
        ("nvidia-dkms-515", "desktop", "signed", True),
        ("linux-modules-nvidia-515-5.15.0-91-generic", "desktop", "dkms", True),
        ("linux-modules-nvidia-515-5.15.0-91-generic", "desktop", "signed", False),
        ("linux-modules-nvidia-510-5.15.0-91-generic", "desktop", "signed", True),
        ("nvidia-settings", "desktop", "dkms", False),
    ],
)
def test_what_another_flavour_leaves_has_to_go(package, flavour, modules, old):
    assert choice.is_old(package, {**WISHES, "flavour": flavour, "modules": modules}) is old


OFFERED = "x:\n  Version table:\n     1 500\n        500 file:/srv/cuda  Packages\n"


def test_headers_and_the_kernel_s_own_compiler_come_along(apt, monkeypatch):
    newer = {**KERNEL, "release": "6.5.0-45-generic", "headers": False, "compiler": 12, "compiler_present": False,
             "compiler_too_old": True}  # fmt: skip
    monkeypatch.setattr(offers, "look_at_kernels", lambda _wished: [KERNEL, newer])
    apt.update({"simulation": (0, ALL_REAL), "linux-headers-6.5.0-45-generic": OFFERED, "gcc-12": OFFERED})
    found = offers.look_at_offers(AUTO)
    assert found["transaction"][1:] == ["gcc-12", "linux-headers-6.5.0-45-generic"]
    assert found["refusal"] == ""
    apt["gcc-12"] = ""
    assert "was built by gcc-12, which this rig does not have" in offers.look_at_offers(AUTO)["refusal"]
    apt["linux-headers-6.5.0-45-generic"] = ""
    assert "no source offers linux-headers-6.5.0-45-generic" in offers.look_at_offers(AUTO)["refusal"]
    assert offers.look_at_offers({**AUTO, "modules": "signed"})["refusal"] == ""


def test_what_was_not_there_before_is_remembered_as_brought(apt):
    apt["simulation"] = (
        0,
        ALL_REAL + "Inst dkms (2.8.7 Ubuntu:22.04 [all])\nInst kmod [29-1] (30-1 Ubuntu:22.04 [amd64])\n",
    )
    assert offers.look_at_offers(AUTO)["brought"] == ["dkms", "nvidia-driver-515"]


@pytest.mark.parametrize(
    ("limit", "psu", "said"),
    [
        (450, None, ""),
        (480, None, "more than the board's own 450 W. Say with nvidia_driver_psu_w"),
        (480, 1600, ""),
        (
            480,
            1300,
            "2 cards at 960 W together, 150 W for the CPU (nvidia_driver_cpu_w) and 100 W for the rest are 1210 W",
        ),
        (None, 1200, "Set nvidia_driver_power_limit_w to at most 385"),
        (500, 5000, "outside the range of card 0"),
    ],
)
def test_a_power_limit_must_fit_card_board_and_power_supply(limit, psu, said):
    refusal = look.limit_refusal([card(), card(index="1")], limit, psu, 150)
    assert (said in refusal) if said else refusal == ""


@pytest.mark.parametrize(
    ("settings_age_s", "image_age_s", "stale"),
    [(100, 50, False), (50, 100, True), (50, None, True), (None, 100, False)],
)
def test_an_initial_ram_disk_that_an_interrupted_run_left_is_seen(tmp_path, settings_age_s, image_age_s, stale):
    (tmp_path / "boot").mkdir()
    (tmp_path / "etc" / "modprobe.d").mkdir(parents=True)
    (tmp_path / "boot" / "vmlinuz-5.15").touch()
    for path, age_s in ((look.NOUVEAU_SETTINGS, settings_age_s), ("boot/initrd.img-5.15", image_age_s)):
        if age_s is not None:
            (tmp_path / path).touch()
            os.utime(tmp_path / path, (1_000_000 - age_s, 1_000_000 - age_s))
    assert look.initramfs_stale("5.15", tmp_path) is stale
    assert look.initramfs_stale("6.5", tmp_path) is False


def test_an_option_of_a_loaded_module_that_differs_is_named(tmp_path):
    params = tmp_path / "proc/driver/nvidia/params"
    uvm = tmp_path / "sys/module/nvidia_uvm/parameters/uvm_disable_hmm"
    for path, text in ((params, 'EnableGpuFirmware: 18\nRegistryDwords: "a=1"\n'), (uvm, "N\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="ascii")
    asked = {
        "nvidia": {"NVreg_EnableGpuFirmware": 0, "NVreg_RegistryDwords": "a=1"},
        "nvidia_uvm": {"uvm_disable_hmm": 1},
    }
    assert look.options_differ(asked, tmp_path) == [
        "nvidia NVreg_EnableGpuFirmware is 18, asked 0",
        "nvidia_uvm uvm_disable_hmm is 0, asked 1",
    ]
    same = {"nvidia": {"NVreg_EnableGpuFirmware": 18, "NVreg_NotShown": 3}, "nvidia_uvm": {"uvm_disable_hmm": False}}
    assert look.options_differ(same, tmp_path) == []
    assert look.options_differ({"nvidia_drm": {"modeset": 1}}, tmp_path) == []
