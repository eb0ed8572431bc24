"""gpu-burn's oracle: every way in which a burn can look good and is not, whatever its exit status."""

from __future__ import annotations

import pytest

from rigctl.checks import burn
from rigctl.model.reading import KernelMessage
from rigctl.model.verdict import Verdict

from . import healthy as h

GOOD = [h.row(20.0), h.row(50.0), h.row(80.0), h.row(100.0)]


def judged(log=None, *, both=False, **changes):
    """Verdicts by subject, with `log` as the GPU burn's output (and that of the burn with the CPU)."""
    logs = h.logs() if log is None else h.with_logs(gpu_burn__log=log)
    if both and log is not None:
        logs["all_burn.log"] = log
    readings = h.readings(**{"logs": logs} | changes)
    return {v.subject: v for v in burn.oracle(h.spec(), readings, h.PROFILE)}


def log(*rows, verdicts=("OK", "OK"), **replace):
    text = h.burn_log(list(rows) or None, verdicts)
    for old, new in replace.items():
        text = text.replace(old, new)
    return text


def test_a_clean_burn_passes_for_the_rig_and_each_card():
    assert {subject: v.verdict for subject, v in judged().items()} == {
        "rig": Verdict.PASS, h.SLOT1: Verdict.PASS, h.SLOT2: Verdict.PASS,
    }  # fmt: skip


def test_errors_before_the_last_summary_count():
    rows = [h.row(20.0, errors=("0 ", "7  (WARNING!)")), h.row(21.0, errors=("0 ", "9  (WARNING!)"))]
    text = h.burn_log([*rows, *GOOD]).replace("\r50.0%", "\n\tSummary at:   Mon Nov 30 23:04:41 UTC 2026\n\n\r50.0%")
    card = judged(text)[h.SLOT2]
    assert card.verdict is Verdict.FAIL
    assert "9 compare errors" in card.reason


@pytest.mark.parametrize("step", ["gpu_burn", "all_burn"])
def test_errors_in_either_burn_fail_that_card_only(step):
    logs = h.logs() | {f"{step}.log": h.burn_log([*GOOD[:2], h.row(100.0, errors=("3  (WARNING!)", "0 "))])}
    found = judged(logs=logs)
    assert found[h.SLOT1].verdict is Verdict.FAIL
    assert found[h.SLOT2].verdict is Verdict.PASS
    assert step in found[h.SLOT1].reason


