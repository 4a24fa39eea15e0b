"""Exchanges and their conditions become plain data and come back."""

import json

from speechmeter.core.live import Anchors, Conditions, Event, Exchange, Send, Word

EXCHANGE = Exchange(
    utterance="a/1",
    reference="good morning",
    anchors=Anchors(speech_start_s=0.2, speech_end_s=1.4, words=(Word(text="good", start_s=0.2, end_s=0.6),)),
    audio_s=1.5,
    silence_s=1.0,
    sends=(Send(due_s=0.1, sent_s=0.101, done_s=0.102, from_s=0.0, to_s=0.1),),
    finish_s=2.5,
    finished_s=2.5001,
    events=(Event(kind="partial", moment_s=0.9, text="good", end_s=0.8), Event(kind="final", moment_s=-0.1, segment=1)),
    ended_s=2.7,
    timeout_s=30.0,
)


def test_an_exchange_comes_back_from_its_line():
    assert Exchange.from_json(json.loads(json.dumps(EXCHANGE.to_json()))) == EXCHANGE


def test_conditions_come_back_and_leave_out_keys_of_newer_versions():
    conditions = Conditions(pace="realtime", chunk_s=0.1, turn_end="oracle", quiet_s=3.0, fixed_cadence=True)
    assert Conditions.from_json({**conditions.to_json(), "newer": 1}) == conditions
