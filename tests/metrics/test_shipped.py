"""The dashboard and the alert rules: valid, and every metric, label and word that they name is really exported."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families as read_text

from rigctl.metrics import FAMILIES, registry_of, text
from rigctl.metrics.shipped import dashboard, rules
from tests.house.source_tree import REPO
from tests.metrics.fleet import NOW, fleet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCRAPED = {"job", "instance"}
"""Labels that Prometheus adds."""
MADE_UP = {"$rig", "$check", "%s"}
"""Values that come from a variable."""
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian: prometheus) is absent")


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(rules())["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return list(json.loads(dashboard())["panels"])


def expressions() -> Iterator[tuple[str, str, str]]:
    """Each with its place and the texts that show its labels."""
    for rule in alerts():
        shown = " ".join(rule["annotations"].values())
        yield rule["alert"], rule["expr"], re.sub(r"\$labels(?=\.)", "", shown)
        for nested in re.findall(r'printf "([^"]+)"', shown):
            yield f"{rule['alert']}, in its words", nested, ""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"], re.sub(r"\{\{(\w+)\}\}", r".\1 ", target["legendFormat"])
    for variable in json.loads(dashboard())["templating"]["list"]:
        if variable["type"] == "query":
            asked, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()  # type: ignore[union-attr]
            yield f"variable {variable['name']}", asked, f".{label} "


def exported() -> dict[str, dict[str, set[str]]]:
    """Every metric with its labels and their values."""
    found: dict[str, dict[str, set[str]]] = {}
    for family in read_text(text(registry_of(fleet()))):
        for one in family.samples:
            labels = found.setdefault(one.name, {})
            for label, value in one.labels.items():
                labels.setdefault(label, set()).add(value)
    return found


def wrong(expression: str, shown: str, known: dict[str, dict[str, set[str]]]) -> list[str]:
    """What an expression names that is not exported."""
    names = re.findall(r"\brigctl_\w+", expression)
    found = [name for name in names if name not in known] or ([] if names else ["no metric"])
    for name, selector in re.findall(r"\b(rigctl_\w+)\{([^}]*)\}", expression):
        for label, value in re.findall(r"""(\w+)\s*(?:=~|!~|!=|=)\s*["']([^"']*)["']""", selector):
            values = {"%s"} if label in SCRAPED else known.get(name, {}).get(label)
            if values is None or (value not in values and value not in MADE_UP):
                found.append(f"{name}{{{label}={value}}}")
    labels = SCRAPED | {label for name in names for label in known.get(name, {})}
    for clause in re.findall(r"\b(?:by|on|ignoring|without)\s*\(([^)]*)\)", expression):
        found += [label for label in re.split(r"\s*,\s*", clause) if label not in labels]
    # `.Labels.check` is of a nested query; `.rig` of the expression itself.
    return found + [label for label in re.findall(r"(?<!\w)\.([a-z_]+)\b", shown) if label not in labels]


def test_everything_that_they_name_is_exported() -> None:
    known = exported()
    assert known.keys() == FAMILIES.keys()
    checked = [(place, wrong(expression, shown, known)) for place, expression, shown in expressions()]
    assert [one for one in checked if one[1]] == []
    assert len(checked) > 30


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("rigctl_rig_verdicts == 1", ""),
        ('rigctl_rig_verdict{verdict="failed"} == 1', ""),
        ('rigctl_rig_verdict{node="rig1"}', ""),
        ("sum by (state) (rigctl_rig_verdict)", ""),
        ("rigctl_rig_verdict", "{{ .node }}"),
        ("up == 0", ""),
    ],
)
def test_a_wrong_name_would_be_seen(expression: str, shown: str) -> None:
    assert wrong(expression, shown, exported())


def test_every_metric_that_matters_is_on_the_dashboard_or_alarms() -> None:
    used = {name for _, expression, _ in expressions() for name in re.findall(r"\brigctl_\w+", expression)}
    assert FAMILIES.keys() - used == {
        "rigctl_build_info", "rigctl_rig_busy", "rigctl_run_step_duration_seconds", "rigctl_rig_slow_trends",
    }  # fmt: skip


def test_each_alert_says_what_happened_and_what_to_do() -> None:
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names) >= 6
    page = (REPO / "docs/monitoring.md").read_text(encoding="utf-8")
    for rule in alerts():
        assert set(rule["annotations"]) == {"summary", "description"}, rule["alert"]
        assert "Do: " in rule["annotations"]["description"], rule["alert"]
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert re.search(rf"^\| `{rule['alert']}` \|.*\| {rule['labels']['severity']} \|$", page, flags=re.MULTILINE)


def test_commands_in_alerts_exist() -> None:
    from tests.house.test_docs import commands  # noqa: PLC0415 - it builds the whole program

    words = " ".join(rule["annotations"]["description"] for rule in alerts())
    called = set(re.findall(r"(?<![/-])\brigctl ((?:nightly )?[a-z]+)", words.replace("no night of rigctl", "")))
    assert called >= {"doctor", "accept", "history", "nightly status", "nightly plan"}
    assert called <= set(commands())


def test_the_dashboard_lies_flat() -> None:
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
    taken: dict[tuple[int, int], str] = {}
    for panel in panels():
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        for place in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            assert place not in taken, f"{panel['title']} lies on {taken[place]}"
            taken[place] = panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"


@needs_promtool
def test_promtool_finds_nothing_to_say(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    path.write_text(rules(), encoding="utf-8")
    done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, check=False)
    assert (done.returncode, f"{len(alerts())} rules found" in done.stdout) == (0, True), done.stdout + done.stderr
    told = subprocess.run(
        ["promtool", "check", "metrics"],
        input=text(registry_of(fleet())),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def as_series() -> list[dict[str, str]]:
    """The fleet as promtool takes it: the same values every 5 minutes for 50 hours, and time begins at 1970."""
    shift, found = NOW.timestamp(), []
    for line in text(registry_of(fleet())).splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            moment = "_timestamp_seconds" in name
            found.append({"series": name, "values": f"{float(value) - shift if moment else float(value):.0f}x600"})
    return found


@needs_promtool
def test_alarms_fire_and_say_their_words(tmp_path: Path) -> None:
    """Half an hour and 49 hours after everything was exported, by Prometheus itself."""
    (tmp_path / "rules.yml").write_text(rules(), encoding="utf-8")
    wanted = {
        "30m": {
            "RigctlRigFailed": ["rig1"], "RigctlRigNotMeasured": ["rig2"], "RigctlVerdictOld": [],
            "RigctlRigNeverJudged": [], "RigctlNightNotRun": [], "RigctlNightBroken": [], "RigctlRigsLeftOut": [""],
            "RigctlWaiverEnds": ["rig1"], "RigctlLimitAhead": ["rig1"], "RigctlRunsUnreadable": [],
        },
        "49h": {
            "RigctlVerdictOld": ["rig1", "rig2"], "RigctlRigNeverJudged": ["rig3"], "RigctlNightNotRun": [""],
            "RigctlRunsUnreadable": [""],
        },
    }  # fmt: skip
    fired = {at: {name: alarms(tmp_path, at, name) for name in names} for at, names in wanted.items()}
    rigs = {at: {name: re.findall(r'Labels:.*?(?:rig="(\w+)"|$)', said, flags=re.MULTILINE) for name, said in f.items()}
            for at, f in fired.items()}  # fmt: skip
    assert rigs == wanted
    assert "Causes: thermals.resistance[slot2] . Do: rigctl report" in fired["30m"]["RigctlRigFailed"]
    assert "the last verdict of rig1 is 2d" in fired["49h"]["RigctlVerdictOld"]


def alarms(folder: Path, at: str, name: str) -> str:
    """The alerts of that name that fire: promtool tells what it got where something else was expected."""
    expected = {"eval_time": at, "alertname": name, "exp_alerts": [{"exp_labels": {"no": "such"}}]}
    one = {"interval": "5m", "input_series": as_series(), "alert_rule_test": [expected]}
    test = {"rule_files": ["rules.yml"], "evaluation_interval": "10m", "tests": [one]}
    (folder / "test.yml").write_text(yaml.safe_dump(test), encoding="utf-8")
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yml"], cwd=folder, capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    assert "exp:" in said, said
    assert 'no="such"' not in said.partition("got:")[2], said
    return said.partition("got:")[2]


def test_a_verdict_is_old_for_rules_and_program_alike() -> None:
    from rigctl.model.nightly import NightlySpec  # noqa: PLC0415 - its default is what the rules repeat

    hours = NightlySpec.model_fields["stale_after_hours"].default
    assert f"> {hours:g} * 3600" in rules()
