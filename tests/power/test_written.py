"""`rig_power` as people write it: every mistake names rig and key, and no secret is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rigctl.errors import ExitCode, UsageError
from rigctl.inventory import load_fleet
from rigctl.inventory.power import power_of
from tests.inventory.test_inventory import park  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from tests.inventory.test_inventory import Park

IPMI = {"address": "192.0.2.51", "user": "rigctl", "password": "geheim"}
PLUG = {"form": "tasmota", "url": "http://192.0.2.101"}


def test_a_rig_without_one_has_none() -> None:
    assert power_of("rig1", {}) is None


def test_each_way_is_read() -> None:
    power = power_of("rig1", {"rig_power": {"ipmi": IPMI, "plug": PLUG, "wake": {"mac": "52:54:00:12:34:56"}}})
    assert power is not None
    assert power.ipmi is not None
    assert power.plug is not None
    assert power.ipmi.password.get_secret_value() == "geheim"
    assert (power.plug.channel, power.ipmi.interface) == (0, "lanplus")
    assert "geheim" not in repr(power) + str(power) + power.model_dump_json()


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({}, "rig1: rig_power names neither ipmi, plug nor wake"),
        ({"plug": PLUG | {"form": "hue"}}, "rig_power.plug.form: 'hue' is not 'tasmota'"),
        ({"plug": PLUG | {"url": "192.0.2.101"}}, "rig_power.plug.url: '192.0.2.101' is no address"),
        ({"plug": PLUG | {"url": "http://192.0.2.101/cm?cmnd=Power"}}, "rig_power.plug.url"),
        ({"wake": {"mac": "525400123456"}}, "rig_power.wake.mac: '525400123456' is no hardware address"),
        ({"ipmi": {"address": "192.0.2.51", "user": "x"}}, "rig_power.ipmi.password: missing"),
        ({"ipmi": IPMI | {"pasword": "x"}}, "rig_power.ipmi.pasword: unknown key"),
        ({"plugs": PLUG}, "rig_power.plugs: unknown key"),
        ("on", "rig_power"),
    ],
)
def test_a_mistake_names_rig_and_key(written: Any, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        power_of("rig1", {"rig_power": written})
    assert words in refused.value.message
    assert refused.value.message.startswith("rig1: ")
    assert refused.value.hint


def test_a_password_of_a_wrong_kind_is_not_shown() -> None:
    with pytest.raises(UsageError) as refused:
        power_of("rig1", {"rig_power": {"ipmi": IPMI | {"password": 90210}}})
    assert "rig_power.ipmi.password is no text" in refused.value.message
    assert "90210" not in refused.value.message + refused.value.hint


def test_a_template_is_resolved_by_ansible(park: Park) -> None:  # noqa: F811 - the fixture
    park.write("host_vars/rig1/power.yml", {"rig_power": {"ipmi": IPMI | {"password": "{{ bmc_secret }}"}}})
    park.write("host_vars/rig1/secret.yml", {"bmc_secret": "geheim"})
    rig1, rig2 = load_fleet(park.folder)
    assert rig1.power is not None
    assert rig1.power.ipmi is not None
    assert rig1.power.ipmi.password.get_secret_value() == "geheim"
    assert rig2.power is None
    park.write("host_vars/rig1/power.yml", {"rig_power": {"plug": {"form": "tasmota"}}})
    with pytest.raises(UsageError, match=r"rig1: rig_power\.plug\.url: missing") as refused:
        load_fleet(park.folder)
    assert refused.value.exit_code is ExitCode.USAGE
