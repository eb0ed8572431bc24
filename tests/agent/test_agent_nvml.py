"""The agent's NVML code against a library with NVML's binary interface, built as a driver branch has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pynvml
import pytest

import rigctl
from rigctl.agent import nvml
from rigctl.agent.facts import library_on_disk
from rigctl.fleet.bundle import build_bundle
from rigctl.model.reading import Facts, GpuSample, Sample

SOURCE = Path(rigctl.__file__).parent / "sim" / "machine" / "nvml"
UUIDS = ("GPU-11111111-2222-3333-4444-55555555aaaa", "GPU-11111111-2222-3333-4444-55555555bbbb")


def state(**changed: Any) -> str:
    """Two cards with four links; NVML's index 0 is the card in the higher PCI slot."""
    lines: dict[str, Any] = {"gpu.count": 2, "cpu.threads": 24, "sim.stale_after_s": 0}
    for index, bus in enumerate(("00000000:21:00.0", "00000000:01:00.0")):
        other = ("00000000:01:00.0", "00000000:21:00.0")[index]
        card: dict[str, Any] = {
            "uuid": UUIDS[1 - index],
            "pci_bus_id": bus,
            "name": "NVIDIA GeForce RTX 3090 Ti",
            "temp_c": 41 + index,
            "power_mw": 27500,
            "throttle": 1,
            "compute_capability": "8.6",
            "links": 4,
        }
        card |= {f"link.{link}.active": 1 for link in range(4)}
        card |= {f"link.{link}.remote_bus_id": other for link in range(4)}
        card |= {f"link.{link}.mb_per_s": 14062 for link in range(4)}
        lines |= {f"gpu.{index}.{key}": value for key, value in card.items()}
    lines |= {key.replace("__", "."): value for key, value in changed.items()}
    return "".join(f"{key} {value}\n" for key, value in lines.items())


