"""Live cases of a plan: levels as axes, how conversations are held as the protocol, and what is refused."""

from pathlib import Path

import pytest
import yaml

from speechmeter.core.errors import PlanError, SubjectError
from speechmeter.core.protocol import LiveProtocol, SteadyProtocol
from speechmeter.plan.study import study_from_file, study_from_python

PLAN = {"models": ["known:live"], "audio": "sample", "seconds": 3}


def cases(**keys):
    return study_from_python({**PLAN, **keys}).cells.cases


def test_levels_are_axes_and_durations_have_units():
    found = cases(pace="realtime", chunk=["20ms", "100ms"], streams=[1, 2])
    assert [(c.axes.pace, c.axes.chunk_s, c.axes.streams) for c in found] == [
        ("realtime", 0.02, 1), ("realtime", 0.02, 2), ("realtime", 0.1, 1), ("realtime", 0.1, 2)
    ]  # fmt: skip
    assert len({c.id for c in found}) == 4
    assert found[1].label == "live · cpu · 3 s × 1 · realtime · 20 ms chunks · 2 streams"


def test_the_protocol_says_how_conversations_are_held():
    (case,) = cases(
        pace="realtime", turn_end="oracle:200ms", silence="1s", quiet=2, answer_timeout="10s", phase="aligned",
        turns=5, duration="1min", warmup_turns=2, seed=3,
    )  # fmt: skip
    assert case.live == LiveProtocol(
        seed=3, turn_end="oracle", turn_delay_s=0.2, turn_vad="", silence_s=1.0, quiet_s=2.0, timeout_s=10.0,
        phase="aligned", turns=5, duration_s=60.0, warmup_turns=2,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text, expected",
    [
        ("system", ("system", "", 0.0)),
        ("oracle", ("oracle", "", 0.0)),
        ("client-vad:energy", ("client-vad", "energy", 0.5)),
        ("client-vad:energy:300ms", ("client-vad", "energy", 0.3)),
    ],
)
def test_who_ends_a_turn(text, expected):
    protocol = cases(pace="realtime", turn_end=text)[0].live
    assert (protocol.turn_end, protocol.turn_vad, protocol.turn_delay_s) == expected


def test_a_case_is_live_only_where_the_plan_says_so():
    (case,) = cases()
    assert case.live is None
    assert not {"pace", "chunk", "streams"} & set(case.axes)
    assert isinstance(case.protocol, SteadyProtocol)


def test_offline_is_the_same_system_fed_whole():
    offline, live = study_from_python({**PLAN, "models": ["log-mel"], "pace": ["realtime", "offline"]}).cells.cases
    (alone,) = study_from_python({**PLAN, "models": ["log-mel"]}).cells.cases
    assert offline.id == alone.id
    assert live.live is not None


def test_live_cases_have_the_meters_that_can_watch():
    study = study_from_python({**PLAN, "pace": "realtime", "meters": ["latency", "memory", "parameters"]})
    assert study.cells.cases[0].meters == ("memory",)
    assert study.notes == ("latency, parameters: not measured live, because these meters call the model",)
    assert study_from_python({**PLAN, "pace": "realtime"}).notes == ()


def test_one_model_of_a_plan_may_be_live_with_axes_of_its_own():
    own = {"name": "heard", "load": "known:live", "axes": {"pace": "realtime", "seconds": 4, "batch": 1}}
    keys = {"models": ["log-mel", own], "audio": "sample", "seconds": [2, 10], "batch": [1, 4], "silence": "1s",
            "triangle": True}  # fmt: skip
    study = study_from_python(keys)
    *offline, live = study.cells.cases
    assert all(case.live is None and "pace" not in case.axes for case in offline)
    assert {case.subject.name for case in offline} == {"log-mel"}
    assert (live.subject.options, live.axes.seconds, live.axes.streams, live.live.silence_s) == ({}, 4.0, 1, 1.0)
    assert live.meters == ("memory",)
    stored = study_from_python(yaml.safe_load(study.plan_text()))
    assert [case.id for case in stored.cells.cases] == [case.id for case in study.cells.cases]
    with pytest.raises(PlanError, match="heard: unknown axis 'pase'; did you mean 'pace'"):
        study_from_python({"models": [{**own, "axes": {"pase": "realtime"}}]})
    with pytest.raises(PlanError, match="pace"):
        study_from_python({**keys, "models": [{**own, "axes": {"pace": "slow"}}]})
    with pytest.raises(PlanError, match="`silence` applies to live cases only"):
        study_from_python({**keys, "models": ["log-mel"]})


