"""Write docs/failure-modes.md from the faults and the tests that meet them.

`python -m tests.failures.failures_page`
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

from rigctl.sim import faults

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PAGE = ROOT / "docs" / "failure-modes.md"
OTHERS = (
    (
        "The archive has the branch only as a transitional package for another one (pop-os/pop#3549).",
        "refused before anything is installed, with the source or the branch to choose",
        "tests/provision/test_on_rigs.py::test_1_a_transitional_package_is_refused_and_nothing_is_installed",
    ),
    (
        "Changing the branch package by package ends in held broken packages (NVIDIA/ansible-role-nvidia-driver#33).",
        "one transaction; the old branch goes whole",
        "tests/provision/test_on_rigs.py::test_8_another_branch_replaces_the_first_one_whole",
    ),
    (
        "A power limit outside the card's own range.",
        "refused, with the range",
        "tests/provision/test_on_rigs.py::test_5_a_power_limit_outside_the_card_s_range_is_refused",
    ),
    (
        "A rig that must be restarted while somebody uses it.",
        "`nvidia_driver_reboot: ask` stops there and says so",
        "tests/provision/test_on_rigs.py::test_7_where_a_reboot_is_to_be_asked_for_the_rig_is_not_restarted",
    ),
    (
        "A local connection: the restart would be the controller's own (NVIDIA/ansible-role-nvidia-driver#20).",
        "refused, under the controller's other names too",
        "tests/roles/test_reboot_on_rigs.py::test_a_local_connection_is_refused",
    ),
    (
        "A restart that ends at the console: encrypted volume, missing mount, renamed interface, small /boot.",
        "refused before anything is installed, each with its remedy",
        "tests/roles/test_reboot_on_rigs.py::test_provision_refuses_before_anything_is_installed",
    ),
    (
        "A new kernel does not start, or fails the check behind it.",
        "started once on trial; a power cycle brings the old one back",
        "tests/roles/test_reboot_on_rigs.py::test_new_kernels_are_started_on_trial",
    ),
    (
        "The rig's clock is wrong: certificates and package lists are refused.",
        "refused, with the command that sets it",
        "tests/roles/test_base_on_rigs.py::test_3_a_wrong_clock_is_refused",
    ),
    (
        "Provisioning itself is interrupted.",
        "run again, it ends as an uninterrupted one does",
        "tests/failures/test_interrupted.py::test_an_interrupted_provisioning_ends_as_an_uninterrupted_one_when_run_again",
    ),
)
INTRODUCTION = """\
# Failure modes of provisioning

This page is written by `python -m tests.failures.failures_page` from the catalogue of [faults](faults.md) and from the
tests that meet them. Each row is something that has happened to people; each is let happen to a simulated rig, and
the test asks what `rigctl provision` says and does, that dpkg is whole, and that the next `rigctl provision` after
the remedy succeeds. The tests are slow: `make test-all` runs them.

What apt, dpkg, DKMS or sudo say is recognised by its words (`rigctl/provision/remedies.py`), and answered in one line
with what to do.

| mode | in the field | how it is met | tested by |
|---|---|---|---|
"""


def tests_by_fault() -> dict[str, list[str]]:
    """Which tests meet which fault."""
    found: dict[str, list[str]] = {}
    for path in sorted(FOLDER.glob("test_*.py")):
        module = importlib.import_module(f"tests.failures.{path.stem}")
        for name, test in vars(module).items():
            for fault in getattr(test, "meets", ()):
                found.setdefault(fault, []).append(f"{path.relative_to(ROOT)}::{name}")
    return found


def exists(test: str) -> bool:
    """Whether there is such a test."""
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.walk(tree))


def render() -> str:
    """Return the page."""
    tested = tests_by_fault()
    rows = []
    for fault in faults.catalogue():
        if fault.met:
            tests = "<br>".join(f"`{test}`" for test in tested.get(fault.name, ()))
            rows.append(f"| `{fault.name}`: {fault.summary} | {fault.in_the_field} | {fault.met} | {tests} |")
    rows += [f"| {mode} | | {met} | `{test}` |" for mode, met, test in OTHERS]
    return INTRODUCTION + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
