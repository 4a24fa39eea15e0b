"""The command beside a figure makes the very case that was measured."""

import shlex
from pathlib import Path

import pytest

from speechmeter.core.axes import Axes
from speechmeter.core.protocol import OtherProtocol
from speechmeter.core.types import Case, Spec
from speechmeter.plan.schema import Plan
from speechmeter.plan.source import Override, from_flag, from_models, from_set
from speechmeter.plan.study import study_from_file, study_from_flags, study_from_python, tour
from speechmeter.report.again import _LIVE, _STEADY, command

PLANS = Path(__file__).parents[3] / "plans"


def cases_of(line):
    """What `speechmeter run` would measure for a line, by way of the functions it uses for its flags."""
    words = shlex.split(line)
    assert words[:2] == ["speechmeter", "run"]
    flags = list(zip(words[2::2], words[3::2], strict=True))
    made = []
    for flag, value in flags:
        key = flag.removeprefix("--")
        if key == "set":
            made.append(from_set(value))
        elif key == "model":
            made.append(from_models([value]))
        elif key == "audio":
            made.append(Override(path=("audio",), value=value))
        elif key == "rounds":
            made.append(Override(path=("rounds",), value=int(value)))
        else:
            made.append(from_flag(key, value))
    return study_from_flags(made).cells.cases


def assert_same_again(cases):
    for case in cases:
        assert [again.id for again in cases_of(command(case, 3))] == [case.id]


def test_every_cell_of_the_tour_is_made_again():
    assert_same_again(tour().cells.cases)


@pytest.mark.parametrize("name", sorted(path.stem for path in PLANS.glob("*.yaml")))
def test_every_cell_of_a_shipped_plan_is_made_again(name):
    assert_same_again(study_from_file(PLANS / f"{name}.yaml").cells.cases)


@pytest.mark.parametrize(
    "keys",
    [
        {"schedule": {"wait": 1, "warmup": 2, "active": 3, "repeat": 2}},
        {"repeats": 4, "discard": 2, "seed": 7},
        {"samples": 20, "budget_s": 0.00001},
        {
            "models": ["known:live"],
            "pace": "fast",
            "chunk": "20ms",
            "streams": 2,
            "turn_end": "client-vad:energy:0.4s",
            "silence": "1s",
            "quiet": 2,
            "answer_timeout": "20s",
            "phase": "aligned",
            "turns": 3,
            "warmup_turns": 0,
            "meters": [],
        },
        {"models": ["known:live"], "pace": ["realtime"], "duration": "60s", "quality": {"normaliser": "english"}},
        {"threads": [1], "compile": [True], "boundary": "model", "seconds": [0.125]},
        {"models": [{"name": "it's; rm -rf $HOME, 中文", "load": "log-mel"}]},
        {"text": {"vocabulary": 100}, "models": ["transformers:marian"]},
        {"find": "max-batch", "batch": 8, "find_margin": "10%", "limits": {"memory_gib": 2}},
    ],
)
def test_protocols_axes_and_hostile_names_are_kept(keys):
    assert_same_again(study_from_python({"models": ["log-mel"], **keys}).cells.cases)


def test_a_plain_case_reads_like_what_a_user_types():
    case = study_from_python({"models": ["log-mel"], "seconds": 2, "threads": 2, "cores": 2}).cells.cases[0]
    assert command(case, 5) == (
        "speechmeter run --model log-mel --threads 2 --cores 2 --seconds 2 --batch 1 "
        "--meters latency,memory,parameters --rounds 5"
    )


def test_what_is_left_out_is_the_plans_own_default():
    assert {key: Plan.model_fields[key].default for key in _STEADY} == _STEADY
    assert {key: Plan.model_fields[key].default for key in _LIVE} == _LIVE


def test_a_case_that_was_never_measured_is_asked_for_once():
    case = Case(subject=Spec(plugin="a", name="a"), workload=Spec(plugin="audio", name="noise", source="noise"),
                axes=Axes(), meters=("latency",), protocol=OtherProtocol())  # fmt: skip
    assert command(case, 0).endswith("--rounds 1")


@pytest.mark.parametrize("key", [{"filter": ["encoder.*"]}, {"filter": ["a", "b"]}, {"power_log": "a,b.csv"}])
def test_what_a_plan_says_of_modules_and_meters_is_made_again(key):
    plan = {"models": "log-mel", "meters": ["latency", "modules", "energy"], **key}
    assert_same_again(study_from_python(plan).cells.cases)


def test_a_name_of_the_user_s_comes_before_its_model():
    case = study_from_python({"models": [{"name": "mine", "load": "log-mel"}], "seconds": 2}).cells.cases[0]
    assert command(case, 5).startswith("speechmeter run --model mine=log-mel --")
