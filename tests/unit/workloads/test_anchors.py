"""Where speech is: read from lists, found in sound, written again, and carried over to joined streams."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
import soundfile

from speechmeter.core.errors import InputError
from speechmeter.core.live import Word
from speechmeter.workloads import anchors
from speechmeter.workloads.anchors import UnalignedError, energy_span, forced_alignment, spoken_words, tools
from speechmeter.workloads.manifests import formats
from speechmeter.workloads.manifests.utterance import Refused, anchors_of
from speechmeter.workloads.selection import Choice, select

RATE = 16_000


def _tone(seconds: float, level: float = 0.3):
    return (level * np.sin(2 * np.pi * 300 * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)


def _sound(start_s: float, speech_s: float, end_s: float):
    return np.concatenate([np.zeros(round(start_s * RATE)), _tone(speech_s), np.zeros(round(end_s * RATE))])


def _list(tmp_path, rows):
    for index, row in enumerate(rows):
        file = tmp_path / f"{index}.wav"
        soundfile.write(file, row.pop("samples"), RATE)
        row["audio_filepath"] = file.name
    path = tmp_path / "list.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_energy_finds_the_tone_within_one_frame():
    start_s, end_s = energy_span(_sound(0.5, 1.0, 0.7))
    assert (start_s, end_s) == pytest.approx((0.5, 1.5), abs=0.0101)


@pytest.mark.parametrize("samples", [np.zeros(RATE), np.zeros(10), _tone(0.02)], ids=["silence", "tiny", "click"])
def test_energy_finds_nothing_in_silence_and_in_a_click(samples):
    assert energy_span(samples) is None


def test_an_offset_of_the_microphone_is_no_speech():
    start_s, _ = energy_span(_sound(0.5, 1.0, 0.5) + 0.2)
    assert start_s == pytest.approx(0.5, abs=0.0101)


@pytest.mark.parametrize(
    "words",
    [
        [["good", 0.1, 0.4], ["morning", 0.4, 0.9]],
        [{"word": "good", "start": 0.1, "end": 0.4}, {"text": "morning", "start": "0.4", "end": 0.9}],
    ],
)
def test_words_of_a_list_are_read_and_bound_the_speech(words):
    found = anchors_of({"words": words})
    assert found.words == (Word(text="good", start_s=0.1, end_s=0.4), Word(text="morning", start_s=0.4, end_s=0.9))
    assert (found.speech_start_s, found.speech_end_s, found.source) == (0.1, 0.9, "manifest")


def test_a_text_in_words_is_a_transcript():
    assert anchors_of({"words": "good morning"}).words == ()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"speech_start_s": 2, "speech_end_s": 1}, "must be after"),
        ({"speech_end_s": -1}, "not a number of seconds"),
        ({"words": [["a", 0.5, 0.2]]}, "before it starts"),
        ({"words": [["a", 1, 2], ["b", 0, 1]]}, "not in order"),
        ({"words": [["a", 1]]}, "not [text, start, end]"),
        ({"words": [["", 1, 2]]}, "text, start and end"),
    ],
)
def test_anchors_that_cannot_be_are_refused_with_their_line(tmp_path, fields, says):
    path = tmp_path / "list.jsonl"
    path.write_text(json.dumps({"audio_filepath": "a.wav", **fields}) + "\n")
    (item,) = formats.read(path)
    assert isinstance(item, Refused)
    assert says in item.reason


def test_found_anchors_are_written_read_back_and_kept_where_the_list_has_them(tmp_path):
    from speechmeter.api import datasets

    stated = {"speech_start_s": 0.2, "speech_end_s": 0.9}
    rows = [{"samples": _sound(0.5, 1.0, 0.5)}, {"samples": _sound(0.5, 1.0, 0.5), **stated}]
    rows.append({"samples": np.zeros(RATE)})
    source, output = _list(tmp_path, rows), tmp_path / "out.jsonl"
    use = datasets.anchor_tools(source, output, detector="energy", words="none")
    found = datasets.find_anchors(source, output, use)
    assert found.silent == (found.selection.items[2].utterance.id,)
    first, second, third = (item.utterance.anchors for item in select(Choice(manifest=output)).items)
    assert (first.speech_start_s, first.speech_end_s) == pytest.approx((0.5, 1.5), abs=0.0101)
    assert first.source.startswith("energy")
    assert (second.speech_start_s, second.speech_end_s, second.source) == (0.2, 0.9, "manifest")
    assert third.speech_end_s is None


def test_joined_streams_carry_texts_and_moments(tmp_path):
    from speechmeter.api import datasets

    word = {"words": [["beep", 0.5, 1.5]], "text": "beep"}
    source = _list(tmp_path, [{"samples": _sound(0.5, 1.0, 0.5), **word} for _ in range(3)])
    output = tmp_path / "long.jsonl"
    assert datasets.join_streams(source, output, length_s=4.5, pause_s=1.0) == [5.0, 2.0]
    long, rest = (item.utterance for item in select(Choice(manifest=output)).items)
    assert (long.text, rest.text) == ("beep beep", "beep")
    assert [(one.start_s, one.end_s) for one in long.anchors.words] == [(0.5, 1.5), (3.5, 4.5)]
    assert (long.anchors.speech_start_s, long.anchors.speech_end_s) == (0.5, 4.5)
    samples, rate = soundfile.read(long.file)
    assert rate == RATE
    assert np.abs(samples[round(3.6 * RATE) : round(4.4 * RATE)]).max() > 0.2
    assert not np.abs(samples[round(1.6 * RATE) : round(3.4 * RATE)]).any()


@pytest.mark.parametrize(("names", "key"), [(("loud", "none"), "detector"), (("energy", "mfa"), "words")])
def test_unknown_tools_are_refused(names, key):
    with pytest.raises(InputError) as refused:
        tools(*names)
    assert refused.value.key == key


def test_a_missing_tool_names_its_extra_and_the_way_without(monkeypatch):
    monkeypatch.setattr(anchors, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pocketsphinx is not installed") as refused:
        tools("energy", "pocketsphinx")
    assert "speechmeter[pocketsphinx]" in refused.value.fix
    assert "`words: none`" in refused.value.fix


def test_spoken_words_are_those_of_a_dictionary():
    assert spoken_words("“Don’t” — cold-hearted, O'Neill!") == ["don't", "cold", "hearted", "o'neill"]


@pytest.mark.skipif(find_spec("pocketsphinx") is None, reason="needs pocketsphinx")
def test_alignment_refuses_words_without_pronunciation_and_texts_without_words():
    with pytest.raises(UnalignedError, match="no pronunciation of xqzzt"):
        forced_alignment(_tone(1.0), "the xqzzt")
    with pytest.raises(UnalignedError, match="no words"):
        forced_alignment(_tone(1.0), "…")


@pytest.mark.skipif(find_spec("pocketsphinx") is None, reason="needs pocketsphinx")
def test_alignment_of_the_bundled_speech_is_in_order_and_inside_the_sound():
    from importlib.resources import files

    folder = files("speechmeter.workloads") / "assets"
    samples, rate = soundfile.read(str(folder / "harbour.flac"), dtype="float32")
    found = forced_alignment(samples, (folder / "harbour.txt").read_text())
    starts = [word.start_s for word in found]
    assert starts == sorted(starts)
    assert [word.text for word in found] == spoken_words((folder / "harbour.txt").read_text())
    assert starts[0] >= 0 and found[-1].end_s <= len(samples) / rate + 0.02
