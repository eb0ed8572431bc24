"""What the agent reads of the cards' memory: counts of errors and rows that were replaced, or why there are none."""

from __future__ import annotations

from types import SimpleNamespace

import pynvml
import pytest

from rigctl.agent import ecc, nvml
from rigctl.model.reading import EccReading, RemappedRows


@pytest.fixture
def asker():
    return nvml.Asker("handle", faults=[])


def answer(monkeypatch, name, found):
    """Let one of NVML's calls answer, or fail with an NVML error."""

    def call(*words):
        if isinstance(found, int):
            raise pynvml.NVMLError(found)
        return found(*words) if callable(found) else found

    monkeypatch.setattr(pynvml, name, call)


def test_a_data_centre_card_tells_counts_and_rows(monkeypatch, asker):
    answer(monkeypatch, "nvmlDeviceGetEccMode", [1, 1])
    answer(monkeypatch, "nvmlDeviceGetTotalEccErrors", lambda _card, kind, since: 10 * kind + since)
    answer(monkeypatch, "nvmlDeviceGetRemappedRows", lambda _card: (2, 1, 1, 0))
    histogram = SimpleNamespace(max=639, high=1, partial=0, low=0, none=0)
    answer(monkeypatch, "nvmlDeviceGetRowRemapperHistogram", lambda _card: histogram)
    found = ecc.memory_health(asker)
    counts = EccReading.model_validate(found["ecc"])
    assert (counts.on, counts.corrected, counts.uncorrected) == (True, 0, 10)
    assert (counts.lifetime_corrected, counts.lifetime_uncorrected) == (1, 11)
    rows = RemappedRows.model_validate(found["remapped_rows"])
    assert (rows.corrected, rows.uncorrected, rows.pending, rows.failed) == (2, 1, True, False)
    assert rows.banks == {"max": 639, "high": 1, "partial": 0, "low": 0, "none": 0}
    assert asker.missing == {}


def test_a_card_that_has_it_switched_off_is_asked_for_no_counts(monkeypatch, asker):
    answer(monkeypatch, "nvmlDeviceGetEccMode", [0, 0])
    answer(monkeypatch, "nvmlDeviceGetRemappedRows", pynvml.NVML_ERROR_NOT_SUPPORTED)
    found = ecc.memory_health(asker)
    assert EccReading.model_validate(found["ecc"]) == EccReading(on=False)
    assert found["remapped_rows"] is None
    assert asker.faults == []


def test_a_fault_is_noted_and_absence_is_none(monkeypatch, asker):
    answer(monkeypatch, "nvmlDeviceGetEccMode", pynvml.NVML_ERROR_UNKNOWN)
    answer(monkeypatch, "nvmlDeviceGetRemappedRows", lambda _card: (0, 0, 0, 0))
    answer(monkeypatch, "nvmlDeviceGetRowRemapperHistogram", pynvml.NVML_ERROR_NOT_SUPPORTED)
    found = ecc.memory_health(asker)
    assert found["ecc"] is None
    assert found["remapped_rows"]["banks"] is None
    assert [fault.partition(":")[0] for fault in asker.faults] == ["ecc"]
    assert set(asker.missing) == {"ecc", "remapped_rows.banks"}
