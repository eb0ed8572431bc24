"""Inventories, good and bad: every mistake is one UsageError that names file and key."""

from __future__ import annotations

import contextlib
import getpass
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from rigctl.errors import ExitCode, UsageError
from rigctl.inventory import load, load_fleet
from rigctl.inventory.ansible_view import AnsibleView

SPEC: dict = {
    "parts": {
        "gpu_count": 2,
        "gpu_model": "NVIDIA GeForce RTX 3090 Ti",
        "min_gpu_memory_mib": 24000,
        "links": [{"slots": [1, 2], "kind": "nvlink", "links": 4}],
        "pcie_gen_under_load": 4,
        "pcie_width_under_load": 8,
    },
    "limits": {
        "max_settled_gpu_temp_c": 65,
        "guard_max_gpu_temp_c": 85,
        "min_power_share_of_limit": 0.9,
        "min_burn_gflops": 25000,
    },
    "training": {
        "device": "cuda",
        "model": "gpt2_medium",
        "seq_len": 1024,
        "micro_batch": 2,
        "grad_accum": 4,
        "dtype": "bf16",
        "warmup_steps": 2,
        "measured_steps": 5,
        "min_tokens_per_s": 6702,
    },
    "sources": {
        "limits.max_settled_gpu_temp_c": "seen",
        "limits.guard_max_gpu_temp_c": "ours",
        "limits.min_power_share_of_limit": "seen",
        "limits.min_burn_gflops": "public captures",
        "training.min_tokens_per_s": "mli",
    },
}
PROFILES = {
    "quick": {
        "idle_seconds": 1,
        "cpu_burn_seconds": 0,
        "gpu_burn_seconds": 0,
        "all_burn_seconds": 0,
        "train": False,
        "sample_hz": 2,
    }
}


class Park:
    """An inventory folder that a test may spoil."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "park"
        self.write("rigs.yml", {"class_dual": {"hosts": {"rig1": {"ansible_host": "192.0.2.1"}, "rig2": {}}}})
        self.write("group_vars/class_dual/spec.yml", {"rig_spec": SPEC})
        self.write("group_vars/all/profiles.yml", {"rig_profiles": PROFILES})

    def write(self, name: str, data: object) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False))
        return path

    def replace(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    def hosts(self, hosts: dict) -> None:
        self.write("rigs.yml", {"class_dual": {"hosts": hosts}})


@pytest.fixture
def park(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Park:
    for name in [n for n in os.environ if n.startswith("ANSIBLE_")]:
        monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Park(tmp_path)


def refused(park: Park, pattern: str = "all") -> UsageError:
    with pytest.raises(UsageError) as caught:
        load_fleet(park.folder, pattern)
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.hint
    assert "\n" not in caught.value.message + caught.value.hint
    return caught.value


@pytest.fixture
def without_ansible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for ansible-inventory where only files of specs are wrong: one rig, its variables merged by name."""

    def view(path: Path, pattern: str) -> AnsibleView:
        merged: dict = {}
        for folder in ("group_vars/all", "group_vars/class_dual", "host_vars/rig1"):
            for file in sorted((path / folder).glob("*.yml")):
                with contextlib.suppress(yaml.YAMLError):
                    merged.update(yaml.safe_load(file.read_text()) or {})
        return AnsibleView(path, ("rig1",), {"rig1": merged}, {"rig1": frozenset({"all", "class_dual"})})

    monkeypatch.setattr(load, "read_inventory", view)


