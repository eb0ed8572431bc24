"""Software: what was asked, what is loaded, what is on disk."""

from __future__ import annotations

import pytest

from rigctl.checks import software
from rigctl.model.reading import DriverFacts
from rigctl.model.verdict import Verdict

from . import healthy as h


def driver(packages=None, now=None, **changes):
    known = {"loaded": "515.105.01", "library": "515.105.01"} | changes
    readings = h.readings(facts=h.facts(driver=DriverFacts(**known)))
    (verdict,) = software.driver_version(h.spec(), readings, packages, now)
    return verdict


@pytest.mark.parametrize(
    ("changes", "verdict", "reason", "fix"),
    [
        ({}, Verdict.PASS, "515.105.01", ""),
        ({"library": "535.247.01"}, Verdict.FAIL, "library on disk is 535.247.01", "reboot rig1"),
        (
            {"library": None, "nvml_error": "Driver/library version mismatch"},
            Verdict.FAIL, "another one", "reboot rig1",
        ),
        ({"loaded": None}, Verdict.FAIL, "no module is loaded", "reboot rig1"),
        ({"loaded": None, "library": None}, Verdict.FAIL, "no NVIDIA driver", "provision rig1 --tags nvidia_driver"),
        ({"loaded": "535.247.01", "library": "535.247.01"}, Verdict.FAIL, "branch 515", "rigctl provision"),
        ({"nvml_error": "Unknown Error"}, Verdict.ERROR, "Unknown Error", "reboot"),
        ({"library": None}, Verdict.ERROR, "could not be read", "rigctl provision"),
    ],
)  # fmt: skip
def test_driver(changes, verdict, reason, fix):
    found = driver(**changes)
    assert found.verdict is verdict
    assert reason in found.reason
    assert fix in found.fix


@pytest.mark.parametrize(
    ("stdout", "status", "verdict"),
    [
        (h.PACKAGES, 0, Verdict.PASS),
        ("libnvidia-compute-515\t515.76+really.515.65.01-0ubuntu1\tinstalled\n", 0, Verdict.FAIL),
        ("libnvidia-compute-535\t535.247.01-0ubuntu1\tinstalled\n", 0, Verdict.FAIL),
        ("libnvidia-compute-510\t510.47.03-0ubuntu1\tconfig-files\n" + h.PACKAGES, 0, Verdict.PASS),
        ("", 1, Verdict.WARN),
        ("libnvidia-compute-515 new form\n", 0, Verdict.ERROR),
        ("", -1, Verdict.ERROR),
        ("", 127, Verdict.ERROR),
    ],
)
def test_driver_packages(stdout, status, verdict):
    assert driver(h.reply(stdout, exit_status=status), "515.105.01").verdict is verdict


def test_a_driver_that_changed_during_the_run_fails():
    assert driver(now="535.247.01").verdict is Verdict.FAIL
    assert driver(now="none").verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("asked", "build", "found", "verdict"),
    [
        ("auto", "auto", "2.0.1+cu117", Verdict.PASS),
        ("auto", "auto", "2.7.1+cu118", Verdict.PASS),
        ("auto", "auto", "2.5.1+cu124", Verdict.FAIL),
        ("auto", "auto", "2.9.0+cu130", Verdict.FAIL),
        ("auto", "cpu", "2.13.0+cpu", Verdict.PASS),
        ("auto", "cpu", "1.13.1", Verdict.PASS),
        ("auto", "cpu", "2.0.1+cu117", Verdict.FAIL),
        ("2.0.1", "cu117", "2.0.1+cu117", Verdict.PASS),
        ("2.0.1", "cu117", "2.0.0+cu117", Verdict.FAIL),
        ("2.0.1+cu117", "auto", "2.0.1+cu117", Verdict.PASS),
        ("auto", "distribution", "1.13.0a0", Verdict.PASS),
        ("auto", "distribution", "2.0.1+cu117", Verdict.FAIL),
    ],
)
def test_torch(asked, build, found, verdict):
    spec = h.spec(software={"torch_version": asked, "torch_build": build})
    facts = h.facts(tools=h.facts().tools.model_copy(update={"torch": found}))
    (judged,) = software.torch(spec, h.readings(facts=facts))
    assert judged.verdict is verdict


def test_torch_that_changed_since_the_facts_is_an_error():
    (judged,) = software.torch(h.spec(), h.readings(), h.reply("", exit_status=1, stderr="No module named torch"))
    assert judged.verdict is Verdict.ERROR
    assert "No module named torch" in judged.reason


@pytest.mark.parametrize(
    ("found", "verdict"),
    [("11.7", Verdict.PASS), ("11.7.99", Verdict.PASS), ("11.8", Verdict.FAIL), (None, Verdict.FAIL)],
)
def test_cuda(found, verdict):
    facts = h.facts(tools=h.facts().tools.model_copy(update={"nvcc": found}))
    (judged,) = software.cuda_toolkit(h.spec(), h.readings(facts=facts))
    assert judged.verdict is verdict


def test_a_burner_whose_files_have_gone_is_an_error():
    (judged,) = software.gpu_burn_build(h.spec(), h.readings(), {"gpu_burn": True, "compare.fatbin": False})
    assert judged.verdict is Verdict.ERROR
    assert "compare.fatbin" in judged.reason
