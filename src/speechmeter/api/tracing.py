"""Profiler traces: what changed between two, and several in one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from speechmeter.analysis.traces import trace_diff
from speechmeter.core.errors import InputError
from speechmeter.core.files import check_free, written_by_user
from speechmeter.core.traces import find_trace, find_traces, read_trace, write_trace
from speechmeter.report.profiles import diff_table
from speechmeter.report.tables import Table
from speechmeter.store.trace_merge import merged


def diff(first: Path, second: Path, *, min_effect: float, most: int, changed: str) -> Table:
    """A table of what changed per step from the first to the second; each a trace, or a run or folder with traces."""
    one, other = ([read_trace(file) for file in find_traces(path)] for path in (first, second))
    found = trace_diff(one, other, min_effect=min_effect)
    return diff_table(found, most=most, min_effect=f"{min_effect:.0%}", changed=changed)


def merge(traces: Sequence[Path], output: Path, *, keep_time: bool, force: bool) -> int:
    """Write several traces into one file; its size in bytes."""
    check_free(output, force=force, makes_folder=True)
    if not output.name.endswith(".gz"):
        raise InputError(f"{output.name} must be compressed", key="output", fix="use a name that ends in .json.gz")
    if len(traces) < 2:
        raise InputError("there is only one trace, so there is nothing to merge", fix="use another")
    paths = [find_trace(path) for path in traces]
    stems = [path.name.partition(".")[0] for path in paths]
    names = [stem if stems.count(stem) == 1 else f"{stem} {number}" for number, stem in enumerate(stems, 1)]
    together = merged({n: read_trace(p) for n, p in zip(names, paths, strict=True)}, keep_time=keep_time)
    with written_by_user(output):
        return write_trace(output, together)