class TestGood:
    def test_rigs_with_spec_profiles_and_software(self, park: Park) -> None:
        started = time.monotonic()
        rig1, rig2 = load_fleet(park.folder)
        assert time.monotonic() - started < 5
        assert (rig1.name, rig2.name) == ("rig1", "rig2")
        assert rig1.rig_class == "dual"
        assert rig1.login.address == "192.0.2.1"
        assert rig2.login.address == "rig2"
        assert rig1.spec.parts.links[0].slots == (1, 2)
        assert rig1.spec.origin == "group_vars/class_dual/spec.yml"
        assert rig1.profiles["quick"].controller_lost_s == 60
        assert rig1.spec.software.driver_branch == "515"
        assert rig1.spec.software.cuda_version == "11.7"

    def test_pattern(self, park: Park) -> None:
        assert [r.name for r in load_fleet(park.folder, "all:!rig1")] == ["rig2"]
        assert [r.name for r in load_fleet(park.folder, "class_dual:&rig1")] == ["rig1"]

    def test_inventory_in_the_current_folder(self, park: Park) -> None:
        park.folder.rename(park.folder.parent / "inventory")
        assert len(load_fleet(None)) == 2

    def test_one_file_and_class_in_one_file(self, park: Park) -> None:
        park.write("group_vars/class_dual.yml", {"rig_spec": SPEC})
        (park.folder / "group_vars/class_dual/spec.yml").unlink()
        (rig, _) = load_fleet(park.folder / "rigs.yml")
        assert rig.spec.origin == "group_vars/class_dual.yml"

    def test_class_through_a_child_group(self, park: Park) -> None:
        park.write("rigs.yml", {"class_dual": {"children": {"desk": {"hosts": {"rig1": {}}}}}})
        assert load_fleet(park.folder)[0].rig_class == "dual"

    def test_host_exceptions_are_merged_deeply_and_keep_their_source(self, park: Park) -> None:
        park.write(
            "host_vars/rig1/spec.yml",
            {
                "rig_spec_host": {
                    "limits": {"max_settled_gpu_temp_c": 70},
                    "wall_meter": {"form": "tasmota", "url": "http://192.0.2.50/cm?cmnd=Status%208"},
                    "sources": {"limits.max_settled_gpu_temp_c": "air-cooled for a month"},
                }
            },
        )
        rig1, rig2 = load_fleet(park.folder)
        assert rig1.spec.limits.max_settled_gpu_temp_c == 70
        assert rig1.spec.limits.min_burn_gflops == 25000
        assert rig1.spec.wall_meter is not None
        assert "host_vars/rig1/spec.yml: air-cooled" in rig1.spec.source("limits.max_settled_gpu_temp_c")
        assert rig2.spec.limits.max_settled_gpu_temp_c == 65
        assert rig2.spec.wall_meter is None

    def test_null_removes_a_part_on_one_rig(self, park: Park) -> None:
        park.write("host_vars/rig1.yml", {"rig_spec_host": {"training": None}})
        rig1, rig2 = load_fleet(park.folder)
        assert rig1.spec.training is None
        assert rig2.spec.training is not None

    def test_role_variables_overlay_the_roles_defaults(self, park: Park) -> None:
        park.write(
            "group_vars/class_dual/software.yml",
            {"nvidia_driver_branch": 535, "nvidia_driver_power_limit_w": 400, "gpu_burn_dir": "{{ base }}/burn"},
        )
        park.write("host_vars/rig1/base.yml", {"base": "/srv"})
        park.write("host_vars/rig2/base.yml", {"base": "/data"})
        rig1, rig2 = load_fleet(park.folder)
        assert rig1.spec.software.driver_branch == "535"
        assert rig1.spec.software.power_limit_w == 400
        assert (rig1.spec.software.gpu_burn_dir, rig2.spec.software.gpu_burn_dir) == ("/srv/burn", "/data/burn")

    def test_users_own_tests_beside_the_inventory_are_no_inventory(self, park: Park) -> None:
        park.write("acceptance/test_own.py", "def test_x(host):\n    assert host\n")
        assert len(load_fleet(park.folder)) == 2


