"""People's own checks beside their inventory; the page's examples run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rigctl.acceptance.own import beside
from rigctl.cli.app import main
from rigctl.judge import judge_run
from rigctl.store import dumps
from tests.checks import healthy as h

from .test_judge import ANSWERS, fake, run_of

PAGE = Path(__file__).parents[2] / "docs" / "acceptance-tests.md"
FIXTURES = ("host", "rig", "spec", "readings", "profile", "baseline", "judge")
SAID = {"df --output": "24G\n", "uname -r": "5.15.0-101-generic\n", "vim-tiny": "install ok installed 2:8.2-1\n"}


def examples():
    """The page's test files, by the names that its words give them."""
    first, second = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return {"test_mine.py": first, "test_own_words.py": second}


def judged(tmp_path, **answers):
    folder = tmp_path / "fleet" / "acceptance"
    folder.mkdir(parents=True)
    for name, text in examples().items():
        (folder / name).write_text(text, encoding="utf-8")
    clocked = h.with_gpu_samples(lambda _gpu, _sample: {"mem_mhz": 10_501}, ("gpu_burn",))
    run = run_of(tmp_path, rig1=h.readings(samples=clocked))
    own = beside(tmp_path / "fleet" / "inventory")
    record = judge_run(run, {"rig1": fake(run, answers={**ANSWERS, **SAID, **answers})}, user_tests=own)
    assert dumps(judge_run(run)) == dumps(record), "the same again, offline"
    return {v.key.removeprefix("user."): v for v in record.rigs[0].verdicts if v.check.startswith("user.")}


def test_the_pages_examples_pass_on_a_healthy_rig(tmp_path):
    found = judged(tmp_path)
    assert {key: v.verdict.value for key, v in found.items()} == {
        "test_mine.test_the_editor_is_there[rig]": "pass",
        "test_mine.test_there_is_room[folder=/]": "pass",
        "test_mine.test_there_is_room[folder=/var]": "pass",
        "test_mine.test_memory_clocks_are_up_under_load[rig]": "pass",
        "test_own_words.test_kernel_is_not_too_old[rig]": "pass",
    }
    assert found["test_own_words.test_kernel_is_not_too_old[rig]"].expected == "5.15 or newer"


def test_the_pages_examples_fail_in_their_own_words(tmp_path):
    found = judged(tmp_path, **{"df --output": "0G\n", "uname -r": "5.4.0-1-generic\n"})
    assert found["test_mine.test_there_is_room[folder=/var]"].reason.startswith("0 GB free on /var")
    old = found["test_own_words.test_kernel_is_not_too_old[rig]"]
    assert (old.verdict.value, old.found, old.fix) == ("fail", "5.4.0-1-generic", "apt-get dist-upgrade")


@pytest.mark.parametrize("fixture", FIXTURES)
def test_the_page_names_every_fixture(fixture):
    assert f"`{fixture}`" in PAGE.read_text(encoding="utf-8")


def accepted(tmp_path, monkeypatch, *words):
    """What `rigctl accept` would have run as people's own tests."""
    taken = []

    def start(options):
        taken.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr("rigctl.inventory.load_fleet", lambda _inventory, _pattern: ())
    monkeypatch.setattr("rigctl.accept.start_run", start)
    monkeypatch.chdir(tmp_path)
    assert main(["accept", *words]) == 130
    (options,) = taken
    assert options.asked["acceptance_tests"] == [str(folder) for folder in options.acceptance_tests]
    return options.acceptance_tests


def with_tests(folder):
    folder.mkdir(parents=True)
    (folder / "test_mine.py").write_text("def test_one(): pass\n", encoding="utf-8")
    return folder


def test_the_folder_beside_the_inventory_is_taken(tmp_path, monkeypatch):
    own = with_tests(tmp_path / "fleet" / "acceptance")
    assert accepted(tmp_path, monkeypatch, "-i", str(tmp_path / "fleet" / "inventory")) == (own,)
    assert accepted(tmp_path, monkeypatch, "-i", "fleet/rigs.yml") == (own,)
    assert accepted(tmp_path, monkeypatch) == (), "beside ./inventory there is none"


def test_a_named_folder_is_taken_instead(tmp_path, monkeypatch):
    with_tests(tmp_path / "acceptance")
    other = with_tests(tmp_path / "elsewhere")
    assert accepted(tmp_path, monkeypatch) == (tmp_path / "acceptance",)
    assert accepted(tmp_path, monkeypatch, "--acceptance-tests", str(other)) == (other,)


def test_a_folder_without_tests_beside_the_inventory_is_left_alone(tmp_path):
    (tmp_path / "acceptance").mkdir()
    (tmp_path / "acceptance" / "protocol.docx").write_text("signed", encoding="utf-8")
    assert beside(tmp_path / "inventory") == ()