FAULTS = {
    "a count that wrapped below zero": [*GOOD, h.row(100.0, errors=("0 ", "-524288000  (WARNING!)"))],
    "a worker that died after it had worked": [
        *GOOD, h.row(100.0, done=(400, -1), rates=(26_900, 0), errors=("0 ", "1796043519  (DIED!)"))],
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_that_end_in_ok_fail_all_the_same(name):
    assert judged(log(*FAULTS[name]))[h.SLOT2].verdict is Verdict.FAIL


def test_a_worker_that_hangs_while_the_other_goes_on_fails_though_called_ok():
    def rows(moves):
        return [h.row(70.0 + 5 * n, done=(400 + 81 * n, 390 + (81 * n if moves else 0))) for n in range(7)]

    hung = judged(log(*GOOD[:2], *rows(moves=False)))
    assert (hung[h.SLOT1].verdict, hung[h.SLOT2].verdict) == (Verdict.PASS, Verdict.FAIL)
    assert "stood still" in hung[h.SLOT2].reason
    assert judged(log(*GOOD[:2], *rows(moves=True)))[h.SLOT2].verdict is Verdict.PASS


def test_a_slow_card_between_two_batches_has_not_stood_still():
    few = [h.row(70.0 + 10 * n, done=(400 + 81 * n, 390)) for n in range(4)]
    assert judged(log(*GOOD[:2], *few))[h.SLOT2].verdict is Verdict.PASS


def test_faulty_fails_even_with_clean_rows():
    found = judged(log(*GOOD, verdicts=("OK", "FAULTY")))
    assert (found[h.SLOT1].verdict, found[h.SLOT2].verdict) == (Verdict.PASS, Verdict.FAIL)


def test_a_failing_xid_of_the_card_fails_it():
    message = KernelMessage(t_wall_s=h.T0 + 20, message="NVRM: Xid (PCI:0000:02:00): 31, pid=4080, name=gpu_burn, MMU")
    found = judged(kernel=(message,))
    assert (found[h.SLOT1].verdict, found[h.SLOT2].verdict) == (Verdict.PASS, Verdict.FAIL)


GAPS = {
    "never worked": [h.row(p, done=(400, 0), rates=(26_900, 0)) for p in (50.0, 100.0)],
    "died at once": [
        h.row(0.0, done=(0, -1), rates=(0, 0), errors=("0 ", "0  (DIED!)")),
        h.row(100.0, done=(400, -1), rates=(26_900, 0), errors=("0 ", "-400000000  (DIED!)")),
    ],
}


@pytest.mark.parametrize("name", GAPS)
def test_a_card_that_was_not_tested_is_an_error_though_called_ok(name):
    found = judged(log(*GAPS[name]))
    assert found[h.SLOT2].verdict is Verdict.ERROR, found[h.SLOT2]
    assert found[h.SLOT1].verdict is Verdict.PASS


def test_no_row_at_all_but_ok_is_an_error():
    found = judged(h.burn_log([]))
    assert {found[h.SLOT1].verdict, found[h.SLOT2].verdict} == {Verdict.ERROR}


def test_a_card_that_gpu_burn_does_not_name_is_an_error():
    found = judged(h.burn_log(GOOD).replace(h.UUIDS[1], "GPU-somebody-else"))
    assert found[h.SLOT2].verdict is Verdict.ERROR


def test_fewer_cards_than_declared_fail_the_rig():
    one = h.burn_log([h.row(100.0, done=(400,), rates=(26_900,), errors=("0 ",))], ("OK",))
    found = judged(one)
    assert (found["rig"].verdict, found["rig"].found) == (Verdict.FAIL, "1 cards")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("GPU Burn\nUsage: gpu-burn [OPTIONS] [TIME]\n\n-m X\tUse X MB of memory.\n", "printed its help"),
        ("Burning for 30 seconds.\nNo CUDA devices\n", "gave up"),
        (h.burn_log([h.row(30.0)]).split("\n\tSummary")[0] + "\n\nNo clients are alive!  Aborting\n", "gave up"),
        (h.burn_log(GOOD).split("Tested")[0], "ends before its summary"),
        (h.burn_log(GOOD).split("\tSummary")[0][:-40], "ends before its summary"),
        (h.burn_log(GOOD).replace("errors: 0 - 0", "mistakes: 0 - 0"), "unknown form"),
    ],
)
def test_a_burn_that_did_not_come_to_its_end_is_an_error(text, word):
    found = judged(text)["rig"]
    assert found.verdict is Verdict.ERROR
    assert word in found.reason


@pytest.mark.parametrize("detail", [{"seconds": 12.0}, {"exit_status": 123}, {"seconds": None}])
def test_a_burn_that_ended_early_or_strangely_is_an_error_though_its_output_is_clean(detail):
    events = tuple(
        e.model_copy(update={"detail": e.detail | detail}) if e.event == "load_exited" and e.step == "gpu_burn" else e
        for e in h.events()
    )
    assert judged(events=events)["rig"].verdict is Verdict.ERROR


def test_an_unknown_line_does_not_hide_a_fault():
    text = log(h.row(100.0, errors=("0 ", "12  (WARNING!)"))) + "something new\n"
    found = judged(text)
    assert (found["rig"].verdict, found[h.SLOT2].verdict) == (Verdict.ERROR, Verdict.FAIL)
