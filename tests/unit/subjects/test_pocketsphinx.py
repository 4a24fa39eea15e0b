"""The adapter's own rules without the package, then the real decoder on real and synthetic speech."""

from pathlib import Path

import numpy as np
import pytest
from conftest import make_case
from live_talk import AXES, LIVE, heard_live
from words import share_heard, words

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch, Spec
from speechmeter.subjects.pocketsphinx import PocketsphinxSubject, heard
from speechmeter.workloads.audio import read_audio, read_sample

DEBIAN = Path("/usr/share/pocketsphinx/test/data/librivox")


def case_with(source="", **options):
    return make_case(subject=Spec(plugin="pocketsphinx", name="sphinx", source=source, options=options))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (case_with("en"), "nothing can follow pocketsphinx, but pocketsphinx:en was given; write only pocketsphinx"),
        (case_with(lw="high"), "`lw`: lw takes a number greater than 0, such as 6.5, not 'high'"),
        (case_with(lw=True), "`lw`: lw takes a number greater than 0, such as 6.5, not True"),
        (case_with(beam=2), "`beam`: beam takes a number between 0 and 1, such as 1e-48, not 2"),
        (case_with(beam=[1]), "`beam`: beam takes a number between 0 and 1, such as 1e-48, not [1]"),
    ],
)
def test_wrong_input_is_one_line(case, message):
    with pytest.raises(SubjectError) as caught:
        PocketsphinxSubject().check(case)
    assert str(caught.value) == message


def test_a_beam_may_be_written_as_yaml_reads_it():
    PocketsphinxSubject().check(case_with(beam="1e-48", lw=9))


def test_what_it_cannot_do_is_refused():
    subject = PocketsphinxSubject()
    assert subject.unavailable(make_case(threads=2)) is None
    assert "bfloat16" in subject.unavailable(make_case(dtype="bfloat16"))


def recognise(*waves, **options):
    pytest.importorskip("pocketsphinx", reason="needs pocketsphinx")
    longest = max(map(len, waves))
    data = np.stack([np.pad(wave, (0, longest - len(wave))) for wave in waves])
    (stage,) = PocketsphinxSubject().prepare(case_with(**options), "cpu").stages
    return stage.fn(Batch(data=data, items=len(waves), lengths=tuple(map(len, waves))))


def test_the_first_sentence_of_the_sample_is_heard_to_its_length():
    wave = read_sample()[0]
    _, text = recognise(wave[: 6 * 16_000], wave[: 3 * 16_000])
    assert share_heard("the harbour was quiet when the first came in", text) >= 0.7
    assert "passengers" not in words(text)


def test_live_it_gives_partials_and_each_conversation_starts_anew():
    pytest.importorskip("pocketsphinx", reason="needs pocketsphinx")
    spec = Spec(plugin="pocketsphinx", name="sphinx")
    prepared = PocketsphinxSubject().prepare(make_case(subject=spec, protocol=LIVE, **AXES), "cpu")
    wave = read_sample()[0][: 3 * 16_000]
    first, second = heard_live(prepared, wave), heard_live(prepared, wave)
    prepared.close()
    assert [event.kind for event in first if event.kind != "partial"] == ["final"]
    assert len(first) > 3
    assert share_heard("the harbour was quiet when the first came in", first[-1].text) >= 0.7
    assert [event.text for event in second] == [event.text for event in first]


def test_nothing_is_carried_over_from_the_recording_before():
    sphinx = pytest.importorskip("pocketsphinx", reason="needs pocketsphinx")
    decoder = sphinx.Decoder(loglevel="ERROR")
    wave = read_sample()[0]
    scores = []
    for recording in (wave[:24_000], wave[48_000:72_000], wave[:24_000]):
        heard(decoder, recording)
        scores.append(decoder.hyp().score)
    assert scores[0] == scores[2] != scores[1]


def test_silence_and_a_single_sample_have_a_text_each():
    texts = recognise(np.zeros(8000, np.float32), np.zeros(1, np.float32))
    assert [type(text) for text in texts] == [str, str]
    assert texts[1] == ""


def test_a_narrow_beam_hears_something_else():
    wave = read_sample()[0][: 3 * 16_000]
    assert recognise(wave, beam="1e-15") != recognise(wave)


@pytest.mark.skipif(not DEBIAN.is_dir(), reason="needs Debian's pocketsphinx-testdata")
def test_recorded_speech_with_a_transcript():
    name = "sense_and_sensibility_01_austen_64kb-0930"
    lines = (DEBIAN / "transcription").read_text().splitlines()
    (spoken,) = (line.split("</s>")[0].removeprefix("<s>") for line in lines if line.endswith(f"({name})"))
    (text,) = recognise(read_audio(DEBIAN / f"{name}.wav"))
    assert share_heard(spoken, text) >= 0.7
