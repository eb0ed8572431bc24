"""A bad text that is spoilt on its way, in one place, never becomes a pass: parser and check together."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from rigctl.checks import burn, links
from rigctl.model.verdict import Verdict
from tests.checks import healthy as h

from .corpus import TRIES
from .test_every_parser import spoil

BAD_ROWS = [h.row(20.0), h.row(50.0, errors=("0 ", "7  (WARNING!)")), h.row(80.0, errors=("0 ", "9  (WARNING!)")),
            h.row(100.0, errors=("0 ", "12  (WARNING!)"))]  # fmt: skip
FAULTY = h.burn_log(BAD_ROWS, ("OK", "FAULTY"))
LOOSE = h.TOPO.replace("NV4", "NV3")


def chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - not for secrets


def burn_verdicts(log: str) -> dict[str, Verdict]:
    readings = h.readings(logs=h.with_logs(gpu_burn__log=log))
    return {v.subject: v.verdict for v in burn.oracle(h.spec(), readings, h.PROFILE)}


def link_verdicts(text: str) -> set[Verdict]:
    return {v.verdict for v in links.pairs(h.spec(), h.readings(), h.reply(text))}


def test_the_texts_are_bad_as_they_stand():
    assert burn_verdicts(FAULTY)[h.SLOT2] is Verdict.FAIL
    assert link_verdicts(LOOSE) == {Verdict.FAIL}
    assert link_verdicts(h.TOPO) == {Verdict.PASS}


@given(seed=st.integers(0, 2**32))
@TRIES
def test_a_spoilt_log_of_a_faulty_burn_is_no_pass(seed: int):
    verdicts = burn_verdicts(spoil(FAULTY, chance(seed)))
    assert {verdicts["rig"], verdicts.get(h.SLOT2, Verdict.ERROR)} != {Verdict.PASS}


@given(seed=st.integers(0, 2**32))
@TRIES
def test_a_spoilt_matrix_with_a_loose_bridge_is_no_pass(seed: int):
    assert Verdict.PASS not in link_verdicts(spoil(LOOSE, chance(seed)))