class TestLogin:
    def test_words_for_openssh(self, park: Park) -> None:
        known = park.folder / "known_hosts"
        park.hosts(
            {
                "rig1": {
                    "ansible_host": "192.0.2.1",
                    "ansible_port": 2201,
                    "ansible_user": "ops",
                    "ansible_ssh_private_key_file": "~/none",
                    "ansible_ssh_common_args": f"-o UserKnownHostsFile={known} -o ProxyJump=admin@192.0.2.9:2222",
                    "ansible_timeout": 7,
                }
            }
        )
        login = load_fleet(park.folder)[0].login
        assert (login.port, login.user, login.connect_timeout_s) == (2201, "ops", 7)
        assert login.known_hosts_files[0] == str(known)
        assert login.proxy_jump == "admin@192.0.2.9:2222"
        assert login.identity_files == (str(Path.home() / "none"),)

    def test_ansible_cfg_and_environment(self, park: Park, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "ansible.cfg").write_text("[defaults]\nremote_user = lab ; people\nprivate_key_file = /k\n")
        assert load_fleet(park.folder)[0].login.user == "lab"
        monkeypatch.setenv("ANSIBLE_REMOTE_USER", "other")
        assert load_fleet(park.folder)[0].login.user == "other"

    def test_how_ansible_becomes_root_and_keeps_host_keys(self, park: Park, monkeypatch: pytest.MonkeyPatch) -> None:
        usual = load_fleet(park.folder)[0].login
        assert (usual.become_method, usual.become_flags, usual.host_keys) == ("sudo", "", "ask")
        words = "-o StrictHostKeyChecking=accept-new"
        park.hosts({"rig1": {"ansible_become_method": "doas", "ansible_ssh_common_args": words}})
        monkeypatch.setenv("ANSIBLE_BECOME_FLAGS", "-H -n")
        own = load_fleet(park.folder)[0].login
        assert (own.become_method, own.become_flags, own.host_keys) == ("doas", "-H -n", "accept-new")

    def test_proxy_command_and_alias(self, park: Park) -> None:
        park.hosts({"rig1": {"ansible_ssh_extra_args": "-o ProxyCommand='nc %h %p' -o HostKeyAlias=the-rig"}})
        login = load_fleet(park.folder)[0].login
        assert (login.proxy_command, login.host_key_alias) == ("nc %h %p", "the-rig")

    def test_two_rigs_behind_two_jump_hosts_may_share_an_address(self, park: Park) -> None:
        hosts = {f"rig{n}": {"ansible_host": "10.0.0.5", "ansible_ssh_common_args": f"-J 192.0.2.{n}"} for n in (1, 2)}
        park.hosts(hosts)
        assert len(load_fleet(park.folder)) == 2

    def test_ipv6(self, park: Park) -> None:
        park.hosts({"rig1": {"ansible_host": "2001:db8::1"}})
        assert load_fleet(park.folder)[0].login.address == "2001:db8::1"

    def test_template_and_vault(self, park: Park, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        password = tmp_path / "password"
        password.write_text("open")
        vault = Path(sys.executable).with_name("ansible-vault")
        said = subprocess.run(
            [vault, "encrypt_string", "--vault-password-file", password, "s3cret", "--name", "vault_become"],
            capture_output=True,
            text=True,
            check=True,
        )
        park.write("host_vars/rig1/vault.yml", said.stdout)
        park.write("host_vars/rig1/login.yml", {"ansible_become_password": "{{ vault_become }}"})
        error = refused(park)
        assert "rig1: cannot resolve ansible_become_password" in error.message
        assert "ANSIBLE_VAULT_PASSWORD_FILE" in error.hint
        monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(password))
        rig1, rig2 = load_fleet(park.folder)
        assert rig1.login.become_password is not None
        assert rig1.login.become_password.get_secret_value() == "s3cret"
        assert "s3cret" not in repr(rig1)
        assert rig2.login.become_password is None

    def test_vaulted_file_without_a_password(self, park: Park, tmp_path: Path) -> None:
        password = tmp_path / "password"
        password.write_text("open")
        secret = park.write("host_vars/rig1/vault.yml", {"ansible_become_password": "s3cret"})
        vault = Path(sys.executable).with_name("ansible-vault")
        subprocess.run([vault, "encrypt", "--vault-password-file", password, secret], check=True, capture_output=True)
        error = refused(park)
        assert "vault password" in error.message
        assert "ANSIBLE_VAULT_PASSWORD_FILE" in error.hint

    def test_undefined_template(self, park: Park) -> None:
        park.write("host_vars/rig1/login.yml", {"ansible_become_password": "{{ nowhere }}"})
        assert "'nowhere' is undefined" in refused(park).message