def test_the_stored_plan_gives_the_same_cases(tmp_path):
    for keys in ({}, {"pace": ["realtime", "offline"], "chunk": "20ms", "turn_end": "oracle:200ms", "silence": "1s"}):
        study = study_from_python({**PLAN, **keys})
        path = tmp_path / "plan.yaml"
        path.write_text(study.plan_text())
        again = study_from_file(path, trust=True)
        assert [case.id for case in again.cells.cases] == [case.id for case in study.cells.cases]
        assert ("turn_end" in path.read_text()) is bool(keys)


@pytest.mark.parametrize(
    "keys, reason",
    [
        ({"silence": "1s"}, "`silence` applies to live cases only"),
        ({"pace": "walking"}, "pace takes one of realtime, fast, offline"),
        ({"pace": "realtime", "chunk": "20 miles"}, "chunk takes a number"),
        ({"pace": "realtime", "chunk": 0}, "chunk must be greater than 0"),
        ({"pace": "realtime", "streams": 0}, "streams must be at least 1"),
        ({"pace": "realtime", "silence": "-1s"}, "silence takes a number"),
        ({"pace": "realtime", "turn_end": "never"}, "turn_end does not accept 'never'"),
        ({"pace": "realtime", "turn_end": "oracle:soon"}, "turn_end does not accept"),
        ({"pace": "realtime", "turn_end": "system:1s"}, "turn_end does not accept"),
        ({"pace": "realtime", "turn_end": "client-vad:ears"}, "turn_end does not accept"),
        ({"pace": "realtime", "phase": "full"}, "phase"),
        ({"pace": "realtime", "answer_timeout": "1s"}, "answer_timeout 1 s is shorter than the silence of 2 s"),
        ({"pace": "realtime", "repeats": 3}, "`repeats` counts calls"),
        ({"pace": ["realtime", "offline"], "find": "max-batch"}, "`find: max-batch` needs a model that is called"),
    ],
)
def test_what_makes_no_sense_is_refused(keys, reason):
    with pytest.raises(PlanError, match=reason):
        study_from_python({**PLAN, **keys})


def test_the_recogniser_that_hears_has_axes_of_its_own():
    plan = {"models": ["known-voice"], "pace": "fast", "heard_by": {"load": "faster-whisper:tiny.en", "beam": 5}}
    assert study_from_python(plan).cells.cases[0].live.heard_by["beam"] == 5


def test_axes_of_the_recogniser_that_hears_are_not_dropped_unseen():
    plan = {
        "models": ["known-voice"],
        "pace": "fast",
        "heard_by": {"load": "faster-whisper:tiny.en", "axes": {"beam": 5}},
    }
    with pytest.raises(PlanError, match="has no key `axes`"):
        study_from_python(plan)


def test_a_recogniser_in_python_is_looked_for_beside_the_plan_and_needs_trust(tmp_path, monkeypatch):
    (tmp_path / "ear.py").write_text("def make(): ...\n")
    (tmp_path / "plan.yaml").write_text("models: [known-voice]\npace: fast\nheard_by: python:ear.py:make\n")
    monkeypatch.chdir("/")
    with pytest.raises(SubjectError, match="runs code that the plan names"):
        study_from_file(tmp_path / "plan.yaml")
    (case,) = study_from_file(tmp_path / "plan.yaml", trust=True).cells.cases
    load = case.live.heard_by["load"].removeprefix("python:").removesuffix(":make")
    assert (Path("/") / load).resolve() == (tmp_path / "ear.py").resolve()
