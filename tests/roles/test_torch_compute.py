"""The trial of PyTorch on each device, with a stand-in for PyTorch."""

import importlib.util
import json
import sys
from types import SimpleNamespace

import pytest

from .roles_page import ROLES


class Ones:
    """A matrix of ones; its product sums up to what the device makes of it."""

    def __init__(self, total):
        self.total = total

    def __matmul__(self, other):
        return self

    def sum(self):
        return self.total


def answers(monkeypatch, capsys, totals, kind="cuda"):
    def ones(rows, columns, device):
        total = totals[device]
        if isinstance(total, str):
            raise RuntimeError(total)  # noqa: TRY004 - as PyTorch does
        return Ones(total)

    cuda = SimpleNamespace(device_count=lambda: sum(device.startswith("cuda") for device in totals))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.0.1+cu117", ones=ones, cuda=cuda))
    spec = importlib.util.spec_from_file_location("torch_compute", ROLES / "pytorch" / "files" / "compute.py")
    compute = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compute)
    compute.main(kind)
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("totals", "kind"), [({"cuda:0": 262144, "cuda:1": 262144}, "cuda"), ({"cpu": 262144}, "cpu")])
def test_every_device_computes(monkeypatch, capsys, totals, kind):
    answered = answers(monkeypatch, capsys, totals, kind)
    assert (answered["devices"], answered["faults"]) == (list(totals), [])


def test_a_card_that_errs_or_refuses_is_named(monkeypatch, capsys):
    totals = {"cuda:0": 262143, "cuda:1": "CUDA error: no kernel image\nmore", "cuda:2": 262144}
    answered = answers(monkeypatch, capsys, totals)
    assert answered["devices"] == ["cuda:2"]
    assert answered["faults"] == [
        "cuda:0: 64 x 64 ones squared sum up to 262143, not 262144",
        "cuda:1: CUDA error: no kernel image",
    ]


def test_without_cards_nothing_computes(monkeypatch, capsys):
    assert answers(monkeypatch, capsys, {})["devices"] == []
