"""Options of a synthesiser: when its speech ends, and whose place it takes."""

import pytest
from conftest import make_case
from tiny_models import SMALL

pytest.importorskip("torch", reason="needs torch")
transformers = pytest.importorskip("transformers", reason="needs transformers")

from speechmeter.core.stages import run_chain  # noqa: E402
from speechmeter.core.types import Batch, Spec  # noqa: E402
from speechmeter.subjects.transformers import TransformersSubject  # noqa: E402

TEXT = Spec(plugin="text", name="text", options={"vocabulary": 50})


def prepared(**options):
    spec = Spec(plugin="transformers", name="tts", source="speecht5", options={"vocoder": "random", **options})
    return TransformersSubject().prepare(make_case(subject=spec, workload=TEXT), "cpu")


def test_the_threshold_for_the_end_of_speech_reaches_the_model(monkeypatch):
    asked = []
    speak = transformers.SpeechT5ForTextToSpeech.generate_speech

    def generate_speech(self, *args, **options):
        asked.append(options.get("threshold"))
        return speak(self, *args, **options)

    monkeypatch.setattr(transformers.SpeechT5ForTextToSpeech, "generate_speech", generate_speech)
    for given in ({}, {"generate": {"threshold": 0.3}}):
        run_chain(prepared(config=SMALL["speecht5"], **given).stages, Batch(data=((5, 6, 7),), items=1, lengths=(3,)))
    assert asked == [None, 0.3]


def test_a_stand_in_says_whose_place_it_takes():
    notes = prepared(config=SMALL["speecht5"], stand_in_for={"path": "tts.pt", "data": "bin"}).notes
    assert "stand-in for checkpoint tts.pt, data bin: random weights" in notes
    assert not any(note.startswith("stand-in") for note in prepared(config=SMALL["speecht5"]).notes)
