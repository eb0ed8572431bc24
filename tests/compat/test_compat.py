"""`rigctl compat`, and what `rigctl provision` refuses by the same tables before any SSH."""

import json
from types import SimpleNamespace

import pytest

from rigctl import compat
from rigctl.cli.app import main
from rigctl.compat import Asked, look_up
from rigctl.errors import UsageError
from tests.fleet.rigs import rig as make_rig


def fitting(partners):
    return [one.name for one in partners if one.fits]


def test_the_newest_pytorch_that_runs_on_515():
    answer = look_up(Asked(driver="515", python="3.10"))
    assert (answer.choice, answer.choice_why) == ("2.0.1+cu117", "native")
    assert fitting(answer.toolkits)[-2:] == ["11.7", "11.8"]
    assert fitting(answer.torch)[-1] == "2.7.1+cu118"
    why = {one.name: one.why for one in answer.toolkits}
    assert "no PTX" in why["11.8"]
    assert why["12.2"].startswith("needs driver 525.60.13 or newer")


def test_which_drivers_run_a_toolkit():
    answer = look_up(Asked(cuda="12.2"))
    assert fitting(answer.drivers)[0] == "525"
    assert {one.name for one in answer.toolkits} == {"12.2"}
    assert fitting(look_up(Asked(cuda="13.0")).drivers)[0] == "580"


def test_which_drivers_run_a_pytorch():
    assert fitting(look_up(Asked(torch="2.9.1+cu130")).drivers)[0] == "580"
    assert fitting(look_up(Asked(torch="2.9.1")).drivers)[0] == "525"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked(driver="515", cuda="12.2"), "CUDA 12.2 does not run on driver 515: it needs 525.60.13"),
        (Asked(driver="515", torch="2.8.0"), "PyTorch 2.8.0 does not run on driver 515: it needs 525.60.13"),
        (Asked(torch="1.13.1", python="3.12"), "not published for Python 3.12"),
        (Asked(torch="2.0.1+cu121"), "There is no build cu121 of PyTorch 2.0.1"),
        (Asked(driver="525.53", cuda="12.0"), "needs 525.60.13"),
    ],
)
def test_what_does_not_go_together_is_said(asked, said):
    assert said in " ".join(look_up(asked).refusals)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked(driver="516"), 'There is no driver "516"; the nearest are 515 and 520'),
        (Asked(cuda="12.7"), "the nearest are 12.6 and 12.8"),
        (Asked(torch="2.0.5"), "the nearest are 2.0.1 and 2.1.0"),
        (Asked(driver="new"), "--driver new is not a version"),
    ],
)
def test_a_version_that_does_not_exist_is_a_usage_error_with_the_nearest(asked, said):
    with pytest.raises(UsageError) as caught:
        look_up(asked)
    assert said in caught.value.message


def test_every_row_names_its_source():
    answer = look_up(Asked())
    assert all(one.source for one in (*answer.drivers, *answer.toolkits, *answer.torch))
    assert len(answer.toolkits) > 15


def test_the_command(capsys):
    assert main(["compat", "--driver", "515", "--python", "3.10"]) == 0
    assert "newest PyTorch: 2.0.1+cu117 (native)" in capsys.readouterr().out
    assert main(["compat", "--driver", "515", "--cuda", "12.2", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["refusals"]
    assert main(["compat", "--cuda", "12.7"]) == 2


def fleet(**software):
    rig = make_rig("rig1")
    return [
        SimpleNamespace(
            name="rig1", spec=rig.spec.model_copy(update={"software": rig.spec.software.model_copy(update=software)})
        )
    ]


@pytest.mark.parametrize(
    ("software", "said"),
    [
        ({"cuda_version": "12.2"}, "rig1: CUDA 12.2 does not run on driver 515"),
        ({"driver_branch": "516"}, 'There is no driver branch "516"; the nearest are 515 and 520'),
        ({"cuda_version": "11.9"}, "the nearest are 11.8 and 12.0"),
        ({"torch_version": "2.8.0"}, "needs driver 525.60.13 or newer"),
    ],
)
def test_wishes_that_do_not_go_together_are_refused_before_ssh(software, said):
    with pytest.raises(UsageError) as caught:
        compat.refuse_wishes(fleet(**software))
    assert said in caught.value.message


@pytest.mark.parametrize(
    "software",
    [
        {},
        {"cuda_version": "12.2", "cuda_allow_unrunnable": True},
        {"torch_version": "2.13.0", "torch_build": "cpu"},
        {"torch_build": "distribution"},
        {"driver_branch": "990"},
    ],
)
def test_others_pass(software):
    compat.refuse_wishes(fleet(**software))
