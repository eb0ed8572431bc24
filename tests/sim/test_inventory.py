from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from rigctl.errors import UsageError
from rigctl.inventory import load_fleet
from rigctl.sim import inventory, keys
from rigctl.sim.state import SimulatedRig, State, Training

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def state(tmp_path: Path) -> State:
    rigs = tuple(
        SimulatedRig(name=f"rig{number}", container=f"c{number}", port=40000 + number, host_key="ssh-ed25519 AAAA")
        for number in (1, 2)
    )
    training = Training(torch_version="2.13.0+cpu", tokens_per_s=4000.0, floor_tokens_per_s=3000.0)
    return State(
        directory=tmp_path,
        rig_class="dual_3090ti",
        archive="2022",
        time_scale=20,
        image="image",
        seed=0,
        rigs=rigs,
        training=training,
    )


def test_the_inventory_is_one_that_rigctl_takes(state: State) -> None:
    inventory.write_inventory(state, COMMIT)
    fleet = load_fleet(state.inventory)
    assert [rig.name for rig in fleet] == ["rig1", "rig2"]
    first = fleet[0]
    assert (first.login.address, first.login.port, first.login.user) == ("127.0.0.1", 40001, "ops")
    assert first.login.identity_files == (str(state.identity_file),)
    assert first.login.known_hosts_files[0] == str(state.known_hosts)
    assert first.spec.wall_meter is not None
    assert first.spec.wall_meter.url == inventory.METER_URL
    assert set(first.profiles) == set(inventory.PROFILES)


def test_training_is_the_cpu_workload_with_the_measured_floor_and_says_where_it_is_from(state: State) -> None:
    inventory.write_inventory(state, COMMIT)
    spec = load_fleet(state.inventory)[0].spec
    assert spec.training is not None
    assert (spec.training.device, spec.training.threads, spec.training.min_tokens_per_s) == ("cpu", 1, 3000.0)
    assert "0.75 × 4000 tokens/s" in spec.sources["training.min_tokens_per_s"]
    assert spec.sources["limits.min_burn_gflops"]


def test_everything_else_of_the_class_stays_as_it_ships(state: State) -> None:
    inventory.write_inventory(state, COMMIT)
    spec = load_fleet(state.inventory)[0].spec
    assert spec.software.driver_branch == "515"
    assert spec.parts.links[0].links == 4
    assert spec.limits.max_settled_gpu_temp_c == 65


def test_the_roles_are_told_to_stay_inside_the_rig(state: State) -> None:
    inventory.write_inventory(state, COMMIT)
    common = yaml.safe_load((state.inventory / "group_vars" / "all" / "simulated.yml").read_text())
    assert common["gpu_burn_commit"] == COMMIT
    assert common["pytorch_wheelhouse"] == inventory.WHEELHOUSE
    assert (common["pytorch_version"], common["pytorch_build"]) == ("2.13.0", "cpu")
    assert all("://" not in str(value) or "file://" in str(value) for value in common.values())


def test_without_a_wheel_the_roles_take_the_distributions_pytorch() -> None:
    training = Training(torch_version="1.13.1", from_distribution=True)
    assert inventory.torch_variables(training)["pytorch_build"] == "distribution"


def test_what_an_earlier_up_wrote_is_replaced(state: State) -> None:
    stale = state.inventory / "host_vars" / "rig9" / "spec.yml"
    stale.parent.mkdir(parents=True)
    stale.touch()
    inventory.write_inventory(state, COMMIT)
    assert not stale.exists()


def test_an_unknown_class_is_refused_with_those_that_exist(state: State) -> None:
    with pytest.raises(UsageError, match="no rig class quad_4090") as caught:
        inventory.write_inventory(state.model_copy(update={"rig_class": "quad_4090"}), COMMIT)
    assert "dual_3090ti" in caught.value.hint


def test_ssh_files_name_every_rig_and_trust_only_its_own_key(state: State) -> None:
    keys.write_ssh_files(state)
    assert state.known_hosts.read_text() == "[127.0.0.1]:40001 ssh-ed25519 AAAA\n[127.0.0.1]:40002 ssh-ed25519 AAAA\n"
    config = state.ssh_config.read_text()
    assert config.count("StrictHostKeyChecking yes") == 2
    assert "Host rig2\n  HostName 127.0.0.1\n  Port 40002\n" in config


def test_keys_are_made_once_and_are_for_their_owner_only(tmp_path: Path) -> None:
    first = keys.key_pair(tmp_path / "keys" / "id_ed25519")
    assert keys.key_pair(tmp_path / "keys" / "id_ed25519") == first
    assert first.public.startswith("ssh-ed25519 ")
    assert (tmp_path / "keys" / "id_ed25519").stat().st_mode & 0o777 == 0o600
