"""When Mitogen carries the tasks, and when Ansible does by itself."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rigctl.model.rig import Login
from rigctl.provision import mitogen

VERSIONS = {"mitogen": "0.3.54", "ansible-core": "2.19.14"}


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """Mitogen is installed in a version that fits; the user has no settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(mitogen, "find_spec", lambda _name: SimpleNamespace(name="ansible_mitogen"))
    monkeypatch.setattr(mitogen, "version", VERSIONS.__getitem__)


def rig(name="rig1", **login):
    return SimpleNamespace(name=name, login=Login(address="192.0.2.1", **login))


def test_it_is_used_where_it_is_installed():
    carrier = mitogen.choose_carrier([rig()], {})
    assert (carrier.name, carrier.why) == ("mitogen", "")
    assert carrier.environment == {
        "ANSIBLE_STRATEGY": "rigctl_mitogen",
        "ANSIBLE_STRATEGY_PLUGINS": str(mitogen.STRATEGIES),
        "ANSIBLE_TIMEOUT": "60",
    }


def test_our_strategy_ties_nothing_to_a_processor():
    """In a process of its own: Ansible's loaders are for a whole process."""
    asked = (
        "import ansible_mitogen.affinity as affinity\n"
        "from ansible.plugins.loader import strategy_loader\n"
        f"strategy_loader.add_directory({str(mitogen.STRATEGIES)!r})\n"
        "strategy = strategy_loader.get('rigctl_mitogen', class_only=True)\n"
        "print([base.__name__ for base in strategy.__mro__][:3], type(affinity.policy).__name__)\n"
    )
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    assert told == "['StrategyModule', 'StrategyMixin', 'StrategyModule'] Policy\n"


def test_the_operator_s_time_out_stays():
    assert "ANSIBLE_TIMEOUT" not in mitogen.choose_carrier([rig()], {"ANSIBLE_TIMEOUT": "5"}).environment


def test_where_it_is_not_installed_nothing_is_said(monkeypatch):
    monkeypatch.setattr(mitogen, "find_spec", lambda _name: None)
    assert mitogen.choose_carrier([rig()], {}) == mitogen.Carrier("ansible")


@pytest.mark.parametrize("variable", ["ANSIBLE_STRATEGY", "ANSIBLE_STRATEGY_PLUGINS"])
def test_the_operator_s_environment_counts(variable):
    carrier = mitogen.choose_carrier([rig()], {variable: "linear"})
    assert (carrier.name, carrier.environment) == ("ansible", {})
    assert carrier.why.startswith("Mitogen is installed but not used: the operator's settings")


def test_the_operator_s_ansible_cfg_counts():
    Path("ansible.cfg").write_text("[defaults]\nstrategy = free\n", encoding="utf-8")
    assert mitogen.choose_carrier([rig()], {}).name == "ansible"


@pytest.mark.parametrize(
    ("name", "version", "why"),
    [
        ("mitogen", "0.3.9", "version 0.3.9 is older than 0.3.54"),
        ("ansible-core", "2.20.0rc1", "it was not tried with ansible-core 2.20.0rc1"),
        ("ansible-core", "2.16.4", "it was not tried with ansible-core 2.16.4"),
    ],
)
def test_versions_that_do_not_fit(monkeypatch, name, version, why):
    monkeypatch.setattr(mitogen, "version", (VERSIONS | {name: version}).__getitem__)
    assert mitogen.choose_carrier([rig()], {}).why == f"Mitogen is installed but not used: {why}."


@pytest.mark.parametrize(
    ("login", "words"),
    [
        ({"become_method": "machinectl"}, "ansible_become_method machinectl"),
        ({"become_flags": "-H -C 3"}, "ansible_become_flags -C 3"),
        ({"host_keys": "accept-new"}, "StrictHostKeyChecking accept-new"),
        ({"host_keys": "false"}, "StrictHostKeyChecking false"),
    ],
)
def test_one_login_that_it_does_not_know_is_enough(login, words):
    carrier = mitogen.choose_carrier([rig(), rig("rig2", **login)], {})
    assert carrier.name == "ansible"
    assert f"not used: rig2 has {words}" in carrier.why


@pytest.mark.parametrize("flags", ["-H -S -n", "-HSn", "--preserve-env --set-home"])
def test_usual_flags_of_sudo_are_known(flags):
    assert mitogen.choose_carrier([rig(become_flags=flags)], {}).name == "mitogen"
