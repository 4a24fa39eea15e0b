"""Which of two versions of a package is measured, and what of a user is spoken to live."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import make_case
from live_talk import AXES, LIVE, heard_live

from speechmeter.core.types import VARIANT, Batch, Spec
from speechmeter.subjects.python import PythonSubject, load_factory


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A working folder with the package `ours_v`, another version of which is installed, and a module beside it."""
    for place, version in (("checkout", "new"), ("installed", "old")):
        package = tmp_path / place / "ours_v"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"def make():\n    return {version!r}\n")
    (tmp_path / "checkout/speed_v.py").write_text("from ours_v import make\n")
    monkeypatch.chdir(tmp_path / "checkout")
    monkeypatch.setattr(sys, "path", ["", *sys.path, str(tmp_path / "installed")])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


@pytest.mark.parametrize("source", ["speed_v.py:make", "speed_v:make", "ours_v:make"])
@pytest.mark.parametrize(("variant", "version"), [("this", "new"), ("baseline", "old"), (None, "new")])
def test_the_other_interpreter_measures_what_it_has_installed(checkout, source, variant, version):
    axes = {} if variant is None else {VARIANT: variant}
    case = make_case(subject=Spec(plugin="python", name="x", source=source), **axes)
    assert load_factory(case)() == version


LIVE_FILE = """
from speechmeter.core.live import Live

def said(chunks):
    total = 0
    for chunk in chunks:
        total += len(chunk)
        yield str(total)

def generator():
    return said

def conversation():
    return lambda clock: "a conversation"

def whole():
    return Live(converse=lambda clock: "a conversation")

def offline():
    return lambda samples: samples
"""


def live_case(tmp_path, factory):
    (tmp_path / "spoken.py").write_text(LIVE_FILE)
    spec = Spec(plugin="python", name="mine", source=f"{tmp_path}/spoken.py:{factory}")
    return make_case(subject=spec, protocol=LIVE, **AXES)


def test_a_generator_is_spoken_to(tmp_path):
    prepared = PythonSubject().prepare(live_case(tmp_path, "generator"), "cpu")
    heard = heard_live(prepared, np.zeros(4_000, np.float32))
    assert [(event.kind, event.text) for event in heard] == [
        ("partial", "1600"), ("partial", "3200"), ("partial", "4000"), ("final", "4000")
    ]  # fmt: skip


def test_a_live_generator_is_fed_whole_recordings_offline(tmp_path):
    case = replace(make_case(), subject=live_case(tmp_path, "generator").subject)
    sound = np.zeros((2, 4_000), np.float32)
    batch = Batch(data=sound, items=2, lengths=(4_000, 1_000), audio_s=0.3125, padded_s=0.5)
    (stage,) = PythonSubject().prepare(case, "cpu").stages
    assert stage.fn(batch) == ["4000", "1000"]


@pytest.mark.parametrize("factory", ["conversation", "whole"])
def test_a_conversation_of_ones_own_is_taken_as_it_is(tmp_path, factory):
    prepared = PythonSubject().prepare(live_case(tmp_path, factory), "cpu")
    assert prepared.live.converse(None) == "a conversation"


def test_a_model_of_whole_inputs_is_not_live_and_the_message_says_what_is(tmp_path):
    with pytest.raises(TypeError, match="cannot be measured live; return a generator function"):
        PythonSubject().prepare(live_case(tmp_path, "offline"), "cpu")
