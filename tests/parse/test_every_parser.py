"""What goes for every parser: its known forms are read, and no text crashes it or passes silently."""

from __future__ import annotations

import ast
import contextlib
import random
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rigctl import parse

from .corpus import TRIES
from .targets import FORMS, STRANGER, TARGETS, Refused, Target

each_target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
REFUSED = {"upsc/gone.txt", "dcmi/deactivated.txt", "shelly/off.json"}
"""Forms of readings that are none."""


def words_of_the_parsers() -> set[str]:
    """Every text that stands in the parsers' source: some are whole forms, such as `SecureBoot disabled`."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(parse.__file__).parent.glob("*.py")]
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {node.value.strip() for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


WORDS = words_of_the_parsers()


def test_every_folder_of_forms_has_its_parser():
    assert {path.name for path in FORMS.iterdir()} == {target.name for target in TARGETS}


@each_target
def test_known_forms_are_read(target: Target):
    for name, text in target.forms.items():
        if f"{target.name}/{name}" in REFUSED:
            with pytest.raises(Refused):
                target.check(text)
        else:
            target.check(text)


@each_target
def test_nothing_is_refused(target: Target):
    """An empty answer is none; only lists may be empty, where the program prints nothing for nothing."""
    for text in ("", "\n", "  \n\n"):
        with contextlib.suppress(Refused):
            assert target.says_nothing(target.check(text))


@pytest.mark.parametrize("target", [target for target in TARGETS if target.by_line], ids=lambda target: target.name)
def test_a_line_of_no_known_form_is_refused_wherever_it_stands(target: Target):
    unseen = []
    for name, text in target.forms.items():
        lines = text.splitlines(keepends=True)
        for at in range(len(lines) + 1):
            with contextlib.suppress(Refused):
                target.read("".join([*lines[:at], STRANGER + "\n", *lines[at:]]))
                unseen.append(f"{name}:{at + 1}")
    assert unseen == []


@each_target
def test_a_text_that_was_cut_is_refused_or_says_no_more_than_is_there(target: Target):
    for text in target.forms.values():
        for at in range(0, len(text), max(1, len(text) // 300)):
            with contextlib.suppress(Refused):
                target.check(text[:at])


@each_target
@given(text=st.text(max_size=300))
@TRIES
def test_garbage_is_refused(target: Target, text: str):
    # hypothesis also tries the words that it finds in the parsers, and those are not garbage.
    assume(text.strip() not in WORDS | {known.strip() for known in target.forms.values()})
    with contextlib.suppress(Refused):
        found = target.check(text)
        assert target.says_nothing(found), f"{text!r} is read as {found!r}"


@each_target
@given(seed=st.integers(0, 2**32), times=st.integers(1, 4))
@TRIES
def test_a_spoilt_text_is_refused_or_read_as_it_stands(target: Target, seed: int, times: int):
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    text = chance.choice(list(target.forms.values()))
    for _ in range(times):
        text = spoil(text, chance)
    with contextlib.suppress(Refused):
        target.check(text)


PIECES = (
    *("\n", "\t", " ", ":", ",", "|", "-", "{", "}", "[", "]", '"', "\x1b[4m", "\x00"),
    *("-1", "0", "9" * 25, "1e99", "nan", "inf", "1_0", "²", "٣", "é"),
    *("N/A", "ERR!", "[Unknown Error]", "null", "true"),
)
"""What breaks readers: other figures, other scripts' digits, words for nothing, the grammar's own signs."""


def spoil(text: str, chance: random.Random) -> str:
    """Change a text in one place, as cut, mixed and new outputs are changed."""
    at, piece, gone = chance.randrange(len(text) + 1), chance.choice(PIECES), chance.randrange(1, 9)
    lines = text.splitlines(keepends=True) or [""]
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    swapped = list(lines)
    swapped[one], swapped[other] = lines[other], lines[one]
    changed = (
        text[:at],
        text[:at] + piece + text[at:],
        text[:at] + text[at + gone :],
        text[:at] + piece + text[at + gone :],
        "".join(lines[:one] + lines[one + 1 :]),
        "".join(lines[: one + 1] + lines[one:]),
        "".join(swapped),
    )
    return chance.choice(changed)
