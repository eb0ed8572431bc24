"""An upgrade of the kernel, without any rig: what is asked, planned, written, compared and put back."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rigctl.errors import UsageError
from rigctl.model.rig import Login, Rig
from rigctl.model.upgrade import End, Step, Wishes
from rigctl.upgrade.compare import all_differences
from rigctl.upgrade.inventory_file import wished_variables
from rigctl.upgrade.machine import Machine, Rules
from rigctl.upgrade.on_rig import kept, planning, state
from rigctl.upgrade.planning import PlanSeen, kernel_request, plan_of
from rigctl.upgrade.start import check_wishes
from tests.measure.test_plan import spec

from .park import FakeRig, new_run

RIG = Rig(name="rig1", login=Login(address="192.0.2.1"), spec=spec(), profiles={})
OLD, NEW = "5.15.0-91-generic", "5.15.0-105-generic"
VARIABLES = {
    "nvidia_driver_branch": "515", "nvidia_driver_reboot": "when_needed", "nvidia_driver_kernel_series": "",
    "kernel_version": "", "kernel_reboot": "when_needed", "cuda_version": "11.7", "cuda_allow_unrunnable": False,
    "pytorch_version": "auto", "pytorch_build": "auto", "reboot_accepted_risks": [],
}  # fmt: skip
OFFER = {
    "refusal": "", "dkms": ["nvidia/515.105.01"], "metas": ["linux-generic", "linux-image-generic"],
    "to_hold": ["linux-generic", f"linux-image-{NEW}"], "transaction": [f"linux-image-{NEW}"],
}  # fmt: skip
PACKAGE = {"name": f"linux-image-{NEW}", "version": "5.15.0-105.115", "before": "", "bytes": 100}


@pytest.mark.parametrize("version", [NEW, OLD, "6.1.0-18-amd64", "6.5.0-0.deb12.4-amd64"])
def test_a_kernel_is_named_as_uname_does(version):
    check_wishes(Wishes(kernel=version))


@pytest.mark.parametrize("version", ["", "5.15", "5.15.0-105", "5.15.0-105.115", "linux-image-5.15.0-105-generic"])
def test_another_word_is_refused(version):
    with pytest.raises(UsageError, match="is no kernel") as refused:
        check_wishes(Wishes(kernel=version))
    assert "5.15.0-105-generic" in refused.value.hint


def test_the_inventory_says_it():
    assert wished_variables(Wishes(kernel=NEW)) == {"kernel_version": NEW}
    assert Wishes(driver="535", kernel=NEW).words == f"driver 535, kernel {NEW}"


def test_the_role_is_asked_with_the_branch_that_is_to_come():
    assert kernel_request(Wishes(driver="535"), VARIABLES) is None
    assert kernel_request(Wishes(kernel=NEW), VARIABLES) == {"version": NEW, "branch": "515"}
    assert kernel_request(Wishes(driver="535", kernel=NEW), VARIABLES) == {"version": NEW, "branch": "535"}


def planned(running=OLD, offer=OFFER, packages=(PACKAGE,), risks=(), held=(), **variables):
    """The plan of a rig whose packages sources answered so."""
    driver, tools = SimpleNamespace(loaded="515.105.01"), SimpleNamespace(nvcc="11.7", torch="2.0.1")
    facts = SimpleNamespace(driver=driver, tools=tools, kernel=running)
    answer = {"offer": None, "kernel": offer, "packages": list(packages), "risks": list(risks), "held": list(held)}
    seen = PlanSeen(facts, answer, {**VARIABLES, **variables})
    return plan_of(RIG, Wishes(kernel=NEW), seen)


def test_the_plan_tells_packages_restart_builds_and_holds():
    plan = planned()
    assert (plan.has["kernel"], plan.gets, plan.reboot) == (OLD, {"kernel": NEW}, True)
    assert [(one.name, one.bytes) for one in plan.packages] == [(f"linux-image-{NEW}", 100)]
    assert plan.inventory == {"kernel_version": NEW}
    assert plan.refusals == ()
    assert plan.breaks == (
        "DKMS builds nvidia/515.105.01 for the kernel", "linux-generic held: updates bring no other kernel",
    )  # fmt: skip
    assert not plan.nothing_to_do


def test_a_rig_that_has_it_is_as_asked():
    offer = {**OFFER, "dkms": [], "to_hold": []}
    plan = planned(running=NEW, offer=offer, packages=(), kernel_version=NEW)
    assert (plan.reboot, plan.nothing_to_do) == (False, True)
    assert not planned(running=NEW, offer=offer, packages=()).nothing_to_do  # the inventory does not say it yet


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"offer": {**OFFER, "refusal": "no package source has it."}}, "the kernel: no package source has it."),
        ({"kernel_reboot": "ask"}, "the inventory says kernel_reboot: ask"),
        ({"nvidia_driver_kernel_series": "6.8"}, "nvidia_driver_kernel_series: 6.8"),
        ({"risks": ["encrypted_volume: root asks; unlock it"]}, "would not come back from a restart: encrypted_volume"),
    ],
)
def test_what_stands_in_its_way_is_a_refusal(changed, said):
    (refusal,) = planned(**changed).refusals
    assert said in refusal


def test_the_driver_s_own_setting_of_restarts_does_not_count_for_a_kernel():
    assert planned(nvidia_driver_reboot="ask").refusals == ()


def test_on_the_rig_kernel_and_driver_are_one_list(monkeypatch):
    answers = {
        "reboot_look": SimpleNamespace(look=lambda: {"risks": []}),
        "kernel_offer": SimpleNamespace(look_at_kernel=lambda _wishes: OFFER),
        "offers": SimpleNamespace(
            look_at_offers=lambda _wishes: {"transaction": ["driver"], "preferences": "", "to_install": True}
        ),
    }
    monkeypatch.setattr(planning, "import_module", answers.__getitem__)
    headers = {"name": f"linux-headers-{NEW}"}
    found = {"driver": [{"name": "nvidia-driver-535"}, headers], f"linux-image-{NEW}": [PACKAGE, headers]}
    monkeypatch.setattr(planning, "simulated", lambda words, _pins=None: found[words[0]])
    names = [one["name"] for one in planning.plan({}, {"version": NEW, "branch": ""})["packages"]]
    assert names == [f"linux-image-{NEW}", f"linux-headers-{NEW}", "nvidia-driver-535"]
    assert planning.plan(None) == {"offer": None, "kernel": None, "packages": [], "risks": []}


def test_what_grub_has_saved(tmp_path):
    path = tmp_path / "grubenv"
    assert state.grub_saved(str(path)) == ""
    path.write_text("# GRUB Environment Block\nsaved_entry=a>b\nrecordfail=1\n####", encoding="utf-8")
    assert state.grub_saved(str(path)) == "a>b"


def test_grub_starts_again_what_it_started(monkeypatch, tmp_path):
    said: list[tuple[str, ...]] = []
    monkeypatch.setattr(kept, "must", lambda *argv, **_: said.append(argv))
    monkeypatch.setattr(kept.shutil, "which", lambda name: name)
    there, missing = tmp_path / "grubenv", tmp_path / "missing"
    there.touch()
    for saved in ("a>b", "", None):  # None: a capture from before anybody looked
        kept.put_grub_back(saved, str(there))
    kept.put_grub_back("a>b", str(missing))
    editing = [argv[2:] for argv in said if argv[0] == "grub-editenv"]
    unset = ("unset", "next_entry")
    assert editing == [unset, ("set", "saved_entry=a>b"), unset, ("unset", "saved_entry"), unset]
    assert said.count(("update-grub",)) == 4
    monkeypatch.setattr(kept.shutil, "which", lambda _name: None)
    said.clear()
    kept.put_grub_back("a>b", str(there))
    assert said == []


def test_the_saved_entry_is_compared():
    before = FakeRig("rig1").captured()
    saved = before.model_copy(update={"grub_saved": "a>b"})
    assert all_differences(before, saved) == ()  # nobody had looked
    assert all_differences(saved, saved) == ()
    nothing = saved.model_copy(update={"grub_saved": ""})
    assert all_differences(saved, nothing) == ("what GRUB has saved was a>b, is none",)


def test_a_rig_that_runs_another_kernel_afterwards_goes_back(tmp_path):
    rig, run = FakeRig("rig1"), new_run(tmp_path)
    run.rig_path("rig1")
    ended = Machine("rig1", Rules(wishes=Wishes(driver="535", kernel=NEW)), run, rig, rig).advance()
    assert (ended.end, ended.step) == (End.ROLLED_BACK, Step.VERIFY)
    assert ended.reason == f"the kernel {NEW} was asked for, and 5.15 runs"
