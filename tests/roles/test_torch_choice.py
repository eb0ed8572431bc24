"""The table's choice of PyTorch, by driver and Python."""

import importlib.util

import pytest
from ansible.errors import AnsibleFilterError

from .roles_page import ROLES

spec = importlib.util.spec_from_file_location("torch_choice", ROLES / "compat" / "filter_plugins" / "compat.py")
torch_choice = importlib.util.module_from_spec(spec)
spec.loader.exec_module(torch_choice)


def choose(driver, python, version="auto", build="auto"):
    return torch_choice.torch_choice({"driver": driver, "python": python}, {"version": version, "build": build})


@pytest.mark.parametrize(
    ("driver", "python", "version", "build"),
    [
        ("515.105.01", "3.10", "2.0.1", "cu117"),
        ("515", "3.10", "2.0.1", "cu117"),
        ("515.105.01", "3.11", "2.0.1", "cu117"),
        ("515.65.01", "3.12", "2.7.1", "cu118"),  # no native build is for 3.12: minor-version compatibility
        ("510.108.03", "3.10", "1.13.1", "cu116"),
        ("525.60.13", "3.10", "2.7.1", "cu118"),
        ("535.183.01", "3.10", "2.7.1", "cu118"),
        ("550", "3.10", "2.7.1", "cu118"),
        ("535.309.01", "3.11", "2.7.1", "cu118"),  # Debian 12
        ("550.163.01", "3.12", "2.7.1", "cu118"),  # Ubuntu 24.04
        ("580.95.05", "3.10", "2.11.0", "cu130"),
        ("580", "3.14", "2.11.0", "cu130"),
        ("700.10.01", "3.12", "2.11.0", "cu130"),  # newer than the table: what its newest branch can
    ],
)
def test_auto(driver, python, version, build):
    choice = choose(driver, python)
    assert (choice["version"], choice["build"]) == (version, build)
    assert choice["index_url"].endswith(f"/{build}/")


def test_minor_version_compatibility_is_said():
    assert "no PTX" in choose("515", "3.12")["why"]
    assert choose("515", "3.10")["why"] == "native"


def test_a_pinned_version_gets_its_best_build():
    assert choose("515", "3.10", version="1.13.1")["build"] == "cu117"
    assert choose("580", "3.10", version="2.9.1")["build"] == "cu130"


def test_a_pinned_build_gets_its_newest_version():
    assert choose("515", "3.10", build="cu118")["version"] == "2.7.1"


def test_cpu_needs_no_driver():
    choice = choose("", "3.11", version="2.13.0", build="cpu")
    assert (choice["version"], choice["build"]) == ("2.13.0", "cpu")
    assert choice["index_url"].endswith("/whl/cpu/")
    assert choose("", "3.10", build="cpu")["version"] == "2.11.0"


@pytest.mark.parametrize(
    ("driver", "python", "version", "build", "said"),
    [
        ("515", "3.10", "2.8.0", "auto", "needs driver 525.60.13 or newer"),
        ("515", "3.10", "auto", "cu121", "needs driver 525.60.13 or newer"),
        ("535", "3.10", "2.10.0", "cu130", "needs driver 580.65.06 or newer"),
        ("525.53", "3.10", "auto", "cu121", "needs driver 525.60.13 or newer"),
        ("515", "3.11", "1.13.1", "auto", "for Python 3.11; set pytorch_python"),
        ("515", "3.10", "2.0.1", "cu999", "the table has no such build"),
        ("", "3.10", "auto", "auto", "no NVIDIA driver is loaded"),
        ("", "3.9", "2.13.0", "cpu", "not for Python 3.9"),
        ("390", "3.10", "auto", "auto", "needs driver 450.80.02 or newer"),
    ],
)
def test_impossible_combinations_say_what_would_have_to_change(driver, python, version, build, said):
    with pytest.raises(AnsibleFilterError) as caught:
        choose(driver, python, version, build)
    assert said in str(caught.value)
    assert f"pytorch_version: {version}" in str(caught.value)


def test_every_row_names_its_source():
    for name in torch_choice.TABLES:
        assert all(row["source"] for row in torch_choice.rows(name)), name


def test_every_build_has_a_python_range_and_runs_on_some_branch():
    minors = {row["torch_minor"] for row in torch_choice.rows("pythons")}
    known = {".".join(row["torch"].split(".")[:2]) for row in torch_choice.rows("builds")}
    assert known - minors == {"1.11"}  # older than the published matrix: never chosen
