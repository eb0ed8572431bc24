"""The file in which an upgrade says what one rig is to have."""

from __future__ import annotations

import pytest
import yaml

from rigctl.errors import UsageError
from rigctl.model.upgrade import Wishes
from rigctl.upgrade.inventory_file import NAME, InventoryFile, wished_variables


@pytest.mark.parametrize(
    ("wishes", "variables"),
    [
        (Wishes(driver="535"), {"nvidia_driver_branch": "535", "nvidia_driver_version": ""}),
        (Wishes(driver="535.129.03"), {"nvidia_driver_branch": "535", "nvidia_driver_version": "535.129.03"}),
        (Wishes(cuda="12.2"), {"cuda_version": "12.2"}),
        (Wishes(torch="2.1.2"), {"pytorch_version": "2.1.2"}),
        (Wishes(torch="2.1.2+cu121"), {"pytorch_version": "2.1.2", "pytorch_build": "cu121"}),
        (Wishes(), {}),
    ],
)
def test_wishes_are_role_variables(wishes, variables):
    assert wished_variables(wishes) == variables


def test_it_says_what_is_wished_as_text_and_who_wrote_it(tmp_path):
    own = InventoryFile(tmp_path, "rig1")
    own.write({"nvidia_driver_branch": "535", "cuda_version": "12.0"}, {"cuda_version": "11.7"}, "run-1")
    text = own.read()
    assert yaml.safe_load(text) == {"nvidia_driver_branch": "535", "cuda_version": "12.0"}
    assert "run-1" in text
    assert own.path == tmp_path / "host_vars" / "rig1" / NAME


def test_it_keeps_what_an_earlier_upgrade_said(tmp_path):
    own = InventoryFile(tmp_path, "rig1")
    own.write({"cuda_version": "12.2"}, {}, "run-1")
    own.write({"nvidia_driver_branch": "535"}, {}, "run-2")
    assert yaml.safe_load(own.read()) == {"nvidia_driver_branch": "535", "cuda_version": "12.2"}


def test_what_group_vars_say_is_not_said_again_and_an_empty_file_goes(tmp_path):
    own = InventoryFile(tmp_path, "rig1")
    own.write({"nvidia_driver_branch": "535"}, {"nvidia_driver_branch": "515"}, "run-1")
    own.write({"nvidia_driver_branch": "515"}, {"nvidia_driver_branch": "515"}, "run-2")
    assert own.read() is None
    assert not own.path.parent.exists()


def test_other_files_of_the_rig_stay(tmp_path):
    other = tmp_path / "host_vars" / "rig1" / "spec.yml"
    other.parent.mkdir(parents=True)
    other.write_text("rig_spec_host: {}\n", encoding="utf-8")
    own = InventoryFile(tmp_path, "rig1")
    own.write({"cuda_version": "12.2"}, {}, "run-1")
    own.put_back(None)
    assert [path.name for path in other.parent.iterdir()] == ["spec.yml"]


@pytest.mark.parametrize("before", [None, "cuda_version: '12.0'\n"])
def test_it_is_put_back_byte_for_byte(tmp_path, before):
    own = InventoryFile(tmp_path, "rig1")
    if before is not None:
        own.put_back(before)
    own.write({"nvidia_driver_branch": "535"}, {}, "run-1")
    own.put_back(before)
    assert own.read() == before


def test_a_single_file_of_the_rig_would_be_read_no_more(tmp_path):
    single = tmp_path / "host_vars" / "rig1.yml"
    single.parent.mkdir()
    single.write_text("{}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"Ansible reads a folder instead of this one"):
        InventoryFile(tmp_path, "rig1").require_room()
    assert [path.name for path in single.parent.iterdir()] == ["rig1.yml"]


def test_a_folder_that_cannot_be_written_is_said_before_anything(tmp_path):
    (tmp_path / "host_vars").write_text("in the way", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be written"):
        InventoryFile(tmp_path, "rig1").require_room()
    InventoryFile(tmp_path / "room", "rig1").require_room()
