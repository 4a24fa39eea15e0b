"""Merging traces: nothing lost, nothing mixed up, the rules kept."""

from trace_rules import breaches

from speechmeter.core.traces import Trace
from speechmeter.store.trace_merge import merged


def made(start, base_ns):
    events = [
        {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "X", "name": "outer", "cat": "cpu_op", "pid": 7, "tid": 1, "ts": start, "dur": 10},
        {"ph": "X", "name": "span", "cat": "Trace", "pid": "Spans", "tid": "all", "ts": start, "dur": 10},
        {"ph": "s", "name": "flow", "cat": "fwdbwd", "id": 1, "pid": 7, "tid": 1, "ts": start},
        {"ph": "f", "name": "flow", "cat": "fwdbwd", "id": 1, "pid": 7, "tid": 1, "ts": start, "bp": "e"},
    ]
    return Trace(events=events, facts={"baseTimeNanoseconds": base_ns})


def test_traces_of_the_same_process_stay_apart():
    found = merged({"a": made(5, 0), "b": made(6, 0)})
    assert breaches(found.events) == []
    slices = [event for event in found.events if event["ph"] == "X"]
    assert len(slices) == 4
    assert len({event["pid"] for event in slices}) == 4
    names = {event["args"]["name"] for event in found.events if event["name"] == "process_name"}
    assert names == {"a: python", "b: python", "a: Spans", "b: Spans"}
    assert {event["id"] for event in found.events if event["ph"] == "s"} == {"a:1", "b:1"}


def test_each_begins_at_zero_unless_its_time_is_kept():
    traces = {"a": made(5, 0), "b": made(6, 1_000_000)}
    assert {e["ts"] for e in merged(traces).events if e["ph"] == "X"} == {0.0}
    kept = merged(traces, keep_time=True).events
    assert {e["ts"] for e in kept if e["ph"] == "X"} == {0.0, 1001.0}
