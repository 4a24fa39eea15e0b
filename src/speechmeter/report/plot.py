"""The figures of a chart, and figures as files for a paper: SVG, PDF and PNG from the definitions of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from speechmeter.analysis.metric_names import find_metric, is_in_family, metric_named
from speechmeter.core.errors import InputError
from speechmeter.core.plugins import nearest
from speechmeter.core.printable import one_line
from speechmeter.core.types import Record
from speechmeter.report.charts.figure import Figure, caveats_of
from speechmeter.report.charts.letters import wide_px, wrapped
from speechmeter.report.charts.style import PAPER
from speechmeter.report.labels import varying_axes
from speechmeter.report.sources import Source
from speechmeter.report.views import CHARTS, Chart

FORMATS = (".png", ".svg", ".pdf")
COLUMN_MM = 85.0
"""Width of a column of a two-column paper."""
NARROWEST_MM, WIDEST_MM = 40.0, 500.0
_MM = {"mm": 1.0, "cm": 10.0, "in": 25.4}
_WIDTH = re.compile(r"([\d.]+)\s*([a-z]*)")
NOTEBOOK_MM = 120.0
"""Width of a chart in a notebook."""
NO_TITLE = "none"
_WITHOUT_AXIS = 0.75
"""Of a width: about what an axis leaves for what is drawn."""
_PIXELS_PER_IN = 96
_PRINT_PPI = 300
_POINTS_PER_PIXEL = 0.75
_GAP = 14
_TITLE_PX, _SMALL_PX = 12.0, 10.0
"""Of letters."""
_MARGIN_PX, _AXIS_PX, _SYMBOL_PX = 12, 55, 24
_MOST_COLUMNS = 3
_MOST_LINES = 6
"""Of a title: names may be long, and what is said of them comes last."""
_IN_LEGENDS = ("line", "series", "input", "colour", "kind", "standing", "model")
"""Fields of rows whose values a legend may list; the first that a row has is in its legend."""
_MOST_LABEL = 0.55
"""Of the width: what names of lines may take."""
_SIZE = re.compile(r'<svg[^>]*?width="([\d.]+)"[^>]*?height="([\d.]+)"')


def read_width(text: str) -> float:
    """A width in millimetres: `85mm`, `8.5cm`, `3.3in`; `85` are millimetres. Raises InputError for another."""
    found = _WIDTH.fullmatch(text.strip().lower())
    factor = _MM.get(found[2] or "mm") if found is not None else None
    try:
        width = float(found[1]) * factor if found is not None and factor is not None else 0.0
    except ValueError:
        width = 0.0
    if not NARROWEST_MM <= width <= WIDEST_MM:
        raise _no_width(repr(text), "width", "for example 85mm")
    return width


def check_width(width_mm: float | None) -> None:
    """Raise InputError for a number of millimetres that is no width of a figure; None stands for the usual width."""
    if width_mm is not None and not NARROWEST_MM <= width_mm <= WIDEST_MM:
        raise _no_width(f"{width_mm:g}", "width_mm", "for example 85")


def _no_width(given: str, key: str, fix: str) -> InputError:
    return InputError(f"{given} is not a width from {NARROWEST_MM:g}mm to {WIDEST_MM:g}mm", key=key, fix=fix)


def check_kind(kind: str) -> None:
    """Raise InputError for a kind that there is not: `scaling`, `scaling:batch`."""
    name, _, axis = kind.partition(":")
    if name not in CHARTS:
        is_metric = find_metric(name) is not None
        fix = f"use `kind: scaling` and `metric: {name}`" if is_metric else nearest(name, list(CHARTS))
        raise InputError(f"there is no kind of chart {name!r}", key="kind", fix=fix)
    if axis and axis not in CHARTS[name].axes:
        choices = [f"{name}:{one}" for one in CHARTS[name].axes]
        fix = f"{nearest(kind, choices)}; " if choices else ""
        raise InputError(
            f"there is no kind of chart {kind!r}", key="kind", fix=f"{fix}to choose the metric, use `metric`"
        )


def check_runs(kind: str, count: int) -> None:
    """Raise InputError where several runs cannot be in one figure of this kind."""
    name = kind.partition(":")[0]
    if count > 1 and CHARTS[name].one_run:
        able = ", ".join(chart.name for chart in CHARTS.values() if not chart.one_run)
        raise InputError(
            f"the kind {name} draws one run, not {count}", key="kind", fix=f"give one run, or choose from: {able}"
        )


def check_name(path: Path) -> None:
    """Raise InputError for a file whose name does not end in png, svg or pdf."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path} does not name a format", key="output", fix=f"end the name in {', '.join(FORMATS)}")


def chart_figures(chart: Chart, sources: Sequence[Source], *, page: bool, **asked: Any) -> Iterator[Figure]:
    """What a chart draws of these sources, for the page or for a file; of several, each with its name in front.

    `asked` is passed on to the function of the chart.
    """
    draw = chart.function(page=page)
    if chart.together:
        records = [record for source in sources for record in source.records]
        yield from (_with_caveats(figure, records, left_of(sources)) for figure in draw(sources))
        return
    for source in sources:
        for figure in draw(source, **asked):
            made = _with_caveats(figure, source.records, left_of([source]))
            yield made if len(sources) == 1 else replace(made, title=f"{source.name}: {made.title}")


