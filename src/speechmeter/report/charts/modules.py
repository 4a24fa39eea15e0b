"""Shares of modules as an icicle: a block is as wide as its share of the call; what runs inside it is drawn below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.leading import lead
from speechmeter.analysis.module_tree import Line, tree
from speechmeter.core import metrics
from speechmeter.core.scope import DIRECTIONS, EVERYTHING, Scope
from speechmeter.core.types import Record
from speechmeter.report.charts.figure import Figure, Rows, caveats_of, drawn, sentence, shortened, six, tooltips
from speechmeter.report.charts.findings import headline, named
from speechmeter.report.charts.letters import wide_px
from speechmeter.report.charts.style import TINT_LINE, TINTS
from speechmeter.report.numbers import figure
from speechmeter.report.sources import Source
from speechmeter.report.tables import measured

_CALL = Scope.parse(EVERYTHING)
_ROW_HEIGHT = 26
_LEAST_SHARE = 0.3
"""Per cent of the call: a narrower block is not drawn."""
_HALF_PERCENT = 50.0
_EDGES_PX = 4
_IF_IT_FITS = "scale('x', datum.end) - scale('x', datum.start) > datum.wide ? datum.label : ''"
"""A name in its block, at whatever width the chart is drawn: a name that is cut says nothing."""
_MOST_CLASSES = len(TINTS) - 1
_OTHER, _WAY = "other", "direction"


def figures(source: Source) -> Iterator[Figure]:
    """One figure for each case whose modules were timed, forward and backward side by side."""
    names = shortened(source.labels)
    for key, group in source.cases.items() if measured(source.records, metrics.TIME_MODULE) else ():
        lines = [line for line in tree(group) if not line.is_label]
        rows = [row for way in _blocks(group, lines) for row in way]
        # the classes with the widest blocks keep their colour, the others share one
        widths: dict[str, float] = {}
        for row in rows:
            widths[row["kind"]] = widths.get(row["kind"], 0.0) + row["end"] - row["start"]
        ranked = sorted((kind for kind in widths if kind not in (_WAY, _OTHER)), key=lambda kind: -widths[kind])
        kept = {_WAY, *ranked[: _MOST_CLASSES - 1]}
        rows = [{**row, "colour": row["kind"] if row["kind"] in kept else _OTHER} for row in rows]
        if rows:
            yield Figure(
                title=headline(_largest(group, lines), f"share of modules in the time of a call: {names[key]}"),
                caption=_caption(rows),
                caveats=caveats_of(group),
                spec=drawn(_chart(rows), rows, _ROW_HEIGHT * (max(row["depth"] for row in rows) + 1)),
                columns=(("name", "module"), ("way", "direction"), ("kind", "class"), ("text", "share of the call")),
                definitions=(metrics.MODULE_SHARE,),
            )


def _largest(group: Sequence[Record], lines: Sequence[Line]) -> str:
    """The module that takes most, inside of those that take more than half of the call."""
    shares = [
        (found, line) for line in lines if (found := estimate(group, metrics.MODULE_SHARE, line.scope)) is not None
    ]
    inside: Line | None = None
    while shares:
        share, line = max(shares, key=lambda one: one[0].value)
        below = _inside(line, shares) if share.value > _HALF_PERCENT else []
        if not below:
            where = f" inside {inside.pattern or inside.name}" if inside is not None else ""
            best = lead({one.pattern or one.name: value for value, one in shares}, largest=True)
            if best is not None and best.close:
                return f"{named([best.best, *best.close])} take most{where}"
            return f"{line.name} takes most{where}: {figure(share)} of the call"
        inside, shares = line, below
    return ""


def _inside(line: Line, shares: Sequence[tuple[Estimate, Line]]) -> list[tuple[Estimate, Line]]:
    """The lines inside of a line, at any depth."""
    lines = [one for _, one in shares]
    first = lines.index(line) + 1
    end = next((at for at in range(first, len(lines)) if lines[at].depth <= line.depth), len(lines))
    return list(shares[first:end])


def _caption(rows: Rows) -> str:
    ways = list(dict.fromkeys(row["way"] for row in rows))
    across = f"{' and '.join([', '.join(ways[:-1]), ways[-1]]) if len(ways) > 1 else ways[0]} parts of a call"
    order = f"{across}{' from left to right' if len(ways) > 1 else ''}"
    narrow = "a block without text is too narrow for its name, which is in the table"
    return sentence(order, "repeated layers are one block", narrow)


def _blocks(group: Sequence[Record], lines: Sequence[Line]) -> Iterator[Rows]:
    """The blocks of each direction; a block begins where its elder sibling ends, the first where its parent begins."""
    edge = 0.0
    for way in DIRECTIONS:
        whole = estimate(group, metrics.MODULE_SHARE, _CALL.in_direction(way))
        if whole is None:
            continue
        rows = [_block(Line(name=way, scope=_CALL, kind=_WAY), way, edge, 0, whole)]
        cursors = {0: edge}
        for line in lines:
            share = estimate(group, metrics.MODULE_SHARE, line.scope.in_direction(way))
            start = cursors.get(line.depth, edge)
            cursors[line.depth + 1] = start
            if share is not None:
                cursors[line.depth] = start + share.value
                rows.append(_block(line, way, start, line.depth + 1, share))
        yield [row for row in rows if row["end"] - row["start"] >= _LEAST_SHARE]
        edge += whole.value


def _block(line: Line, way: str, start: float, depth: int, share: Estimate) -> dict[str, Any]:
    return {
        "name": line.pattern or line.name,
        "label": "" if line.name.isdigit() else line.name,  # the index of a child in a `Sequential`
        "wide": six(wide_px(line.name) + _EDGES_PX),
        "way": way,
        "kind": line.kind or _OTHER,
        "depth": depth,
        "start": six(start),
        "end": six(start + share.value),
        "middle": six(start + share.value / 2),
        "text": figure(share),
    }


def _chart(rows: Rows) -> Any:
    import altair as alt

    kinds = list(dict.fromkeys(row["colour"] for row in rows))
    fields = {"name": "module", "kind": "class", "way": "direction", "text": "share"}
    axis = alt.Axis(title="share of the call [%]", grid=False, tickCount=5)
    y = alt.Y("depth:O", title=None, axis=None, scale=alt.Scale(padding=0.04))
    edge = max(row["end"] for row in rows)
    x = alt.X("start:Q", axis=axis, scale=alt.Scale(domain=[0, max(100.0, edge)], nice=False))
    colour = alt.Color("colour:N", title="class", sort=kinds, scale=alt.Scale(domain=kinds, range=TINTS[: len(kinds)]))
    blocks = alt.Chart().mark_rect(stroke=TINT_LINE, strokeWidth=0.5)
    names = (
        alt.Chart()
        .transform_filter("datum.label != ''")
        .mark_text(color="#000000", fontSize=11, tooltip=None, text=alt.expr(_IF_IT_FITS))
    )
    return alt.layer(
        blocks.encode(x=x, x2="end:Q", y=y, color=colour, tooltip=tooltips(fields)),
        names.encode(x=alt.X("middle:Q", axis=axis), y=y),
    )
