"""Trace files: what is read and refused, how slices nest, where a trace is found."""

import gzip
import json

import pytest

from speechmeter.core.errors import InputError
from speechmeter.core.traces import SUFFIX, Trace, find_trace, find_traces, nested, read_trace, write_trace


def slice_(name, start, length, tid=1, **args):
    return {"ph": "X", "name": name, "cat": "cpu_op", "pid": 1, "tid": tid, "ts": start, "dur": length, "args": args}


def test_own_time_is_the_duration_without_what_is_directly_inside():
    events = [slice_("inner", 2, 3), slice_("outer", 0, 10), slice_("innermost", 3, 1), slice_("other", 0, 5, tid=2)]
    found = {one.name: one for one in nested(events)}
    assert {name: one.own_us for name, one in found.items()} == {"outer": 7, "inner": 2, "innermost": 1, "other": 5}
    assert found["innermost"].parent is found["inner"]
    assert found["other"].parent is None


def test_a_slice_belongs_to_the_innermost_module_around_it():
    events = [slice_("net", 0, 10, module="net"), slice_("net.a", 1, 5, module="net.a"), slice_("aten::mm", 2, 1)]
    found = {one.name: one.module for one in nested([*events, slice_("aten::add", 20, 1)])}
    assert found == {"net": "net", "net.a": "net.a", "aten::mm": "net.a", "aten::add": None}


def test_what_is_written_can_be_read_back(tmp_path):
    trace = Trace(events=[slice_("a", 0, 1)], facts={"schemaVersion": 1})
    size = write_trace(tmp_path / f"a{SUFFIX}", trace)
    assert size == (tmp_path / f"a{SUFFIX}").stat().st_size
    again = read_trace(tmp_path / f"a{SUFFIX}")
    assert (list(again.events), dict(again.facts)) == (list(trace.events), dict(trace.facts))


def test_a_bare_list_of_events_is_a_trace_too(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([slice_("a", 0, 1)]))
    assert read_trace(tmp_path / "a.json").events[0]["name"] == "a"


@pytest.mark.parametrize(
    "content",
    [b"", b"no json", b'{"traceEvents": 3}', b'{"a": 1}', b"[1, 2]", b'[{"ph": "X", "name": "a"}]', b"3",
     gzip.compress(b'{"traceEvents": []}', mtime=0)[:12], b"\x1f\x8bbroken"],
)  # fmt: skip
def test_what_is_no_trace_is_refused_by_its_name(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.json"):
        read_trace(tmp_path / "a.json")


def test_a_folder_stands_for_its_one_trace(tmp_path):
    with pytest.raises(InputError, match="no trace in this folder"):
        find_trace(tmp_path)
    write_trace(tmp_path / "x" / "trace" / f"a{SUFFIX}", Trace(events=[]))
    (tmp_path / "x" / "plan.json").write_text("{}")
    assert find_trace(tmp_path).name == f"a{SUFFIX}"
    write_trace(tmp_path / "y" / "trace" / f"b{SUFFIX}", Trace(events=[]))
    with pytest.raises(InputError, match=rf"2 traces .*x/trace/a{SUFFIX}"):
        find_trace(tmp_path)


def test_a_folder_stands_for_all_traces_that_lie_side_by_side(tmp_path):
    names = [f"a{SUFFIX}", f"a-2{SUFFIX}"]
    for name in names:
        write_trace(tmp_path / "trace" / name, Trace(events=[]))
    assert {file.name for file in find_traces(tmp_path)} == set(names)
    assert find_traces(tmp_path / "trace" / names[0]) == [tmp_path / "trace" / names[0]]
    write_trace(tmp_path / "other" / names[0], Trace(events=[]))
    with pytest.raises(InputError, match="traces in 2 folders below this one; choose one: other, trace"):
        find_traces(tmp_path)


def test_a_name_without_gz_is_written_plain(tmp_path):
    write_trace(tmp_path / "a.pt.trace.json", Trace(events=[slice_("a", 0, 1)]))
    assert json.loads((tmp_path / "a.pt.trace.json").read_text())["traceEvents"][0]["name"] == "a"
    assert find_trace(tmp_path).name == "a.pt.trace.json"
