"""`rig_drain`, `rig_circuit` and `rig_switch` of the inventory: what is wrong with them is one clear line."""

from __future__ import annotations

import shutil

import pytest

from rigctl.assets import starter_inventory_dir
from rigctl.cli.app import main
from rigctl.errors import UsageError
from rigctl.model.upgrade import CommandDrain, NoDrain, SlurmDrain
from rigctl.upgrade.settings import drains_of, groups_of


def test_each_kind_is_read():
    written = {
        "rig1": {"rig_drain": {"kind": "slurm", "node": "gpu1"}},
        "rig2": {"rig_drain": {"kind": "command", "drain": ["close"], "resume": ["open"]}},
        "rig3": {"rig_drain": {"kind": "none"}},
        "rig4": {},
        "rig5": {"rig_drain": None},
    }
    assert drains_of(written) == {
        "rig1": SlurmDrain(kind="slurm", node="gpu1"),
        "rig2": CommandDrain(kind="command", drain=("close",), resume=("open",)),
        "rig3": NoDrain(),
        "rig4": NoDrain(),
        "rig5": NoDrain(),
    }


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("slurm", "rig1: rig_drain: 'slurm' is no mapping", "kind: slurm"),
        (["slurm"], "rig1: rig_drain: ['slurm'] is no mapping", "kind: slurm"),
        ({}, "rig1: rig_drain.kind: missing", "slurm, command, none"),
        ({"node": "rig1"}, "rig1: rig_drain.kind: missing", "slurm, command, none"),
        ({"kind": "slrum"}, "rig1: rig_drain.kind: 'slrum' is no kind", "did you mean slurm?"),
        ({"kind": "kubernetes"}, "rig1: rig_drain.kind: 'kubernetes' is no kind", "slurm, command, none"),
        ({"kind": ["slurm"]}, "rig1: rig_drain.kind: ['slurm'] is no kind", "slurm, command, none"),
        ({"kind": None}, "rig1: rig_drain.kind: None is no kind", "slurm, command, none"),
        ({"kind": "slurm", "nodes": "x"}, "rig1: rig_drain.nodes: unknown key", "did you mean node?"),
        ({"kind": "slurm", "node": 7}, "rig1: rig_drain.node: 7 is not text", "in quotes"),
        ({"kind": "slurm", "where": "there"}, "rig1: rig_drain.where: 'there' is not 'rig' or 'controller'", "choose"),
        ({"kind": "slurm", "drain": ["x"]}, "rig1: rig_drain.drain: unknown key", "known keys here: kind, node, where"),
        ({"kind": "command", "drain": ["close"]}, "rig1: rig_drain.resume: missing", "add the key"),
        (
            {"kind": "command", "drain": [], "resume": ["open"]},
            "rig1: rig_drain.drain: [] is no list of words",
            "docs/upgrade.md",
        ),
        (
            {"kind": "command", "drain": "close", "resume": ["open"]},
            "rig1: rig_drain.drain: 'close' is no list of words",
            "docs/upgrade.md",
        ),
        ({"kind": "none", "node": "x"}, "rig1: rig_drain.node: unknown key", "known keys here: kind"),
    ],
)
def test_a_wrong_drain_is_one_line_with_rig_and_key(written, message, hint):
    with pytest.raises(UsageError) as caught:
        drains_of({"rig1": {"rig_drain": written}})
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message
    assert hint in caught.value.hint


def test_two_rigs_are_never_one_in_slurm():
    same = {"rig_drain": {"kind": "slurm", "node": "rig1"}}
    with pytest.raises(UsageError, match=r"rig2: rig_drain\.node: rig1 is rig1 in Slurm too"):
        drains_of({"rig1": {"rig_drain": {"kind": "slurm"}}, "rig2": same})


def test_groups_are_of_two_rigs_and_more():
    written = {
        "rig1": {"rig_circuit": 4, "rig_switch": "a"},
        "rig2": {"rig_circuit": "4", "rig_switch": ""},
        "rig3": {"rig_circuit": None, "rig_switch": "a"},
        "rig4": {"rig_circuit": "5"},
    }
    found = {group.name: group.rigs for group in groups_of(written)}
    assert found == {"rig_circuit 4": ("rig1", "rig2"), "rig_switch a": ("rig1", "rig3")}


@pytest.mark.parametrize("wrong", [["a", "b"], {"name": "a"}, True, 1.5])
@pytest.mark.parametrize("key", ["rig_circuit", "rig_switch"])
def test_a_group_has_a_name(key, wrong):
    with pytest.raises(UsageError) as caught:
        groups_of({"rig1": {key: wrong}})
    assert caught.value.message == f"rig1: {key}: {wrong!r} is no name"
    assert "breaker-4" in caught.value.hint


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("rig_drain: {kind: slrum}", "error: rig1: rig_drain.kind: 'slrum' is no kind"),
        ("rig_circuit: [a, b]", "error: rig1: rig_circuit: ['a', 'b'] is no name"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_the_command_says_it_before_any_rig_and_run(tmp_path, capsys, written, line, dry):
    inventory = tmp_path / "inventory"
    shutil.copytree(starter_inventory_dir() / "group_vars", inventory / "group_vars")
    hosts = "class_dual_3090ti: {hosts: {rig1: {ansible_host: 127.0.0.1, ansible_port: 9}}}\n"
    (inventory / "hosts.yml").write_text(hosts, encoding="utf-8")
    (inventory / "host_vars" / "rig1").mkdir(parents=True)
    (inventory / "host_vars" / "rig1" / "own.yml").write_text(written + "\n", encoding="utf-8")
    runs = tmp_path / "runs"
    words = ["upgrade", "--driver", "535", "-i", str(inventory), "--runs", str(runs), *dry]
    code, said = main(words), capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert said.err.splitlines()[0] == line
    assert said.err.splitlines()[1].startswith("hint: ")
    assert not runs.exists()
