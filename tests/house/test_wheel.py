"""The wheel, installed in a fresh environment outside the checkout, finds its roles and looks at rigs."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from .source_tree import REPO

SHIPPED = ("roles", "playbooks", "inventory")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the checkout by the hatchling of this environment: nothing is downloaded."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(REPO)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A fresh environment with the wheel; what it depends on is borrowed from this one, so that this stays quick."""
    home = tmp_path_factory.mktemp("elsewhere")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin/python"
    site = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    )
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True)
    # A plain .pth line adds the folder alone: the checkout's own .pth in there is not followed.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for script in Path(sys.executable).parent.glob("ansible*"):
        text = script.read_text(encoding="utf-8").split("\n", 1)[1]
        (home / "bin" / script.name).write_text(f"#!{python}\n{text}")
        (home / "bin" / script.name).chmod(0o755)
    return home


def run(home, *command, cwd, expect):
    # Nothing of this checkout or this environment may leak in: no PYTHONPATH, no other PATH, no activated venv.
    environment = {"PATH": f"{home / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(cwd), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [home / "bin" / command[0], *command[1:]], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == expect, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def test_wheel_carries_roles_playbooks_and_inventory(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for folder in SHIPPED:
        source = {str(path.relative_to(REPO / folder)) for path in (REPO / folder).rglob("*") if path.is_file()}
        packed = {
            name.removeprefix(f"rigctl/_ansible/{folder}/")
            for name in names
            if name.startswith(f"rigctl/_ansible/{folder}/")
        }
        assert {name for name in source if "__pycache__" not in name} <= packed
        assert packed, folder
    assert not [name for name in names if name.startswith(("tests/", "bench/", "tools/", "molecule/"))]


def test_it_finds_its_own_roles(installed, tmp_path):
    code = (
        "from rigctl import assets; print(assets.roles_dir(), assets.playbooks_dir(), assets.starter_inventory_dir())"
    )
    for folder in run(installed, "python", "-c", code, cwd=tmp_path, expect=0).stdout.split():
        assert Path(folder).is_dir()
        assert Path(folder).is_relative_to(installed)


def test_check_of_a_rig_that_is_down(installed, tmp_path):
    inventory = tmp_path / "inventory"
    inventory.mkdir()
    (inventory / "rigs.yml").write_text(
        "all:\n  children:\n    class_dual_3090ti:\n      hosts:\n"
        "        down: {ansible_host: 127.0.0.1, ansible_port: 9, ansible_user: nobody}\n"
    )
    starter = run(
        installed,
        "python",
        "-c",
        "from rigctl import assets; print(assets.starter_inventory_dir())",
        cwd=tmp_path,
        expect=0,
    )
    (inventory / "group_vars").symlink_to(Path(starter.stdout.strip()) / "group_vars")
    done = run(installed, "rigctl", "check", "-i", str(inventory), cwd=tmp_path, expect=3)
    assert "down" in done.stdout + done.stderr


def test_it_carries_dashboard_and_alert_rules(installed, tmp_path):
    assert '"uid": "rigctl"' in run(installed, "rigctl", "metrics", "dashboard", cwd=tmp_path, expect=0).stdout
    assert "- alert: RigctlRigFailed" in run(installed, "rigctl", "metrics", "rules", cwd=tmp_path, expect=0).stdout


def test_no_inventory_is_a_usage_error(installed, tmp_path):
    done = run(installed, "rigctl", "check", cwd=tmp_path, expect=2)
    assert done.stderr.count("error: ") == 1
    assert done.stderr.count("hint: ") == 1
