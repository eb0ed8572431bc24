"""Dependencies point one way: cli → use cases → fleet, store, report, acceptance → checks, parse → model."""

from __future__ import annotations

import ast
import sys

import pytest

from .source_tree import imports, imports_of, modules, within

LAYERS = {
    "rigctl.cli": 5,
    "rigctl.accept": 4,
    "rigctl.baselines": 4,
    "rigctl.bootstrap": 4,
    "rigctl.bundling": 4,
    "rigctl.certificate": 4,
    "rigctl.compat": 3,
    "rigctl.demo": 4,
    "rigctl.doctor": 4,
    "rigctl.judge": 4,
    "rigctl.left": 4,
    "rigctl.resume": 4,
    "rigctl.evidence": 4,
    "rigctl.health": 4,
    "rigctl.identify": 4,
    "rigctl.__main__": 5,
    "rigctl.measure": 4,
    "rigctl.metrics": 4,
    "rigctl.nightly": 4,
    "rigctl.power": 4,
    "rigctl.provision": 4,
    "rigctl.prune": 4,
    "rigctl.sim": 4,
    "rigctl.site": 4,
    "rigctl.spec": 4,
    "rigctl.starter": 4,
    "rigctl.upgrade": 4,
    "rigctl.acceptance": 3,
    "rigctl.assets": 3,
    "rigctl.fleet": 3,
    "rigctl.inventory": 3,
    "rigctl.report": 3,
    "rigctl.store": 3,
    "rigctl.trends": 3,
    "rigctl.checks": 2,
    "rigctl.parse": 2,
    "rigctl.errors": 1,
    "rigctl.model": 1,
    "rigctl": 0,
}
PURE = ("rigctl.model", "rigctl.checks", "rigctl.parse")
IO_MODULES = {
    "asyncio", "ftplib", "glob", "http", "io", "multiprocessing", "os", "pathlib", "random", "select", "shutil",
    "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "time", "urllib",
    "ansible_runner", "fabric", "invoke", "paramiko", "pytest", "requests", "rich", "testinfra", "typer",
}  # fmt: skip
IO_CALLS = {"open", "print", "input", "exec", "eval"}
SSH_MODULES = {"rigctl.fleet.ssh", "rigctl.fleet.auth", "rigctl.fleet.trust"}
SIM_USERS = ("rigctl.sim", "rigctl.demo", "rigctl.cli.sim", "rigctl.cli.demo")
AGENT_THIRD_PARTY = {"pynvml"}


def layer(name: str) -> int:
    for prefix in sorted(LAYERS, key=len, reverse=True):
        if within(name, prefix) and (prefix != "rigctl" or name == "rigctl"):
            return LAYERS[prefix]
        if prefix == "rigctl.inventory" and name.startswith("rigctl.inventory_"):
            return LAYERS[prefix]
    pytest.fail(f"{name} has no layer: say in tests/house/test_imports.py and ARCHITECTURE.md where it belongs")


def own_imports():
    for one in imports():
        if within(one.target, "rigctl") and not within(one.importer, "rigctl.agent", "rigctl.sim.machine"):
            yield one


def test_every_import_points_downwards():
    wrong = [
        str(one)
        for one in own_imports()
        if not within(one.target, "rigctl.agent") and layer(one.target) > layer(one.importer)
    ]
    assert wrong == []


def test_report_and_store_do_not_reach_for_rigs():
    wrong = [
        str(one)
        for one in imports()
        if within(one.importer, "rigctl.report", "rigctl.store")
        and within(one.target, "rigctl.fleet", "rigctl.inventory")
    ]
    assert wrong == []


def test_words_checks_and_parsers_do_no_io():
    wrong = [str(one) for one in imports() if within(one.importer, *PURE) and one.target.split(".")[0] in IO_MODULES]
    for name, path in modules().items():
        if within(name, *PURE):
            wrong += [
                f"{name}:{call.lineno} calls {call.func.id}"
                for call in io_calls(ast.parse(path.read_text(encoding="utf-8")))
            ]
    assert wrong == []


def io_calls(tree: ast.AST):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IO_CALLS:
            yield node


def test_agent_needs_only_the_standard_library_and_pynvml():
    wrong = []
    for one in imports():
        if not within(one.importer, "rigctl.agent") or within(one.target, "rigctl.agent"):
            continue
        top = one.target.split(".")[0]
        if top == "torch" and within(one.importer, "rigctl.agent.scripts"):
            continue
        if top not in sys.stdlib_module_names | AGENT_THIRD_PARTY | {"rigctl_agent"}:
            wrong.append(str(one))
    assert wrong == []


def test_nothing_imports_the_agents_code_but_its_bundler():
    """And the nights of simulated fleets, which let the guard decide as it does on a rig."""
    users = ("rigctl.agent", "rigctl.fleet.bundle", "rigctl.sim.nights")
    wrong = [str(one) for one in imports() if within(one.target, "rigctl.agent") and not within(one.importer, *users)]
    assert wrong == []


@pytest.mark.parametrize("library", ["fabric", "paramiko"])
def test_one_door_for_ssh(library):
    users = {one.importer for one in imports() if within(one.target, library)}
    assert users <= SSH_MODULES
    assert users, f"nobody imports {library}: is this test looking at the right place?"


def test_nothing_knows_the_simulation_but_its_own_commands():
    wrong = [str(one) for one in imports() if within(one.target, "rigctl.sim") and not within(one.importer, *SIM_USERS)]
    assert wrong == []


def test_simulated_machine_parts_stand_alone():
    """They are copied into a rig, where rigctl is not installed."""
    wrong = [
        str(one)
        for one in imports()
        if within(one.importer, "rigctl.sim.machine")
        and within(one.target, "rigctl")
        and not within(one.target, "rigctl.sim.machine")
    ]
    assert wrong == []


def test_a_wrong_import_would_be_seen(tmp_path):
    bad = tmp_path / "gpu.py"
    bad.write_text("from rigctl.fleet import ssh\ndef f():\n    import subprocess\n    open('x')\n")
    targets = [one.target for one in imports_of("rigctl.checks.gpu", bad)]
    assert targets[1] == "subprocess"
    assert within(targets[0], "rigctl.fleet")
    assert layer(targets[0]) > layer("rigctl.checks.gpu")
    assert [call.func.id for call in io_calls(ast.parse(bad.read_text()))] == ["open"]
