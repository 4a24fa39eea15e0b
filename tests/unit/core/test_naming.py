"""What a model is called: by the name in front of it, or by its source."""

import pytest

from speechmeter.core.errors import PlanError
from speechmeter.core.plugins import default_name, joined_name, split_name


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


@pytest.mark.parametrize("text", ["=log-mel", "a=", "=", " =log-mel"])
def test_a_name_without_a_model_and_a_model_without_its_name_are_refused(text):
    with pytest.raises(PlanError, match=r"^`models`: '.*' is not NAME=MODEL; for example mine=python:"):
        split_name(text)


@pytest.mark.parametrize("name", ["", " a", "a:b", "a=b"])
def test_a_name_that_would_not_be_read_back_is_not_joined(name):
    assert joined_name(name, "log-mel") is None


def test_without_a_name_the_source_gives_one():
    assert default_name("python:dir/mine.py:make") == "mine:make"
