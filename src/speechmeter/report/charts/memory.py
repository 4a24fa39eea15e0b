"""Memory through one step: allocated and reserved over time, and what was held at the peak."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.memory_timeline import FILE, MemoryTimeline, read_timeline
from speechmeter.report.charts.figure import Figure, Rows, Unit, caveats_of, drawn, six, tooltips, unit_of
from speechmeter.report.charts.marks import dots
from speechmeter.report.numbers import number
from speechmeter.report.sources import Source
from speechmeter.store.artifacts import artifact

_HEIGHT = 240
_MOST_HELD = 12
_ALLOCATED, _RESERVED = "allocated", "reserved"
_OUTSIDE = "outside of modules"


def figures(source: Source) -> Iterator[Figure]:
    """Two figures for each case with a timeline: the line, and the largest holders at its peak."""
    for key, label in source.labels.items():
        timeline = _read(source, key)
        if timeline is None or not timeline.time_s:
            continue
        unit = unit_of(metrics.MEMORY_CPU_PEAK, [*timeline.allocated_bytes, *timeline.reserved_bytes], "memory")
        caveats = caveats_of(source.cases[key], sampled=False)
        yield replace(_line(label, timeline, unit), caveats=caveats)
        if timeline.held:
            yield replace(_held(label, timeline), caveats=caveats)


def _read(source: Source, key: str) -> MemoryTimeline | None:
    if source.artifacts is None:
        return None
    path = artifact(source.artifacts, source.cases[key][0], FILE)
    if path is None:
        return None
    try:
        return read_timeline(path)
    except InputError:  # a broken artifact does not take the records with it
        return None


def _line(label: str, timeline: MemoryTimeline, unit: Unit) -> Figure:
    series = {_ALLOCATED: timeline.allocated_bytes, _RESERVED: timeline.reserved_bytes}
    rows: Rows = [
        {"time": six(time), "kind": kind, "value": six(size / unit.factor), "text": number(size, "bytes")}
        for kind, sizes in series.items()
        for time, size in zip(timeline.time_s, sizes, strict=False)
    ]
    grown = "" if timeline.start_bytes else " above the start"
    peak = f"{number(timeline.peak_bytes, 'bytes')}{grown}, {number(timeline.peak_s, 's')} into the step"
    return Figure(
        title=f"Memory peaks at {peak}. {label}: memory over the step, {timeline.device}",
        caption="One step, measured with a profiler.",
        sampled=False,
        spec=drawn(_chart(rows, unit), rows, _HEIGHT),
        columns=(("time", "time [s]"), ("kind", "memory"), ("text", "size")),
    )


def _chart(rows: Rows, unit: Unit) -> Any:
    import altair as alt

    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    legend = {"legend": None} if len(kinds) == 1 else {}
    time = unit_of(metrics.LATENCY, [row["time"] for row in rows], "time in the step").axis([], grid=False)
    colour = alt.Color("kind:N", title=None, sort=kinds, scale=alt.Scale(domain=kinds), **legend)
    base = alt.Chart().encode(
        x=alt.X("time:Q", axis=time, scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", axis=unit.axis([]), stack=None),
        color=colour,
        tooltip=tooltips({"kind": "memory", "text": "size"}),
    )
    return alt.layer(
        base.mark_area(interpolate="step-after", opacity=0.2, line=False),
        base.mark_line(interpolate="step-after", strokeWidth=1.5),
    )


def _held(label: str, timeline: MemoryTimeline) -> Figure:
    held = timeline.held[:_MOST_HELD]
    unit = unit_of(metrics.MEMORY_CPU_PEAK, [one.bytes for one in held], "held at the peak")
    most = f"{held[0].operator} in {_end(held[0].module)} holds {number(held[0].bytes, 'bytes')}"
    rows: Rows = [
        {
            "label": f"{one.operator} · {_end(one.module)}",
            "module": one.module or _OUTSIDE,
            "value": six(one.bytes / unit.factor),
            "text": number(one.bytes, "bytes"),
            "count": one.count,
        }
        for one in held
    ]
    return Figure(
        title=f"{most}. {label}: what is in memory at the peak",
        caption="Memory allocated in the step and still held at its peak, by operator and module, largest first.",
        sampled=False,
        spec=dots(rows, unit),
        columns=(("label", "operator"), ("module", "module"), ("count", "allocations"), ("text", "size")),
    )


def _end(module: str) -> str:
    """The last parts of a path, which are enough to know the module; the table has the whole path."""
    return ".".join(module.split(".")[-2:]) if module else _OUTSIDE
