"""A model that decodes a growing window again: what is committed, and when a segment ends."""

import numpy as np
import pytest
from conftest import make_case

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Spec
from speechmeter.subjects.live.redecoding import Policy, RedecodeSubject, Redecoding, common_start, loudest

RATE = 16_000
POLICY = Policy(every_s=1.0, window_s=5.0, agree=2, pause_s=0.5)


def noise(seconds, level=0.1):
    return (level * np.random.default_rng(0).standard_normal(round(seconds * RATE))).astype(np.float32)


def silence(seconds):
    return np.zeros(round(seconds * RATE), np.float32)


def fed(engine, samples, chunk_s=0.1):
    size = round(chunk_s * RATE)
    return [heard for start in range(0, len(samples), size) for heard in engine.feed(samples[start : start + size])]


def scripted(*results):
    """A model whose n-th decoding gives the n-th result, and the seconds that it was given."""
    given = []

    def decode(samples):
        given.append(len(samples) / RATE)
        return results[min(len(given), len(results)) - 1]

    return decode, given


def test_the_whole_window_is_decoded_again_every_second():
    decode, given = scripted("a", "a b", "a b c")
    heard = fed(Redecoding(decode, POLICY), noise(3.0))
    assert given == pytest.approx([1.0, 2.0, 3.0])
    assert [(one.kind, one.text) for one in heard] == [("partial", "a"), ("partial", "a b"), ("partial", "a b c")]


def test_words_on_which_two_results_agree_stay_as_they_are():
    decode, _ = scripted("one two", "one too three", "won too three four")
    heard = fed(Redecoding(decode, POLICY), noise(3.0))
    # "one" was committed by the first two results, and the third cannot take it back
    assert [one.text for one in heard] == ["one two", "one too three", "one too three four"]


def test_later_agreement_on_other_words_changes_nothing_that_was_committed():
    decode, _ = scripted("a b", "a b c", "X b c d", "X b c d e")
    heard = fed(Redecoding(decode, POLICY), noise(4.0))
    assert [one.text for one in heard] == ["a b", "a b c", "a b c d", "a b c d e"]


def test_an_unchanged_text_is_not_said_again():
    decode, _ = scripted("same")
    assert [one.text for one in fed(Redecoding(decode, POLICY), noise(4.0))] == ["same"]


def test_a_pause_ends_the_segment_with_an_endpoint_and_a_final():
    decode, given = scripted("hello", "hello there")
    heard = fed(Redecoding(decode, POLICY), np.concatenate([noise(1.5), silence(1.0)]))
    assert [(one.kind, one.text, one.segment) for one in heard] == [
        ("partial", "hello", 0), ("endpoint", "", 0), ("final", "hello there", 0)
    ]  # fmt: skip
    assert heard[1].end_s == pytest.approx(2.0)
    assert given == pytest.approx([1.0, 2.0])


def test_silence_alone_is_never_decoded():
    decode, given = scripted("thank you")
    engine = Redecoding(decode, POLICY)
    assert fed(engine, silence(8.0)) == []
    assert [one.text for one in engine.finish()] == [""]
    assert given == []


def test_a_full_window_ends_the_segment_and_the_next_begins_behind_it():
    decode, given = scripted(*"abcdefgh")
    heard = fed(Redecoding(decode, POLICY), noise(7.0))
    finals = [one for one in heard if one.kind == "final"]
    assert [(one.segment, one.start_s, one.end_s) for one in finals] == [(0, 0.0, pytest.approx(5.0))]
    assert given == pytest.approx([1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0])
    assert heard[-1].segment == 1


def test_the_end_is_decoded_once_more_only_where_there_is_new_sound():
    decode, given = scripted("a", "a b")
    engine = Redecoding(decode, POLICY)
    fed(engine, noise(1.4))
    assert [(one.kind, one.text) for one in engine.finish()] == [("final", "a b")]
    assert given == pytest.approx([1.0, 1.4])


def test_words_agree_whatever_their_case_and_punctuation():
    assert common_start([["Hello,", "world"], ["hello", "word"]]) == ["hello"]
    assert common_start([["a"], []]) == []


def test_the_loudest_stretch_is_found_in_short_and_in_empty_sound():
    assert loudest(np.zeros(0, np.float32)) == 0.0
    assert loudest(np.full(5, 0.5, np.float32)) == pytest.approx(0.5)
    assert loudest(np.concatenate([silence(1), np.full(1600, 0.25, np.float32)])) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        ("", {}, "needs a model"),
        ("python:x.py:make", {}, "runs your own code"),
        ("transducer-loss:ours", {}, "does not take audio as input"),
        ("pocketsphinx", {"model": {"beem": 1}}, "unknown key 'beem'"),
        ("moonshine-voice", {"model": {"arch": "huge"}}, "arch takes one of"),
        ("vosk:/nowhere", {}, "no directory"),
    ],
)
def test_models_that_cannot_be_live_are_refused(source, options, says):
    spec = Spec(plugin="redecode", name="live", source=source, options=options)
    with pytest.raises(SubjectError, match=says):
        RedecodeSubject().check(make_case(subject=spec))
