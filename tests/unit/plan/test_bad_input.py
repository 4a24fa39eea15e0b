"""Every refusal is one line with the place, the reason and the way out."""

import tracemalloc
from pathlib import Path

import pytest

from speechmeter.core.errors import InputError
from speechmeter.plan.source import from_flag, from_set
from speechmeter.plan.study import study_from_file, study_from_flags, study_from_python

GOOD = "models: [log-mel]\nseconds: [1]\n"

CASES = {
    "unknown key": ("models: [log-mel]\nsecnds: [1]\n", ":2: ", "did you mean 'seconds'?"),
    "unknown key of a part": ("models: [log-mel]\nlimits:\n  time: 3\n", ":3: ", "did you mean 'time_s'?"),
    "unknown model option": ("models:\n  - {name: a, load: log-mel, bands: 3}\n", ":2: ", "unknown key 'bands'"),
    "wrong type": ("models: [log-mel]\nbatch: [four]\n", ":2: ", "whole number"),
    "wrong type of a number": ("models: [log-mel]\nrounds: many\n", ":2: ", "rounds takes `auto` or a whole number"),
    "no rounds": ("models: [log-mel]\nrounds: 0\n", ":2: ", "rounds takes `auto`"),
    "too few rounds": ("models: [log-mel]\nmin_rounds: 2\n", ":2: ", "at least 5"),
    "rounds upside down": ("models: [log-mel]\nmin_rounds: 9\nmax_rounds: 6\n", ":3: ", "raise max_rounds"),
    "no precision": ("models: [log-mel]\nprecision: much\n", ":2: ", "precision takes a fraction"),
    "negative seconds": (GOOD.replace("[1]", "[1, -2]"), ":2: ", "greater than 0"),
    "zero seconds": (GOOD.replace("[1]", "0"), ":2: ", "greater than 0"),
    "infinite seconds": (GOOD.replace("[1]", "[.inf]"), ":2: ", "finite"),
    "NaN seconds": (GOOD.replace("[1]", "[.nan]"), ":2: ", "finite"),
    "infinite limit": (GOOD + "limits: {time_s: .inf}\n", ":3: ", "finite"),
    "empty sweep": (GOOD.replace("[1]", "[]"), ":2: ", "empty list measures nothing"),
    "no models": ("models: []\n", ":1: ", "models is empty"),
    "no meters": (GOOD + "meters: []\n", ":3: ", "meters is empty; for example"),
    "no meters for offline cases": (
        "models: [known:live]\npace: [realtime, offline]\nmeters: []\n",
        ":3: ",
        "meters is empty; for example",
    ),
    "models missing": ("seconds: [1]\n", "", "models is missing"),
    "value twice": (GOOD.replace("[1]", "[1, 1]"), ":2: ", "twice"),
    "models misspelt": ("model: [log-mel]\n", ":1: ", "unknown key 'model'; did you mean 'models'?"),
    "a Python file without its plug-in": ("models: [mine.py:make]\n", ":1: ", "write python:mine.py:make"),
    "a Python file without plug-in and factory": (
        "models: [a/mine.py]\n",
        ":1: ",
        "write python:a/mine.py:FUNCTION, where FUNCTION returns the model",
    ),
    "an ONNX file without its plug-in": ("models: [a/m.onnx]\n", ":1: ", "write onnx:a/m.onnx"),
    "a hub id without its plug-in": ("models: [some/wav2vec2]\n", ":1: ", "write transformers:some/wav2vec2"),
    "model twice": ("models: [log-mel, log-mel]\n", ":1: ", "twice"),
    "key twice": (GOOD + "seconds: [2]\n", ":3: ", "twice"),
    "unknown model": ("models: [log-mle]\n", ":1: ", "did you mean 'log-mel'?"),
    "unknown meter": (GOOD + "meters: [latensy]\n", ":3: ", "did you mean 'latency'?"),
    "unknown workload": (GOOD + "workload: audoi\n", ":3: ", "did you mean 'audio'?"),
    "unknown dtype": (GOOD + "dtype: float8\n", ":3: ", "bfloat16"),
    "invalid YAML": ("models: [log-mel\nseconds: 1\n", ":2: ", "not valid YAML"),
    "tag that builds objects": ("models: !!python/object/apply:os.system ['touch pwned']\n", ":1: ", "tag"),
    "a list": ("- log-mel\n", "", "mapping"),
    "empty": ("", "", "mapping"),
    "self-containing alias": ("models: &a [*a]\n", ":1: ", "itself"),
    "repeats and schedule": (GOOD + "repeats: 3\nschedule: {active: 2}\n", ":3: ", "cannot be combined"),
    "seed too large": (GOOD + "seed: 4294967296\n", ":3: ", "less than"),
    "kind of a device that is none": (GOOD + "kind: {tpu: v5}\n", ":3: ", "for example `kind: A100`"),
    "kind that is no word": (GOOD + "kind: {cuda: 5}\n", ":3: ", "for example `kind: A100`"),
    "sound that is no switch": (GOOD + "save_speech: 5\n", ":3: ", "save_speech takes true or false"),
    "unknown key of a switch": (GOOD + "save_speech: {rat: 8000}\n", ":3: ", "did you mean 'rate'?"),
    "rate that no file has": (GOOD + "save_speech:\n  rate: 10\n", ":4: ", "save_speech.rate must be at least 1000"),
    "code in a plan": ("models:\n  - python:fakes.py:nothing\n", ":2: ", "add `trust`"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_plan(name, tmp_path):
    text, place, words = CASES[name]
    plan = tmp_path / "plan.yaml"
    plan.write_text(text)
    with pytest.raises(InputError) as caught:
        study_from_file(plan)
    message = str(caught.value)
    assert f"plan.yaml{place}" in message or (not place and words in message)
    assert words in message
    assert "\n" not in message
    assert caught.value.fix
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]


@pytest.mark.parametrize("make", [lambda p: p / "absent.yaml", lambda p: p, lambda p: _binary(p)])
def test_a_plan_that_is_no_text_file(make, tmp_path):
    with pytest.raises(InputError) as caught:
        study_from_file(make(tmp_path))
    assert str(tmp_path) in str(caught.value)


def _binary(folder: Path) -> Path:
    path = folder / "binary.yaml"
    path.write_bytes(b"models: \x00\xff\xfe")
    return path


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (lambda: from_flag("seconds", "1,-2"), "`seconds`: seconds must be greater than 0"),
        (lambda: from_flag("batch", "x"), "`batch`: batch takes a whole number"),
        (lambda: from_set("limits.time_s=-1"), "`limits.time_s`: limits.time_s must be greater than 0"),
        (lambda: from_set("nonsense"), "`set`: 'nonsense' is not key=value"),
        (lambda: from_set("rounds.x=1"), "`rounds.x`"),
        (lambda: from_set("threds=1"), "did you mean 'threads'?"),
    ],
)
def test_a_bad_flag_is_named(override, words):
    with pytest.raises(InputError, match="`") as caught:
        study_from_flags([from_flag("models", "log-mel"), override()])
    assert words in str(caught.value)


def test_python_arguments_are_named():
    with pytest.raises(InputError, match="`seconds`"):
        study_from_python({"models": "log-mel", "seconds": -1})


def test_code_named_by_a_flag_needs_no_trust():
    study = study_from_flags([from_flag("models", "python:fakes.py:nothing")])
    assert study.plan.models[0].name == "fakes:nothing"


def test_code_named_by_a_flag_is_not_looked_up_beside_the_plan(tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(GOOD)
    (tmp_path / "fakes.py").write_text("def nothing(): 'code that nobody named'")
    study = study_from_file(plan, [from_flag("models", "python:fakes.py:nothing")])
    assert study.plan.models[0].load == "python:fakes.py:nothing"


def test_a_plan_that_is_too_large_is_refused_before_it_is_held(tmp_path):
    with (tmp_path / "plan.yaml").open("wb") as file:
        file.truncate(64 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="too large for a plan"):
            study_from_file(tmp_path / "plan.yaml")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
