"""Roles, playbooks and inventory are found in a checkout and in a wheel, and their absence is said."""

import pytest

from rigctl import assets
from rigctl.errors import UsageError


def test_in_a_checkout():
    assert (assets.roles_dir() / "nvidia_driver" / "defaults" / "main.yml").is_file()
    assert (assets.playbooks_dir() / "site.yml").is_file()
    assert (assets.starter_inventory_dir() / "rigs.yml").is_file()


def test_the_wheel_s_own_copy_comes_first(tmp_path, monkeypatch):
    for place in ("wheel", "beside"):
        (tmp_path / place / "playbooks").mkdir(parents=True)
        (tmp_path / place / "playbooks" / "site.yml").touch()
    monkeypatch.setattr(assets, "_PLACES", (tmp_path / "wheel", tmp_path / "beside"))
    assert assets.playbooks_dir() == tmp_path / "wheel" / "playbooks"


def test_a_damaged_installation_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(assets, "_PLACES", (tmp_path,))
    with pytest.raises(UsageError, match="roles/ of rigctl is missing") as caught:
        assets.roles_dir()
    assert "install rigctl again" in caught.value.hint
