"""A protocol is written as it was read, whatever version wrote it, and differs from another field by field."""

import json

import pytest

from speechmeter.core.protocol import (
    LiveProtocol,
    OtherProtocol,
    RepeatsProtocol,
    ScheduleProtocol,
    SearchProtocol,
    SteadyProtocol,
    differences,
    protocol_from_json,
)
from speechmeter.core.quality import Quality

SHARED = {"clock": "perf_counter_ns", "sync": "both edges", "seed": 3}
STEADY = {**SHARED, "mode": "steady", "warmup": 30, "samples": 5, "min_samples": 2, "budget_s": 6.0}
REPEATS = {**SHARED, "mode": "repeats", "discard": 1, "samples": 2}
SCHEDULE = {**SHARED, "mode": "schedule", "wait": 10, "warmup": 10, "active": 20, "repeat": 2}
SEARCH = {**REPEATS, "readings": 1, "find": "max-batch", "margin": 0.05, "memory_gib": None}
LIVE = {
    **SHARED, "mode": "live", "turn_end": "oracle", "turn_delay_s": 0.2, "turn_vad": "", "silence_s": 2.0,
    "quiet_s": 3.0, "timeout_s": 30.0, "phase": "random", "turns": None, "duration_s": 60.0, "warmup_turns": 1,
}  # fmt: skip
SCORED = {"quality": {"normaliser": "english.v1", "scores": ["wer", "cer"]}}
IMPORTED = {"quality": {"import": "scores.csv", "sha256": "0123456789abcdef"}}
WRITTEN = [
    (STEADY, SteadyProtocol),
    (REPEATS, RepeatsProtocol),
    (SCHEDULE, ScheduleProtocol),
    (SEARCH, SearchProtocol),
    (LIVE, LiveProtocol),
    ({**REPEATS, **SCORED}, RepeatsProtocol),
    ({**STEADY, **IMPORTED}, SteadyProtocol),
    ({**SHARED, "power_log": "log.csv", "filter": ["encoder.*"], **REPEATS}, RepeatsProtocol),
    ({**STEADY, "of_a_later_version": {"a": [1]}}, SteadyProtocol),
    ({"mode": "repeats", "discard": 0, "samples": 1}, RepeatsProtocol),
    ({**SHARED, "mode": "live", "pace": 1.0}, OtherProtocol),
    ({"mode": "steady"}, OtherProtocol),
    ({"mode": "profile"}, OtherProtocol),
    ({}, OtherProtocol),
]


@pytest.mark.parametrize(("data", "kind"), WRITTEN)
def test_what_was_read_is_written_back(data, kind):
    protocol = protocol_from_json(data)
    assert type(protocol) is kind
    assert json.dumps(protocol.to_json(), sort_keys=True) == json.dumps(data, sort_keys=True)
    assert protocol_from_json(protocol.to_json()) == protocol


@pytest.mark.parametrize("data", [STEADY, REPEATS, SCHEDULE, SEARCH, {**REPEATS, **SCORED}])
def test_keys_keep_their_order(data):
    assert list(protocol_from_json(data).to_json()) == list(data)


def test_fields_are_typed():
    protocol = protocol_from_json({**REPEATS, **SCORED, "filter": ["a"]})
    assert (protocol.seed, protocol.samples, protocol.filter) == (3, 2, ("a",))
    assert protocol.quality == Quality(normaliser="english.v1", scores=("wer", "cer"))


def test_differences_name_each_field():
    base, new = protocol_from_json(STEADY), protocol_from_json({**STEADY, "samples": 9, "filter": ["a"]})
    assert differences(base, new) == [("samples", 5, 9), ("filter", None, ["a"])]
    assert differences(base, base) == []
    assert base != new
    assert ("seed", 3, None) in differences(base, protocol_from_json({"mode": "profile"}))
