"""What is found out before Ansible starts, and how its end is told."""

import signal
import threading
import time
from types import SimpleNamespace

import pytest

from rigctl.errors import ChangeIncomplete, UsageError
from rigctl.provision import ProvisionOptions, ProvisionOutcome, RigProvision, attempt, provision, run

RIG = {"state": "failed", "role": "nvidia_driver", "task": "Refuse", "message": "515 became 535.", "hint": "choose"}


def test_an_unknown_tag_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(UsageError, match="no role has the tag cudda") as caught:
        attempt(ProvisionOptions(inventory=tmp_path, runs=tmp_path / "runs", tags=("cudda",)))
    assert "nvidia_driver" in caught.value.hint
    assert not (tmp_path / "runs").exists()


def test_no_inventory_is_found_before_a_run_directory_is_made(tmp_path):
    with pytest.raises(UsageError):
        attempt(ProvisionOptions(inventory=tmp_path / "none", runs=tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()


def test_an_incomplete_change_names_rig_task_and_remedy(monkeypatch, tmp_path):
    rigs = (RigProvision(name="rig1", state="ok"), *(RigProvision(name=name, **RIG) for name in ("rig2", "rig3")))
    outcome = ProvisionOutcome(run_id="r", path="p", check=False, seconds=1, rigs=rigs)
    monkeypatch.setattr(run, "attempt", lambda *_: outcome)
    with pytest.raises(ChangeIncomplete) as caught:
        provision(ProvisionOptions(inventory=tmp_path, runs=tmp_path))
    assert caught.value.message == "rig2 failed at nvidia_driver · Refuse: 515 became 535. (and 1 more)"
    assert caught.value.hint == "choose"


def test_ctrl_c_ends_ansible_before_anything_else(monkeypatch, tmp_path):
    ended = []

    def ansible(*, cancel_callback, **_settings):
        threading.Timer(0.1, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
        while not cancel_callback():
            time.sleep(0.01)
        time.sleep(0.3)  # ending takes its time
        ended.append(True)
        return SimpleNamespace(status="canceled")

    monkeypatch.setattr(run.ansible_runner, "run", ansible)
    asked = run._Ansible(ProvisionOptions(inventory=tmp_path, runs=tmp_path), tmp_path / "site.yml", {}, ())
    with pytest.raises(KeyboardInterrupt):
        asked.run(lambda _event: False)
    assert ended == [True]
