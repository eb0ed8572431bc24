"""Every check says of itself what it requires, whence its limit, and what to do; and has a page that says more."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from rigctl.checks import catalogue
from rigctl.checks.catalogue import CATALOGUE, ORDER
from rigctl.checks.load import STEPS
from rigctl.model.spec import RigSpec

PAGES = Path(__file__).parents[2] / "docs" / "checks"
SECTIONS = ("## What it measures", "## Why it fails", "## What to do")
JUDGED_BY_NOBODY = {
    "limits": set(),
    "parts": {"disk_directory"},
    "cooling": set(),
    "settings": set(),
    "training": {"device", "model", "seq_len", "micro_batch", "grad_accum", "dtype", "threads", "warmup_steps",
                 "measured_steps", "provisional"},
    "compute": {"device", "layer_batch", "matmul_n", "stream_mib", "threads"},
    "host_memory": {"seconds", "share_of_free"},
    "across": {"rigs", "rank", "address", "port"},
    "wall_meter": {"channel", "command", "form", "required", "ups", "url"},
}  # fmt: skip
"""What the groups of a spec hold beside limits: what a workload or a meter is, not what it must show."""
INSTALLED = {"software"}
"""Role variables, named in words."""


def group(name):
    """The model of one group of the spec."""
    annotation = RigSpec.model_fields[name].annotation
    return next(one for one in (annotation, *get_args(annotation)) if isinstance(one, type))


def keys():
    """Every key of the spec, dotted."""
    return {
        f"{name}.{key}"
        for name, field in RigSpec.model_fields.items()
        for one in (field.annotation, *get_args(field.annotation))
        if isinstance(one, type) and issubclass(one, BaseModel)
        for key in one.model_fields
    }


def test_every_group_of_the_spec_is_looked_at():
    assert {key.partition(".")[0] for key in keys()} == set(JUDGED_BY_NOBODY) | INSTALLED


def test_every_check_has_one_entry_and_one_place():
    entries = [info.id for subject in catalogue._SUBJECTS for info in subject.ENTRIES]
    assert sorted(entries) == sorted(set(entries)) == sorted(ORDER)


@pytest.mark.parametrize("info", CATALOGUE.values(), ids=lambda info: info.id)
def test_a_check_says_whence_its_limit_and_what_to_do(info):
    assert info.title
    assert info.limit_from
    assert info.fix
    assert set(info.steps) <= set(STEPS)
    named = {one for one in info.limit_from if re.fullmatch(r"[a-z_]+\.[a-z_0-9]+", one)}
    assert named <= keys(), "no such key of the spec"


@pytest.mark.parametrize("name", JUDGED_BY_NOBODY)
def test_every_limit_that_a_spec_can_set_is_some_checks_limit(name):
    judged = {key for info in CATALOGUE.values() for key in info.limit_from}
    unjudged = {key for key in group(name).model_fields if f"{name}.{key}" not in judged}
    assert unjudged == JUDGED_BY_NOBODY[name]


def test_a_check_without_load_takes_no_time_and_others_that_of_their_steps():
    expected = {"idle": 30.0, "gpu_burn": 600.0, "all_burn": 120.0}
    assert CATALOGUE["topology.gpu_count"].seconds(expected) == 0
    assert CATALOGUE["thermals.resistance"].seconds(expected) == 600
    assert CATALOGUE["throughput.gpu_burn"].seconds(expected) == 720
    assert CATALOGUE["throughput.training"].seconds(expected) == 0, "its step is not asked for"


def test_nvml_is_the_first_thing_that_a_check_of_the_cards_needs():
    assert CATALOGUE["topology.nvlink"].needs == ("NVML", "nvidia-smi")
    assert CATALOGUE["throughput.cpu_burn"].needs == ("stress-ng",)


def test_there_is_a_page_for_each_check_and_no_other():
    assert {path.stem for path in PAGES.glob("*.md")} == set(CATALOGUE)


@pytest.mark.parametrize("check", CATALOGUE)
def test_a_page_says_what_is_measured_why_it_fails_and_what_to_do(check):
    text = (PAGES / f"{check}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {check}\n")
    places = [text.find(section) for section in SECTIONS]
    assert -1 not in places
    assert places == sorted(places)
    for section, following in zip(SECTIONS, (*SECTIONS[1:], None), strict=True):
        body = text.split(section)[1].split(following)[0] if following else text.split(section)[1]
        assert len(re.sub(r"<!--.*?-->", "", body).split()) > 2, f"{section} says nothing"