class TestBadInventory:
    def test_no_inventory(self, park: Park) -> None:
        with pytest.raises(UsageError, match=r"no inventory at .*absent") as caught:
            load_fleet(park.folder / "absent")
        assert "RIGCTL_INVENTORY" in caught.value.hint

    @pytest.mark.parametrize("pattern", ["nosuch", "rig1,nosuch", "class_dual:&nosuch_group"])
    def test_pattern_that_matches_nothing(self, park: Park, pattern: str) -> None:
        assert "matches no rig" in refused(park, pattern).message

    def test_exception_outside_of_host_vars(self, park: Park) -> None:
        park.hosts({"rig1": {"rig_spec_host": {"parts": {"gpu_count": 1}}}})
        error = refused(park)
        assert "rig_spec_host is set outside" in error.message
        assert "host_vars/rig1/spec.yml" in error.hint

    def test_no_class(self, park: Park) -> None:
        park.write("rigs.yml", {"lab": {"hosts": {"rig1": {}}}})
        assert "rig1 is in no rig class" in refused(park).message

    def test_two_classes(self, park: Park) -> None:
        park.write("rigs.yml", {"class_dual": {"hosts": {"rig1": {}}}, "class_single": {"hosts": {"rig1": {}}}})
        assert "rig1 is in 2 rig classes: class_dual, class_single" in refused(park).message

    def test_one_address_twice(self, park: Park) -> None:
        park.hosts({"rig1": {"ansible_host": "192.0.2.1"}, "rig2": {"ansible_host": "192.0.2.1", "ansible_port": 22}})
        assert "rig1 and rig2 have one address: 192.0.2.1 port 22" in refused(park).message

    def test_one_address_twice_through_one_jump_host(self, park: Park) -> None:
        same = {"ansible_host": "10.0.0.5", "ansible_ssh_common_args": "-J 192.0.2.9"}
        park.hosts({"rig1": same, "rig2": dict(same)})
        assert f"through {getpass.getuser()}@192.0.2.9:22" in refused(park).message

    @pytest.mark.parametrize("name", ["rigs.yml", "group_vars/class_dual/spec.yml", "host_vars/rig1/x.yml"])
    def test_invalid_yaml(self, park: Park, name: str) -> None:
        park.write(name, "\na: [1, 2\nb: 3\n")
        error = refused(park)
        assert f"{name}:" in error.message
        assert "not valid YAML" in error.message

    def test_template_without_quotes(self, park: Park) -> None:
        park.replace(
            "group_vars/class_dual/spec.yml", "max_settled_gpu_temp_c: 65", "max_settled_gpu_temp_c: {{ hot }}"
        )
        error = refused(park)
        assert "group_vars/class_dual/spec.yml:15: not valid YAML" in error.message
        assert "a template ({{ … }}) without quotes" in error.message

    @pytest.mark.parametrize(
        ("variables", "words"),
        [
            ({"ansible_port": "ssh"}, "ansible_port: 'ssh' is no port"),
            ({"ansible_host": ["192.0.2.1"]}, "ansible_host is no text"),
            ({"ansible_connection": "local"}, "ansible_connection: local is not SSH"),
            ({"ansible_timeout": "soon"}, "ansible_timeout: 'soon' is not a number"),
            ({"ansible_ssh_common_args": "-o 'x"}, "ansible_ssh_common_args: No closing quotation"),
            ({"ansible_ssh_common_args": "-o NoSuchOption=1"}, "refuses its connection variables"),
        ],
    )
    def test_connection_variables(self, park: Park, variables: dict, words: str) -> None:
        park.hosts({"rig1": variables})
        assert words in refused(park).message

    def test_name_that_is_no_folder(self, park: Park) -> None:
        park.hosts({"../rig1": {}})
        assert "cannot be a rig's name" in refused(park).message


