"""Live cases in words: how input came, how many conversations there were, by which clock, and what figures mean."""

from dataclasses import replace

import live_records
import pytest
import report_runs
from live_records import PROTOCOL, delays, ratios

from speechmeter.core import metrics
from speechmeter.core.types import Measurement, Spec
from speechmeter.report.methods.paragraph import methods
from speechmeter.report.methods.study import settings

HEARD = {f"u{number}": [0.5 + number / 100] for number in range(12)}


def record(number=0, protocol=PROTOCOL, held=(), subject=None, warnings=(), **axes):
    case = live_records.case("asr", protocol, **axes)
    case = case if subject is None else replace(case, subject=subject)
    found = [delays(HEARD), ratios(dict.fromkeys(HEARD, (0.0, 4.0))), *held]
    return live_records.record(case, number, list(HEARD), *found, warnings=warnings)


def said(*records):
    return dict(methods(records, {}).sentences)


def voices(tmp_path):
    return said(*report_runs.speech(tmp_path))


def test_a_live_run_measured_something():
    assert said(record())["subjects"] == "We measured live recognition of one model (asr) with Speechmeter."


def test_feeding_conversations_and_rounds_are_those_of_the_case():
    found = said(*(record(number, chunk=chunk, streams=4) for number in range(2) for chunk in (0.02, 0.1)))
    assert found["conversations"] == (
        "Audio was fed in real time, in chunks of 20.0 ms or 100 ms, with 2 s of silence after each utterance; the "
        "input ended 300 ms after the true end of speech (oracle). Conversations were held in 4 streams at the same "
        "time, which started at random moments. A round had 12 conversations about 12 distinct utterances, after a "
        "warm-up with 1 other. An answer was awaited for 30 s after the audio."
    )
    assert found["rounds"].startswith("Each case was measured in 2 rounds")
    assert "batch" not in found["input"]


@pytest.mark.parametrize(
    ("protocol", "axes", "words"),
    [
        ({"turn_end": "client-vad", "turn_vad": "energy", "turn_delay_s": 0.5}, {},
         "the client ended the input after 500 ms without speech (detector: energy)"),
        ({"turn_end": "system"}, {}, "the system decided when a turn ended"),
        ({"arrivals": "gamma:0.5", "ramp_s": 10.0}, {"rate": 2.5},
         "Conversations began at 2.5 per second (gamma:0.5 arrivals); those of the first 10 s were not measured."),
        ({"arrivals": "trace", "offsets_s": (0.0, 1.0)}, {}, "Conversations began at recorded moments."),
        ({"phase": "aligned"}, {"streams": 2}, "which started together"),
        ({"clients": 4}, {"streams": 8}, "4 client processes held the conversations together."),
        ({"warmup_turns": 0}, {}, "distinct utterances, without warm-up."),
        ({}, {"pace": "fast"}, "Audio was fed as fast as possible"),
    ],
)  # fmt: skip
def test_every_way_to_hold_conversations_is_described(protocol, axes, words):
    assert words in said(record(protocol=replace(PROTOCOL, **protocol), **axes))["conversations"]


def test_a_warm_up_that_did_not_take_place_is_not_claimed():
    found = said(record(warnings=("no warm-up: there is only one utterance",)))["conversations"]
    assert "without warm-up" in found


def test_the_clock_and_the_lateness_of_the_client_are_stated():
    late = Measurement.of(metrics.CLIENT_SLIP_P99, [0.004])
    found = said(record(held=[late]))["moments"]
    assert found.startswith("Moments are those of one monotonic clock of the client. A position in the audio is due")
    assert found.endswith("The client sent audio at most 4.00 ms late (99th percentile of a round).")
    note = Measurement.of(metrics.ITEMS, [1.0], notes={"notes": ["simulated on a virtual clock: no real time passed"]})
    virtual = said(record(held=[note, late]))["moments"]
    assert virtual.startswith("Moments are those of a virtual clock") and "late" not in virtual


def test_only_figures_that_the_run_has_are_defined():
    found = said(record())["live figures"]
    assert "Final delay: time from the true end of speech until the text is final." in found
    assert "Live WER" in found and "Word lag" not in found and "Sound is audible" not in found
    assert "with 95 % intervals by resampling over utterances. " in found
    assert "utterances and rounds" in said(*(record(number) for number in range(5)))["live figures"]


def test_speech_out_is_described_with_its_playback_and_its_onset(tmp_path):
    found = voices(tmp_path)
    assert found["subjects"].startswith("We measured live speech synthesis of 2 models (smooth and stutters)")
    assert "Texts were sent at once. Conversations followed one another in one stream." in found["conversations"]
    assert "Playback was simulated; it began when 100 ms of sound had come." in found["conversations"]
    assert "ear heard the sound (round trip)." in found["conversations"]
    assert "count from when the text, or its first token, was due" in found["moments"]
    assert "First sound: time from when the text was due to the first audible sample" in found["live figures"]
    assert "the first 30 ms on end are above -60 dBFS and above 40 dB below the loudest 10 ms" in found["live figures"]


def test_a_server_is_not_said_to_run_on_this_machine():
    server = Spec(plugin="openai-speech", name="voice", source="http://127.0.0.1:1/v1")
    one = record(subject=server)
    assert "voice (openai-speech) was a server" in said(one)["conversations"]
    assert settings([[one]]) == ""
    assert settings([[one], [record()]]).startswith("Models ran on the CPU")
