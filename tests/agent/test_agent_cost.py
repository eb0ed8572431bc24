"""What watching costs, as `make bench NAME=telemetry` measures it: eight cards, for a short while."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from bench.telemetry import FAST_HZ, MOST_CPU_PERCENT, MOST_MEMORY_MIB, build_library, watch

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 8


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("make") is None or shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    return build_library(tmp_path_factory.mktemp("nvml"))


def test_watching_eight_cards_once_a_second_costs_next_to_nothing(library: Path, tmp_path: Path) -> None:
    cost = watch(library, tmp_path, 1, SECONDS)
    assert cost["samples"] >= 0.7 * SECONDS
    assert cost["memory_mib"] <= MOST_MEMORY_MIB
    assert 100 * cost["share"] <= MOST_CPU_PERCENT, cost


def test_ten_samples_a_second_of_eight_cards_work(library: Path, tmp_path: Path) -> None:
    cost = watch(library, tmp_path, FAST_HZ, SECONDS)
    assert cost["samples"] >= 0.5 * FAST_HZ * SECONDS, "this machine may be busy"
