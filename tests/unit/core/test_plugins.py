"""A model that is fed what it does not take is refused before anything runs; a model may be given a name."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import make_case

from speechmeter.core import plugins, protocols
from speechmeter.core.errors import PlanError, SubjectError
from speechmeter.core.plugins import default_name, joined_name, split_interpreter, split_name
from speechmeter.core.types import Spec
from speechmeter.launch.preflight import preflight

KINDS = {protocols.SOUND, protocols.FEATURES, protocols.TEXT, protocols.SHAPES}
MATCHES = [
    ("log-mel", "audio", True),
    ("log-mel", "data", True),
    ("log-mel", "shapes", False),
    ("moonshine-voice", "shapes", False),
    ("pocketsphinx", "text", False),
    ("speechbrain", "text", False),
    ("onnx", "features", False),
    ("transformers", "features", True),
    ("transformers", "text", True),
    ("transformers", "shapes", False),
    ("transducer-loss", "shapes", True),
    ("transducer-loss", "audio", False),
    ("python", "shapes", True),
]


def case_of(subject, workload, **options):
    return make_case(
        subject=Spec(plugin=subject, name=subject, source="", options=options),
        workload=Spec(plugin=workload, name=workload, source="noise"),
    )


@pytest.mark.parametrize(("subject", "workload", "fits"), MATCHES)
def test_what_is_fed_must_be_what_is_taken(subject, workload, fits):
    case = case_of(subject, workload)
    if fits:
        plugins.check_input(case)
        return
    with pytest.raises(SubjectError, match=rf"{subject} needs .* as input, but `{workload}:` provides"):
        plugins.check_input(case)


def test_a_list_of_features_is_known_as_such_before_anything_runs(tmp_path):
    items = np.empty(2, dtype=object)
    items[:] = [{"id": i, "net_input": {"src_tokens": np.ones((1, 9, 40), np.float32)}} for i in range(2)]
    np.save(tmp_path / "list.npy", items, allow_pickle=True)
    options = {"manifest": str(tmp_path / "list.npy")}
    case = replace(case_of("log-mel", "data"), workload=Spec(plugin="data", name="list", options=options))
    assert plugins.fed_by(case) == protocols.Fed(kinds=(protocols.FEATURES,), bands=40)
    with pytest.raises(SubjectError, match="log-mel needs sound as input, but `data:` provides features"):
        plugins.check_input(case)


def test_preflight_refuses_it_with_the_way_out():
    with pytest.raises(SubjectError, match="log-mel needs sound as input, but `shapes:` provides shapes; use `audio:`"):
        preflight([case_of("log-mel", "shapes")])


def test_the_first_stage_of_a_cascade_answers_for_all():
    stages = [{"name": "hear", "load": "log-mel"}, {"name": "again", "load": "log-mel"}]
    with pytest.raises(SubjectError, match="stage hear: hear needs sound"):
        plugins.subject("cascade").check(case_of("cascade", "text", stages=stages))
    plugins.subject("cascade").check(case_of("cascade", "audio", stages=stages))


def test_every_built_in_declares_known_words():
    declared = {name: set(plugins.subject(name).takes) for name in plugins.names(plugins.SUBJECTS)}
    assert {name: words - KINDS for name, words in declared.items() if words - KINDS} == {}
    assert set().union(*declared.values()) == KINDS


@pytest.mark.parametrize(
    ("text", "name", "load"),
    [
        ("log-mel", None, "log-mel"),
        ("python:mine.py:make", None, "python:mine.py:make"),
        ("a=log-mel", "a", "log-mel"),
        ("mine=python:mine.py:make", "mine", "python:mine.py:make"),
        ("small v2 = transformers:wav2vec2", "small v2", "transformers:wav2vec2"),
        ("python:dir=1/mine.py:make", None, "python:dir=1/mine.py:make"),
        ("onnx:model=int8.onnx", None, "onnx:model=int8.onnx"),
        ("int8=onnx:model=int8.onnx", "int8", "onnx:model=int8.onnx"),
        ("a=b=log-mel", "a", "b=log-mel"),
    ],
)
def test_a_name_comes_before_the_plug_in_and_an_equals_sign_of_the_source_is_none(text, name, load):
    assert split_name(text) == (name, load)
    if name is not None and name == name.strip():
        assert split_name(joined_name(name, load)) == (name, load)


@pytest.mark.parametrize(
    ("text", "load", "python"),
    [
        ("log-mel", "log-mel", None),
        ("vosk:model@envs/vosk/bin/python", "vosk:model", "envs/vosk/bin/python"),
        ("python:mine.py:make@python3.12", "python:mine.py:make", "python3.12"),
        ("python:a@b.py:make@/opt/pypy3", "python:a@b.py:make", "/opt/pypy3"),
        ("python:a@b.py:make", "python:a@b.py:make", None),
        ("onnx:model@v2.onnx", "onnx:model@v2.onnx", None),
        ("deepgram:wss://user@host/v1", "deepgram:wss://user@host/v1", None),
        ("@python", "@python", None),
    ],
)
def test_an_interpreter_comes_last_and_another_at_sign_is_part_of_the_source(text, load, python):
    assert split_interpreter(text) == (load, python)


@pytest.mark.parametrize("text", ["=log-mel", "a=", "=", " =log-mel"])
def test_a_name_without_a_model_and_a_model_without_its_name_are_refused(text):
    with pytest.raises(PlanError, match=r"^`models`: '.*' is not NAME=MODEL; for example mine=python:"):
        split_name(text)


@pytest.mark.parametrize("name", ["", " a", "a:b", "a=b"])
def test_a_name_that_would_not_be_read_back_is_not_joined(name):
    assert joined_name(name, "log-mel") is None


def test_without_a_name_the_source_gives_one():
    assert default_name("python:dir/mine.py:make") == "mine:make"