@pytest.fixture(scope="module", params=["515", "535"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    if shutil.which("make") is None or shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp(f"nvml{request.param}")
    version = f"{request.param}.105.01"
    command = ["make", "-s", "-C", str(SOURCE), f"BRANCH={request.param}", f"VERSION={version}", f"OUT={folder}"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (folder / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{version}")
    (folder / "bundle.pyz").write_bytes(build_bundle().data)
    return folder, version


def ask(
    library: tuple[Path, str], tmp_path: Path, command: str, text: str, loaded: str | None = None
) -> dict[str, Any]:
    folder, version = library
    (tmp_path / "state").write_text(text)
    module = tmp_path / "sys/module/nvidia"
    module.mkdir(parents=True, exist_ok=True)
    (module / "version").write_text((loaded or version) + "\n")
    done = subprocess.run(
        [sys.executable, "-I", str(folder / "bundle.pyz"), *command.split()],
        env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(folder), "RIGSIM_RUN": str(tmp_path)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_facts_in_pci_order_with_links(library: tuple[Path, str], tmp_path: Path) -> None:
    facts = Facts.model_validate(ask(library, tmp_path, "facts", state()))
    assert facts.driver.nvml_error is None
    assert facts.driver.cuda_driver in {"11.7", "12.2"}
    assert [(card.slot, card.uuid, card.index) for card in facts.gpus] == [(1, UUIDS[0], 1), (2, UUIDS[1], 0)]
    first = facts.gpus[0]
    assert first.name == "NVIDIA GeForce RTX 3090 Ti"
    assert [link.active for link in first.links] == [True] * 4
    assert {link.speed_gb_per_s for link in first.links} == {14.062}
    assert {link.remote_pci_bus_id for link in first.links} == {"00000000:21:00.0"}
    assert first.compute_capability == "8.6"
    assert facts.errors == ()


def test_each_pair_says_whether_it_reaches_the_other(library: tuple[Path, str], tmp_path: Path) -> None:
    told = ask(library, tmp_path, "facts", state())
    assert told["pairs"] == [{"slots": [1, 2], "read": "OK", "write": "OK", "missing": ""}]
    refused = ask(library, tmp_path, "facts", state(p2p__disabled=1))["pairs"][0]
    assert (refused["read"], refused["write"]) == ("DR", "DR")
    assert told["probes"][0]["exit_status"] == 0
    assert [place["uuid"] for place in told["places"]] == list(UUIDS)


def test_a_card_with_a_fault_is_still_listed_and_the_fault_is_told(library: tuple[Path, str], tmp_path: Path) -> None:
    facts = Facts.model_validate(ask(library, tmp_path, "facts", state(gpu__1__compute_capability="broken")))
    assert [card.slot for card in facts.gpus] == [1, 2]
    assert facts.gpus[0].compute_capability is None
    assert facts.gpus[0].missing["compute_capability"] == "Unknown Error"
    assert len(facts.errors) == 1
    assert UUIDS[0] in facts.errors[0]


def test_a_link_that_is_down_is_seen(library: tuple[Path, str], tmp_path: Path) -> None:
    facts = Facts.model_validate(ask(library, tmp_path, "facts", state(gpu__1__link__2__active=0)))
    assert [link.active for link in facts.gpus[0].links] == [True, True, False, True]
    assert facts.gpus[0].links[2].speed_gb_per_s is None


def test_a_card_without_links_has_none_and_says_why(library: tuple[Path, str], tmp_path: Path) -> None:
    facts = Facts.model_validate(ask(library, tmp_path, "facts", state(gpu__0__links=0, gpu__1__links=0)))
    assert facts.gpus[0].links == ()
    assert "links" in facts.gpus[0].missing


def test_a_sample_of_each_card(library: tuple[Path, str], tmp_path: Path) -> None:
    answer = ask(library, tmp_path, "probe", state())
    cards = [GpuSample.model_validate(card) for card in answer["sample"]["gpus"]]
    assert [card.error for card in cards] == [None, None]
    assert [(card.slot, card.temp_c) for card in cards] == [(1, 42), (2, 41)]
    assert cards[0].power_w == pytest.approx(27.5, abs=0.5)
    assert cards[0].links_active == (True,) * 4
    assert cards[0].throttle is not None


def test_as_many_samples_at_rest_as_are_asked_for(library: tuple[Path, str], tmp_path: Path) -> None:
    answer = ask(library, tmp_path, "probe --rest-seconds 1 --sample-hz 5", state())
    samples = [Sample.model_validate(sample) for sample in answer["samples"]]
    assert [sample.seq for sample in samples] == [0, 1, 2, 3, 4]
    assert answer["sample"] == answer["samples"][-1]
    assert {sample.step for sample in samples} == {"idle"}
    assert samples[-1].t_mono_s - samples[0].t_mono_s > 0.7
    assert len(ask(library, tmp_path, "probe", state())["samples"]) == 1


def test_a_driver_that_does_not_match_its_library_is_told_in_nvmls_words(
    library: tuple[Path, str], tmp_path: Path
) -> None:
    facts = Facts.model_validate(ask(library, tmp_path, "facts", state(), loaded="535.309.01"))
    assert facts.driver.nvml_error == "Driver/library version mismatch"
    assert facts.gpus == ()


class Call:
    """NVML calls of one card by hand: a value, or the code of an error."""

    def __init__(self, answer: Any, code: int | None = None) -> None:
        self.answer, self.code = answer, code

    def __call__(self, *_args: Any) -> Any:
        if self.code is not None:
            raise pynvml.NVMLError(self.code)
        return self.answer


def test_what_a_card_does_not_expose_is_missing_and_not_zero() -> None:
    asker = nvml.Asker("handle")
    for code in (3, 13, 25):
        assert asker.ask("fan_pct", Call(None, code)) is None
    assert asker.missing["fan_pct"]

    def insists(_handle: str) -> None:
        raise pynvml.NVMLLibraryMismatchError("Unversioned function called")

    assert asker.ask("processes", insists) is None
    assert "Unversioned" in asker.missing["processes"]


def test_a_fault_of_a_card_is_its_error_and_not_a_missing_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlDeviceGetTemperature", Call(None, pynvml.NVML_ERROR_GPU_IS_LOST))
    sample = nvml.sample_card(nvml.Card("handle", 0, 2, UUIDS[1], "00000000:21:00.0", 94))
    assert sample == {"uuid": UUIDS[1], "slot": 2, "error": "GPU is lost"}


@pytest.mark.parametrize(("said", "limit"), [(94, 94.0), (0, None), (-1, None)])
def test_a_limit_that_is_none_is_missing(said: int, limit: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlDeviceGetTemperatureThreshold", Call(said))
    asker = nvml.Asker("handle")
    assert nvml.threshold(asker, "slowdown_temp_c", 1) == limit
    assert ("slowdown_temp_c" in asker.missing) is (limit is None)


def field(value: int, code: int = 0) -> Any:
    answer = type("Field", (), {"nvmlReturn": code, "value": type("Value", (), {"uiVal": value})()})()
    return Call([answer])


def test_memory_temperature_margin_and_tachometer_where_a_card_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlDeviceGetFieldValues", field(71))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMarginTemperature", Call(22))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetFanSpeedRPM", Call(1830))
    absent: set[str] = set()
    found = nvml._some_cards_only(nvml.Asker("handle"), absent)
    assert found == {"memory_temp_c": 71.0, "margin_c": 22, "fan_rpm": 1830}
    assert absent == set()


def test_what_a_card_does_not_have_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def none(name: str) -> Any:
        def call(*_args: Any) -> None:
            asked.append(name)
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

        return call

    monkeypatch.setattr(pynvml, "nvmlDeviceGetFieldValues", field(0, pynvml.NVML_ERROR_NOT_SUPPORTED))
    for name in ("nvmlDeviceGetMarginTemperature", "nvmlDeviceGetFanSpeedRPM"):
        monkeypatch.setattr(pynvml, name, none(name))
    absent: set[str] = set()
    for _ in range(3):
        found = nvml._some_cards_only(nvml.Asker("handle"), absent)
        assert set(found.values()) == {None}
    assert asked == ["nvmlDeviceGetMarginTemperature", "nvmlDeviceGetFanSpeedRPM"]


def test_throttle_reasons_under_their_newer_name(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Call(None, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksThrottleReasons", missing)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", Call(0x44))
    asker = nvml.Asker("handle")
    assert nvml._throttle(asker) == 0x44
    assert asker.missing == {}


def test_compute_processes_where_the_driver_has_the_older_call_only(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Call(None, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    process = type("Process", (), {"pid": 4242})()
    monkeypatch.setattr(pynvml, "nvmlDeviceGetComputeRunningProcesses_v3", missing)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetComputeRunningProcesses_v2", Call([process]))
    monkeypatch.setattr(pynvml, "nvmlSystemGetProcessName", Call(b"gpu_burn"))
    cards = (nvml.Card("handle", 0, 1, UUIDS[0], "00000000:01:00.0", None),)
    assert nvml.compute_processes(cards) == ["4242 gpu_burn on slot1"]


def test_the_library_on_disk_is_where_the_link_leads(tmp_path: Path) -> None:
    target = tmp_path / "libnvidia-ml.so.535.309.01"
    target.touch()
    link = tmp_path / "libnvidia-ml.so.1"
    link.symlink_to(target)
    cache = f"12 libs found\n\tlibnvidia-ml.so.1 (libc6,x86-64) => {link}\n\tlibm.so.6 (libc6) => /lib/libm.so.6\n"
    assert library_on_disk(cache) == "535.309.01"
    assert library_on_disk("0 libs found\n") is None