def left_of(sources: Sequence[Source]) -> tuple[str, ...]:
    """A line for each unfinished run, each once, with what it lacks."""
    return tuple(dict.fromkeys(f"{source.name} is unfinished: {source.unfinished}" for source in sources
                               if source.unfinished))  # fmt: skip


def _with_caveats(figure: Figure, records: Sequence[Record], left: Sequence[str]) -> Figure:
    """With what is left to measure, and the caveats of these records where it has none of its own."""
    own = figure.caveats if figure.caveats is not None else caveats_of(records, sampled=figure.sampled)
    return replace(figure, caveats=(*left, *own))


def figures_of(sources: Sequence[Source], kind: str, metric: str | None = None) -> list[Figure]:
    """The figures of a file: those of a kind, of several runs in one figure; with a metric, those that show it.

    Raises InputError for a kind or a metric that there is not, and where the runs hold nothing for it.
    """
    check_kind(kind)
    name, _, axis = kind.partition(":")
    chart = CHARTS[name]
    records = [record for source in sources for record in source.records]
    if chart.together or chart.one_run or len(sources) < 2:
        figures = list(chart_figures(chart, sources, page=False, **_asked(chart, axis, metric, records)))
    else:
        figures = list(chart_figures(chart, [merged(sources)], page=False, **_asked(chart, axis, metric, records)))
    if metric is not None and not chart.any_metric and figures:
        figures = _of_metric(figures, metric)
    if not figures:
        held = "" if records else " (it holds no records)"
        of_metric = f" and the metric {metric}" if metric else ""
        raise InputError(
            f"there is nothing to draw for the kind {kind}{of_metric}{held}",
            where=", ".join(source.name for source in sources),
            fix=f"this kind needs {chart.needs_of.get(axis, chart.needs)}",
        )
    if len(figures) > 1 and all(len(figure.rows) == 1 for figure in figures):
        raise InputError(
            f"each of {len(figures)} figures of the kind {kind} has a single value",
            key="kind",
            fix=_fewer(sources, records),
        )
    return figures


def _fewer(sources: Sequence[Source], records: Sequence[Record]) -> str:
    """What draws fewer figures: all models in one, where there are several, or one case by what varies."""
    varying = varying_axes([record.case for record in records])
    names = {record.case.subject.name for record in records}
    axis = "model" if len(names) > 1 or not varying else varying[0]
    together = any(True for _ in chart_figures(CHARTS["models"], sources, page=False))
    models = "choose `kind: models`, which has all models in one figure, or " if together else "choose "
    return f"{models}one {axis} with RUN@{axis}=…"


def _asked(chart: Chart, axis: str, metric: str | None, records: Sequence[Record]) -> dict[str, Any]:
    """What the function of a chart takes after the source."""
    asked: dict[str, Any] = {"axis": axis} if axis else {}
    if chart.any_metric and metric is not None:
        asked["metric"] = metric_named(metric, records)
    return asked


def _of_metric(figures: Sequence[Figure], word: str) -> list[Figure]:
    """Those that show a metric. Raises InputError where none does."""
    found = [one for one in figures if any(is_in_family(metric, word) for metric in one.definitions)]
    if not found:
        names = {metric.name: None for figure in figures for metric in figure.definitions}
        raise InputError(f"there is no figure of {word}", key="metric", fix=nearest(word, list(names)))
    return found


def merged(sources: Sequence[Source]) -> Source:
    """The records of several runs as those of one study. A model that several of them have is named with its run."""
    runs_of: dict[str, set[str]] = {}
    for source in sources:
        for record in source.records:
            runs_of.setdefault(record.case.subject.name, set()).add(source.name)
    records = [
        _named_with(source.name, record) if len(runs_of[record.case.subject.name]) > 1 else record
        for source in sources
        for record in source.records
    ]
    environments = {key: value for source in sources for key, value in source.environments.items()}
    names = " and ".join(source.name for source in sources)
    left = ", ".join(dict.fromkeys(f"{source.name}: {source.unfinished}" for source in sources if source.unfinished))
    return Source(name=names, host="", records=tuple(records), environments=environments, unfinished=left)


def _named_with(run: str, record: Record) -> Record:
    """The record with the run in the name of its model, by which all charts distinguish cases."""
    subject = replace(record.case.subject, name=f"{record.case.subject.name} · {run}")
    return replace(record, case=replace(record.case, subject=subject))


def titled(figures: Sequence[Figure], title: str | None) -> list[Figure]:
    """The figures with this title, or without one for `none`. Raises InputError for one title for several figures."""
    if title is None:
        return list(figures)
    if title == NO_TITLE:
        return [replace(figure, title="", caveats=()) for figure in figures]
    if len(figures) > 1:
        raise InputError(
            f"a title needs one figure, and there are {len(figures)}",
            key="title",
            fix="choose one of them with `metric` or RUN@model=…",
        )
    return [replace(figures[0], title=title)]


