"""The command beside a figure makes the very case that was measured."""

import shlex
from pathlib import Path

import pytest

from speechmeter.core.axes import Axes
from speechmeter.core.protocol import OtherProtocol
from speechmeter.core.types import Case, Spec
from speechmeter.plan.schema import LIVE_KEYS, Plan
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


EVERY_LIVE_KEY = {
    "turn_end": "client-vad:energy:0.1234567s", "silence": "1.5s", "quiet": 2, "answer_timeout": "20s",
    "phase": "aligned", "turns": 3, "duration": "60s", "warmup_turns": 0, "clients": 2, "arrivals": "gamma:0.3",
    "ramp": "2.5s", "prebuffer": "80ms", "interrupt": "0.75s",
    "heard_by": {"name": "ear, left", "load": "known:words", "swap_word": 4, "delay_s": 0.25},
}  # fmt: skip


def live_cases(**keys):
    return study_from_python({"models": ["known:live"], "pace": "fast", **keys}).cells.cases


@pytest.mark.parametrize("key", sorted(EVERY_LIVE_KEY))
def test_each_live_option_is_made_again(key):
    rate = {"rate": 0.5} if key in ("arrivals", "ramp") else {}
    (case,), (usual,) = live_cases(**rate, **{key: EVERY_LIVE_KEY[key]}), live_cases(**rate)
    assert case.id != usual.id
    assert_same_again([case])


def test_all_live_options_are_made_again_together():
    assert {*EVERY_LIVE_KEY, "slo"} == {*LIVE_KEYS}  # bounds are no part of a case
    assert_same_again(live_cases(rate=[0.5, 2.25], chunk=["20ms", 0.25], **EVERY_LIVE_KEY))


@pytest.mark.parametrize("text_pace", [None, 20, 12.5])
def test_a_spoken_text_is_made_again(text_pace, tmp_path):
    lines = tmp_path / "a, b.txt"
    lines.write_text("one\ntwo\n")
    keys = {"models": ["known-voice"], "text": {"lines": str(lines)}, "text_pace": [text_pace], "streams": [1, 3]}
    assert_same_again(live_cases(**keys))


def test_start_times_of_a_trace_are_made_again_without_its_file(tmp_path):
    trace = tmp_path / "trace.txt"
    trace.write_text("3\n3.1234567\n17\n")
    cases = live_cases(arrivals=f"trace:{trace}", ramp="1s")
    trace.unlink()
    assert cases[0].protocol.offsets_s == (0.0, 0.123457, 14.0)
    assert_same_again(cases)


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


@pytest.mark.parametrize("python", ["~/envs/a/bin/python", "/opt/my envs/b/bin/python3.12", "/opt/conda/env"])
@pytest.mark.parametrize(
    "model", [{"name": "log-mel", "load": "log-mel"}, {"name": "a=b", "load": "hubert"}, {"name": "x", "load": "cpc"}]
)
def test_a_model_of_another_interpreter_is_made_again_with_it(model, python):
    case = study_from_python({"models": [{**model, "interpreter": python}]}).cells.cases[0]
    words = shlex.split(command(case, 3, python))
    flag, value = words[2:4]
    made = from_models([value]) if flag == "--model" else from_set(value)
    assert [again.id for again in cases_of(command(case, 3, python))] == [case.id]
    assert made.value[0]["interpreter"] == python
