"""What rigs' role variables ask for, put together; and the command's words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from rigctl.bundling import on_rig
from rigctl.bundling.source import _whole_script
from rigctl.bundling.wishes import ROLE_PACKAGES, VARIABLES, repository_key, wishes_of
from rigctl.cli.app import build_app, main
from rigctl.errors import UsageError

from .parts import write_bundle

ROLES = Path(__file__).parents[2] / "roles"


def defaults():
    merged = {}
    for path in sorted(ROLES.glob("*/defaults/main.yml")):
        merged |= yaml.safe_load(path.read_text(encoding="utf-8"))
    return {name: merged[name] for name in VARIABLES}


def test_every_variable_is_a_role_s():
    assert set(defaults()) == set(VARIABLES)


def test_packages_that_roles_name_themselves_are_in_it():
    named = set()
    for path in ROLES.glob("*/tasks/*.yml"):
        tasks = yaml.safe_load(path.read_text(encoding="utf-8"))
        tasks += [inner for task in tasks for inner in task.get("block", [])]
        for task in tasks:
            names = task.get("ansible.builtin.apt", {}).get("name", [])
            named |= {name for name in ([names] if isinstance(names, str) else names) if "{{" not in name}
    named -= {"nvidia-container-toolkit"}
    assert named
    assert named <= set(ROLE_PACKAGES)


def test_each_wish_is_there_once():
    one = defaults()
    other = {**one, "nvidia_driver_branch": "535", "cuda_version": "12.2", "cuda_more_versions": ["11.7"]}
    wishes = wishes_of({"rig1": one, "rig2": one, "rig3": other})
    assert [driver.branch for driver in wishes.drivers] == [one["nvidia_driver_branch"], "535"]
    assert wishes.toolkits == (one["cuda_version"], "12.2")
    assert [torch.driver for torch in wishes.torch] == [one["nvidia_driver_branch"], "535"]
    assert len(wishes.sources) == 1
    assert {"stress-ng", "ca-certificates", *ROLE_PACKAGES} <= set(wishes.system)
    assert wishes.optional == ("systemd-timesyncd",)
    assert set(wishes.drivers[0].request()) == {"branch", "version", "source", "flavour", "modules", "known_bad"}


def test_pytorch_of_the_distribution_is_a_package():
    wishes = wishes_of({"rig1": {**defaults(), "pytorch_build": "distribution"}})
    assert wishes.torch == ()
    assert "python3-torch" in wishes.system


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"container_toolkit_install": True}, "a bundle holds no container toolkit"),
        ({"cuda_source": "distribution"}, "a bundle holds toolkits of nvidia only"),
        ({"cuda_repo_line": "deb http://192.0.2.9/cuda /"}, "from 2 repositories"),
    ],
)
def test_what_one_bundle_cannot_hold_is_refused(changed, said):
    with pytest.raises(UsageError, match=said):
        wishes_of({"rig1": defaults(), "rig2": {**defaults(), **changed}})


def test_a_key_that_cannot_be_fetched_is_an_error(tmp_path):
    wishes = wishes_of({"rig1": {**defaults(), "cuda_repo_key_url": (tmp_path / "none").as_uri()}})
    with pytest.raises(UsageError, match="cuda_repo_key_url"):
        repository_key(wishes)


def test_the_script_for_the_rig_carries_the_roles_own():
    script = _whole_script()
    compile(script, "on_rig", "exec")
    for name in (b"'offers'", b"'driver_choice'", b"'apt_answers'", b"'sources'", b"'history'"):
        assert name in script


def test_apt_s_complaints_in_a_line():
    assert on_rig.complaint("Reading…\nE: one\nW: no\nE: two\n") == "E: one E: two"
    assert on_rig.complaint("a\nb\n") == "a b"


def test_a_paragraph_s_package():
    assert on_rig.name_of("\nPackage: kmod\nStatus: install ok installed\n") == "kmod"


def test_verify(tmp_path):
    manifest = write_bundle(tmp_path)
    run = CliRunner().invoke(build_app(), ["bundle", str(tmp_path), "--verify"])
    assert (run.exit_code, run.stdout) == (0, f"whole: 7 files, {manifest.size / 1e6:.1f} MB\n")
    (tmp_path / "debs/kmod_29-1_amd64.deb").unlink()
    run = CliRunner().invoke(build_app(), ["bundle", str(tmp_path), "--verify", "--json"])
    assert run.exit_code == 1
    assert json.loads(run.stdout)["damages"] == [{"path": "debs/kmod_29-1_amd64.deb", "what": "is missing"}]


def test_verify_of_what_is_no_bundle(tmp_path, capsys):
    assert main(["bundle", str(tmp_path), "--verify"]) == 2
    assert "is no bundle, or was not finished" in capsys.readouterr().err


def test_from_names_one_rig(capsys, tmp_path):
    inventory = Path(__file__).parents[2] / "inventory"
    assert main(["bundle", str(tmp_path / "b"), "-i", str(inventory), "--from", "all"]) == 2
    assert "--from all names 2 rigs" in capsys.readouterr().err
