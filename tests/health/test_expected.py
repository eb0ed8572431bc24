"""What a rig is held to between acceptances."""

from __future__ import annotations

import pytest

from rigctl.errors import CommandFailed
from rigctl.health import expected_of
from rigctl.model.reading import Facts
from tests.report.build_run import UUIDS, facts, spec


def test_it_is_what_the_rig_has_now() -> None:
    expected = expected_of("rig1", spec(), Facts.model_validate(facts("rig1")), "gpu1")
    assert [card["uuid"] for card in expected["cards"]] == list(UUIDS["rig1"])
    assert [card["links"] for card in expected["cards"]] == [4, 4]
    assert expected["node"] == "gpu1"
    assert 79 in expected["failing_xids"]
    assert not {13, 31, 45} & set(expected["failing_xids"])


def test_a_broken_rig_does_not_become_its_own_measure() -> None:
    broken = facts("rig1")
    broken["gpus"] = broken["gpus"][:1]
    with pytest.raises(CommandFailed, match="rig1 is not as its spec says: 1"):
        expected_of("rig1", spec(), Facts.model_validate(broken), None)