def altair_chart(figures: Sequence[Figure], width_mm: float | None = None) -> Any:
    """Figures one below the other as one Altair chart."""
    import altair as alt

    specs = [specification(figure, width_mm or NOTEBOOK_MM) for figure in figures]
    for spec in specs:  # Altair refuses what its schema does not have
        spec["config"]["legend"].pop("layout")
    if len(specs) == 1:
        return _as_altair(specs[0])
    # Vega-Lite fits no axis into the width of a chart that has others below it
    parts = [
        _as_altair({key: value for key, value in spec.items() if key not in ("config", "autosize")}
                   | {"width": spec["width"] * _WITHOUT_AXIS})
        for spec in specs
    ]  # fmt: skip
    return alt.vconcat(*parts, config=specs[0]["config"])


def _as_altair(spec: dict[str, Any]) -> Any:
    import altair as alt

    return (alt.LayerChart if "layer" in spec else alt.Chart).from_dict(spec, validate=False)


def encoded(figures: Sequence[Figure], suffix: str, width_mm: float | None = None) -> bytes:
    """Figures one below the other as the content of a file; what all of them have to say is below the first title."""
    first, *others = figures
    once = [first, *(replace(figure, caveats=None) if figure.caveats == first.caveats else figure for figure in others)]
    return _encoded([svg(figure, width_mm or COLUMN_MM) for figure in once], suffix.lower())


def specification(figure: Figure, width_mm: float) -> dict[str, Any]:
    """The whole Vega-Lite specification of a figure on paper."""
    width_px = width_mm / _MM["in"] * _PIXELS_PER_IN
    lines = wrapped(one_line(figure.title), width_px - _MARGIN_PX, _TITLE_PX, bold=True, most_lines=_MOST_LINES)
    caveats = [
        line
        for text in figure.caveats or ()
        for line in wrapped(one_line(text).replace("`", ""), width_px - _MARGIN_PX, _SMALL_PX)
    ]
    look = {**PAPER, "axis": {**PAPER["axis"], "labelLimit": round(_MOST_LABEL * width_px)}}
    return {
        **figure.spec,
        **({"title": {"text": lines, **({"subtitle": caveats} if caveats else {})}} if lines else {}),
        "width": width_px,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": {**look, "legend": {**PAPER["legend"], **_columns(figure, width_px)}},
    }


def _columns(figure: Figure, width_px: float) -> dict[str, Any]:
    """As many columns of a legend as its names leave room for, beside the axis that it begins at."""
    fields = [next((field for field in _IN_LEGENDS if field in row), "") for row in figure.rows]
    names = (one_line(str(row[field])) for row, field in zip(figure.rows, fields, strict=True) if field)
    longest_px = max(map(wide_px, names), default=0.0) + _SYMBOL_PX
    room_px = width_px - _left_px(figure, width_px)
    columns = max(1, min(_MOST_COLUMNS, int(room_px / longest_px)))
    return {"columns": columns, "labelLimit": round(room_px / columns - _SYMBOL_PX)}


def _left_px(figure: Figure, width_px: float) -> float:
    """What names and labels left of the drawing take."""
    if any("depth" in row for row in figure.rows):  # blocks have their names inside
        return _MARGIN_PX
    names = [one_line(str(row["label"])) for row in figure.rows if "label" in row and "start" not in row]
    return min(max(map(wide_px, names), default=_AXIS_PX), _MOST_LABEL * width_px) + _MARGIN_PX


def svg(figure: Figure, width_mm: float) -> str:
    """A figure as SVG of this width."""
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(specification(figure, width_mm))
    return text


def stacked(drawings: Sequence[str], scale: float = 1.0, unit: str = "") -> str:
    """Drawings one below the other, their ids kept apart; `scale` and `unit` are of the size of the whole."""
    sizes = [tuple(map(float, found.groups())) for text in drawings if (found := _SIZE.search(text)) is not None]
    parts, top = [], 0.0
    for index, (text, (_, height)) in enumerate(zip(drawings, sizes, strict=True)):
        own = re.sub(r'(id="|url\(#)', rf"\g<1>f{index}-", text)
        parts.append(own.replace("<svg ", f'<svg y="{top:g}" ', 1))
        top += height + _GAP
    wide, high = max(width for width, _ in sizes), top - _GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide * scale:g}{unit}" height="{high * scale:g}{unit}" '
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return f'{head}viewBox="0 0 {wide:g} {high:g}">{ground}{"".join(parts)}</svg>'


def _encoded(drawings: Sequence[str], suffix: str) -> bytes:
    import vl_convert

    if suffix == ".svg":
        return stacked(drawings, _MM["in"] / _PIXELS_PER_IN, "mm").encode()
    if suffix == ".pdf":
        return bytes(vl_convert.svg_to_pdf(stacked(drawings, _POINTS_PER_PIXEL)))
    return bytes(vl_convert.svg_to_png(stacked(drawings), scale=_POINTS_PER_PIXEL, ppi=_PRINT_PPI))
