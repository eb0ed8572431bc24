"""gpu-burn's output: the whole grammar, and nothing that passes for it."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rigctl.parse import gpu_burn

from .corpus import TRIES, each, files, read

HEAD = "Using compare file: compare.fatbin\nBurning for 20 seconds.\n" * 2 + (
    "GPU 0: NVIDIA GeForce RTX 3090 Ti (UUID: GPU-aaaaaaaa-0000-4000-8000-00000000a91f)\n"
    "GPU 1: NVIDIA GeForce RTX 3090 Ti (UUID: GPU-bbbbbbbb-0000-4000-8000-00000000b02e)\n"
)
START = "\r5.0%  proc'd: 0 (0 Gflop/s) - 81 (26800 Gflop/s)   errors: 0 - 0   temps: 41 C - 40 C "
ROW = "\r50.0%  proc'd: 405 (26900 Gflop/s) - 410 (26750 Gflop/s)   errors: 0 - 0   temps: 58 C - 55 C "
ERRORS = "\r60.0%  proc'd: 486 (26900 Gflop/s) - 490 (26750 Gflop/s)   errors: 0 - 3  (WARNING!)  temps: 58 C - -- "
SUMMARY = "\n\tSummary at:   Mon Nov 30 23:05:01 UTC 2026\n\n"
TAIL = (
    "\nKilling processes with SIGTERM (soft kill)\nFreed memory for dev 0\nUninitted cublas\nFreed memory for dev 1\n"
    "Uninitted cublas\ndone\n\nTested 2 GPUs:\n\tGPU 0: OK\n\tGPU 1: FAULTY\n"
)


def test_a_whole_log():
    log = gpu_burn.parse(HEAD + START + ROW + SUMMARY + ERRORS + ERRORS + SUMMARY + ERRORS + TAIL)
    assert log.unknown is None
    assert [card.uuid[-4:] for card in log.cards] == ["a91f", "b02e"]
    assert log.asked_seconds == 20
    assert log.errors == (0, 6), "counts restart at each summary, so they are added up"
    assert log.warned == (False, True)
    assert log.died == (False, False)
    assert log.worked == (True, True)
    assert log.tested == 2
    assert dict(log.verdicts) == {0: "OK", 1: "FAULTY"}
    assert log.rows[2].temps_c == (58.0, None)
    assert log.gflops(0, from_percent=50) == [26900.0] * 4
    assert log.gflops(0, from_percent=0, to_percent=10) == [], "a worker that has not begun has no rate"


def test_what_stands_on_a_rows_own_line_is_read_too():
    log = gpu_burn.parse(HEAD + ROW + "read[1] error 0\n" + ROW + "Couldn't init a GPU test: Error: no memory\n" + TAIL)
    assert log.unknown is None
    assert log.trouble == ("read[1] error 0", "Couldn't init a GPU test: Error: no memory")


def test_the_older_way_to_end():
    log = gpu_burn.parse(HEAD + ROW + "\nKilling processes.. Freed memory for dev 0\nUninitted cublas\ndone\n")
    assert log.unknown is None
    assert log.tested is None


def test_a_count_beside_died_is_garbage():
    died = (
        "\r60.0%  proc'd: 486 (26900 Gflop/s) - -1 (0 Gflop/s)   errors: 0 - -400000000  (DIED!)  temps: 58 C - 30 C "
    )
    log = gpu_burn.parse(HEAD + died)
    assert log.errors == (0, 0)
    assert log.died == (False, True)
    assert log.worked == (True, False)


def test_counts_that_wrapped_are_counts():
    log = gpu_burn.parse(HEAD + ERRORS.replace("- 3 ", "- -524288000 "))
    assert log.errors == (0, 524288000)


def test_a_row_that_was_being_written_is_cut_and_not_unknown():
    for length in range(2, len(ROW) - 14):
        log = gpu_burn.parse(HEAD + ROW + ROW[:length])
        assert log.unknown is None, ROW[:length]
        assert log.cut
        assert len(log.rows) == 1


def test_rows_of_another_number_of_workers_are_unknown():
    one = "\r50.0%  proc'd: 405 (26900 Gflop/s)   errors: 0   temps: 58 C "
    assert gpu_burn.parse(HEAD + ROW + one + "\n").unknown is not None
    assert gpu_burn.parse(HEAD + ROW.replace("errors: 0 - 0", "errors: 0") + "\n").unknown is not None


def test_the_first_unknown_line_is_named():
    log = gpu_burn.parse(HEAD + "What is this?\nAnd this?\n" + ROW + TAIL)
    assert log.unknown == "What is this?"
    assert dict(log.verdicts)[1] == "FAULTY", "what was understood besides still stands"


def test_a_row_that_a_message_has_swallowed_is_unknown():
    """Found by fuzzing: what stood behind a message on its line went unread, a dead worker too."""
    for swallowed in ("Error (gpu_bur: 0 - -1796043519  (DIED!)  temps: 57 C - 30 C", "Couldn't fork" + ROW.strip()):
        assert gpu_burn.parse(HEAD + ROW + "\n" + swallowed + TAIL).unknown == swallowed


def test_help_is_no_burn():
    log = gpu_burn.parse("GPU Burn\nUsage: gpu-burn [OPTIONS] [TIME]\n\n-d\tUse doubles\n-stts T\tSet a time-out\n")
    assert log.help_shown
    assert log.unknown is None


def test_trouble_is_kept_short():
    log = gpu_burn.parse("read[0] error 0\n" * 40_000)
    assert len(log.trouble) == 20


def test_newest_rates_for_the_live_table():
    rates = gpu_burn.last_gflops(HEAD + START + ROW + ROW[:30])
    assert rates == {
        "GPU-aaaaaaaa-0000-4000-8000-00000000a91f": 26900.0,
        "GPU-bbbbbbbb-0000-4000-8000-00000000b02e": 26750.0,
    }
    assert gpu_burn.last_gflops(HEAD) == {}
    assert gpu_burn.last_gflops("") == {}


PIECES = [HEAD, START, ROW, ERRORS, SUMMARY, TAIL, "\n", "\r", "Tested 2 GPUs:\n", "\tGPU 0: OK\n", "done", "x", "-1"]


@given(st.one_of(st.text(max_size=400), st.lists(st.sampled_from(PIECES), max_size=12).map("".join)))
@TRIES
def test_nothing_crashes_the_reader(text):
    log = gpu_burn.parse(text)
    gpu_burn.last_gflops(text)
    assert all(len(row.workers) == len(log.errors) == len(log.died) for row in log.rows)


@given(st.text(min_size=1, max_size=80).filter(lambda t: not re.fullmatch(r"[\s\d.,%]*", t)))
@TRIES
def test_garbage_is_no_burn(text):
    log = gpu_burn.parse(text)
    assert log.tested is None or text.strip().startswith("Tested")
    assert not log.rows


@given(st.integers(0, len(HEAD + ROW + TAIL)), st.sampled_from(["?", "é", "%", "9", "("]))
@TRIES
def test_one_wrong_character_never_adds_a_clean_row(at, wrong):
    text = HEAD + ROW + SUMMARY + ERRORS + TAIL
    log = gpu_burn.parse(text[:at] + wrong + text[at:])
    assert len(log.rows) <= 2
    assert log.unknown is not None or log.tested in (2, 29, 92, None) or log.cut


@each("gpu-burn", "rebuilt/gpu-burn")
def test_captures_are_understood(path):
    log = gpu_burn.parse(read(path))
    text = path.read_text(encoding="utf-8")
    # One rebuilt row has one count more than workers: it cannot have been printed so, and is not guessed at.
    assert log.unknown is None or "overflow" in path.name
    clean = log.tested is not None and all(log.worked) and log.rows and not any(log.errors) and not any(log.died)
    assert bool(clean and all(said == "OK" for _, said in log.verdicts)) is (
        "healthy" in path.name or "k80x2" in path.name
    )
    assert ("FAULTY" in text) is any(said == "FAULTY" for _, said in log.verdicts)


def test_the_total_of_a_faulty_capture_is_the_sum_over_its_summaries():
    for path in files("gpu-burn"):
        if "faulty" in path.name:
            counts = [int(n) for n in re.findall(r"errors: (\d+)", read(path))]
            assert gpu_burn.parse(read(path)).errors == (sum(counts),)