@pytest.mark.usefixtures("without_ansible")
class TestBadSpec:
    def test_unknown_spec_key_suggests_the_right_one(self, park: Park) -> None:
        park.replace("group_vars/class_dual/spec.yml", "max_settled_gpu_temp_c", "max_setled_gpu_temp_c")
        error = refused(park)
        assert "group_vars/class_dual/spec.yml:15" in error.message
        assert "rig_spec.limits.max_setled_gpu_temp_c: unknown key" in error.message
        assert error.hint == "did you mean max_settled_gpu_temp_c?"

    @pytest.mark.parametrize(
        ("written", "words"),
        [
            ("'480 W'", "'480 W' is not a number"),
            ("'65'", "'65' is not a number"),
            ("hot", "'hot' is not a number"),
            ("true", "True is not a number"),
            ("650", "650 is not less than 120"),
            (".inf", "inf is no figure"),
            ("'{{ hot }}'", "template in a literal field: {{ hot }}"),
            ("!vault x", "!vault in a literal field"),
            ("", "nothing is written there"),
        ],
    )
    def test_limit_that_is_no_bare_figure(self, park: Park, written: str, words: str) -> None:
        park.replace(
            "group_vars/class_dual/spec.yml", "max_settled_gpu_temp_c: 65", f"max_settled_gpu_temp_c: {written}"
        )
        error = refused(park)
        assert "group_vars/class_dual/spec.yml:15: rig_spec.limits.max_settled_gpu_temp_c" in error.message
        assert words in error.message

    @pytest.mark.parametrize("key", ["gpu_count: 2", "pcie_gen_under_load: 4"])
    def test_whole_numbers(self, park: Park, key: str) -> None:
        park.replace("group_vars/class_dual/spec.yml", key, f"{key}.5")
        assert "is not a whole number" in refused(park).message

    def test_key_written_twice(self, park: Park) -> None:
        park.replace(
            "group_vars/class_dual/spec.yml", "    min_burn_gflops", "    min_burn_gflops: 1\n    min_burn_gflops"
        )
        assert "'min_burn_gflops' is written twice" in refused(park).message

    def test_limit_without_a_source(self, park: Park) -> None:
        park.replace("group_vars/class_dual/spec.yml", "    limits.min_burn_gflops: public captures\n", "")
        error = refused(park)
        assert "rig_spec.limits.min_burn_gflops has no source" in error.message
        assert "spec.yml:18" in error.message

    def test_exception_without_its_own_source(self, park: Park) -> None:
        park.write("host_vars/rig1/spec.yml", {"rig_spec_host": {"limits": {"min_burn_gflops": 1}}})
        error = refused(park)
        assert "host_vars/rig1/spec.yml:3: rig_spec_host.limits.min_burn_gflops has no source" in error.message

    def test_source_of_a_key_that_does_not_exist(self, park: Park) -> None:
        park.replace(
            "group_vars/class_dual/spec.yml",
            "limits.min_burn_gflops: p",
            "limits.burn: x\n    limits.min_burn_gflops: p",
        )
        assert "rig_spec.sources names limits.burn" in refused(park).message

    def test_exception_with_an_unknown_key(self, park: Park) -> None:
        park.write("host_vars/rig1/spec.yml", {"rig_spec_host": {"parts": {"gpus": 1}}})
        assert "host_vars/rig1/spec.yml:3: rig_spec_host.parts.gpus: unknown key" in refused(park).message

    def test_links_between_cards_that_do_not_exist(self, park: Park) -> None:
        park.replace("group_vars/class_dual/spec.yml", "gpu_count: 2", "gpu_count: 1")
        assert "slots 1 and 2 are no pair of 1 cards" in refused(park).message

    def test_class_without_a_spec(self, park: Park) -> None:
        (park.folder / "group_vars/class_dual/spec.yml").unlink()
        assert "class_dual/spec.yml: class_dual has no spec" in refused(park).message

    def test_spec_in_two_files(self, park: Park) -> None:
        park.write("group_vars/class_dual/more.yml", {"rig_spec": SPEC})
        assert "both hold rig_spec" in refused(park).message

    def test_spec_that_is_no_mapping(self, park: Park) -> None:
        park.write("group_vars/class_dual/spec.yml", {"rig_spec": [1]})
        assert "rig_spec is no mapping" in refused(park).message

    @pytest.mark.parametrize(
        ("spoil", "words"),
        [
            (lambda p: p.pop("sample_hz"), "rig_profiles.quick.sample_hz: missing"),
            (lambda p: p.update(sample_hz="2 Hz"), "rig_profiles.quick.sample_hz: '2 Hz' is not a number"),
            (lambda p: p.update(burn=1), "rig_profiles.quick.burn: unknown key"),
            (lambda p: p.update(train="yes"), "rig_profiles.quick.train: 'yes' is neither true nor false"),
            (lambda p: p.update(idle_seconds="{{ x }}"), "template in a literal field"),
        ],
    )
    def test_profiles(self, park: Park, spoil, words: str) -> None:
        profile = dict(PROFILES["quick"])
        spoil(profile)
        park.write("group_vars/all/profiles.yml", {"rig_profiles": {"quick": profile}})
        error = refused(park)
        assert words in error.message
        assert "group_vars/all/profiles.yml" in error.message

    def test_no_profiles(self, park: Park) -> None:
        (park.folder / "group_vars/all/profiles.yml").unlink()
        assert "rig_profiles is not set" in refused(park).message

    def test_version_without_quotes(self, park: Park) -> None:
        park.write("group_vars/class_dual/software.yml", "cuda_version: 12.10\n")
        error = refused(park)
        assert "group_vars/class_dual/software.yml: cuda_version: 12.1 is a number" in error.message

    def test_software_of_the_wrong_type(self, park: Park) -> None:
        park.write("group_vars/class_dual/software.yml", "\nnvidia_driver_power_limit_w: 480 W\n")
        error = refused(park)
        assert "software.yml:2: rig1: nvidia_driver_power_limit_w: '480 W' is not a whole number" in error.message


CORPUS = Path(os.environ.get("RIGCTL_CORPUS", Path(__file__).parents[3] / "shared" / "corpus")) / "ansible-inventory"


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*")) if CORPUS.is_dir() else [], ids=lambda p: p.name)
def test_public_inventories_are_read_and_lack_a_class(path: Path) -> None:
    with pytest.raises(UsageError, match=r"is in no rig class|matches no rig"):
        load_fleet(path)
