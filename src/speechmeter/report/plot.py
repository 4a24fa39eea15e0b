"""The figures of a chart, and figures as files for a paper: SVG, PDF and PNG from the definitions of the page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from speechmeter.analysis.metric_names import is_in_family
from speechmeter.core.errors import InputError
from speechmeter.core.plugins import nearest
from speechmeter.core.printable import one_line
from speechmeter.core.types import Record
from speechmeter.report.charts.figure import Figure, caveats_of
from speechmeter.report.charts.style import PAPER
from speechmeter.report.sources import Source
from speechmeter.report.views import CHARTS, Chart

FORMATS = (".png", ".svg", ".pdf")
COLUMN_IN = 3.3
"""Width of a column of a two-column paper, in inches."""
_PIXELS_PER_IN = 96
_PRINT_PPI = 300
_POINTS_PER_PIXEL = 0.75
_GAP = 14
_LETTER_PX, _SMALL_LETTER_PX, _LEGEND_LETTER_PX, _SYMBOL_PX = 7.2, 5.6, 6.4, 24
_AXIS_PX = 65
_IN_LEGENDS = ("line", "series", "model", "input", "colour", "kind")
"""Fields of rows whose values a legend may list."""
_MOST_LABEL = 0.42
"""Of the width: what names of lines may take."""
_SIZE = re.compile(r'<svg[^>]*?width="([\d.]+)"[^>]*?height="([\d.]+)"')


def check_kind(kind: str) -> None:
    """Raise InputError for a kind that there is not: `scaling`, `scaling:batch`."""
    name = kind.partition(":")[0]
    if name not in CHARTS:
        raise InputError(f"there is no kind {name!r}", key="kind", fix=nearest(name, list(CHARTS)))


def check_name(path: Path) -> None:
    """Raise InputError for a file whose name does not end in png, svg or pdf."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path} does not name a format", key="output", fix=f"end the name in {', '.join(FORMATS)}")


def chart_figures(chart: Chart, sources: Sequence[Source], *, page: bool) -> Iterator[Figure]:
    """What a chart draws of these sources, for the page or for a file; of several, each with its name in front."""
    draw = chart.function(page=page)
    if chart.together:
        records = [record for source in sources for record in source.records]
        yield from (_with_caveats(figure, records) for figure in draw(sources))
        return
    for source in sources:
        for figure in draw(source):
            made = _with_caveats(figure, source.records)
            yield made if len(sources) == 1 else replace(made, title=f"{source.name}: {made.title}")


def _with_caveats(figure: Figure, records: Sequence[Record]) -> Figure:
    """With the caveats of these records, where it has none of its own."""
    if figure.caveats is not None:
        return figure
    return replace(figure, caveats=caveats_of(records, sampled=figure.sampled))


def figures_of(sources: Sequence[Source], kind: str) -> list[Figure]:
    """The figures of a file: those of a kind, or of the metrics that are named behind it, as in `grid:rtf`.

    Raises InputError for a kind or a word that there is not, and where the runs hold nothing for it.
    """
    check_kind(kind)
    name, *words = kind.split(":")
    chart = CHARTS[name]
    if chart.words:
        figures: list[Figure] = chart.function(page=False)(sources, words)
    else:
        figures = list(chart_figures(chart, sources, page=False))
        names = {metric.name: None for figure in figures for metric in figure.definitions}
        for word in words if figures else ():
            figures = [one for one in figures if any(is_in_family(metric, word) for metric in one.definitions)]
            if not figures:
                raise InputError(f"there is no figure of {word}", key="kind", fix=nearest(word, list(names)))
    if not figures:
        held = "" if any(source.records for source in sources) else " (it holds no records)"
        raise InputError(
            f"nothing to draw of the kind {kind}{held}",
            where=", ".join(source.name for source in sources),
            fix=f"this kind needs {chart.needs}",
        )
    return figures


def encoded(figures: Sequence[Figure], suffix: str, width_in: float = COLUMN_IN) -> bytes:
    """Figures one below the other as the content of a file; what all of them have to say is below the first title."""
    first, *others = figures
    once = [first, *(replace(figure, caveats=None) if figure.caveats == first.caveats else figure for figure in others)]
    return _encoded([svg(figure, width_in) for figure in once], suffix.lower())


def specification(figure: Figure, width_in: float) -> dict[str, Any]:
    """The whole Vega-Lite specification of a figure on paper."""
    width_px = width_in * _PIXELS_PER_IN
    lines = textwrap.wrap(one_line(figure.title), width=int(width_px / _LETTER_PX), max_lines=3, placeholder=" …")
    small = int(width_px / _SMALL_LETTER_PX)
    caveats = [line for text in figure.caveats or () for line in textwrap.wrap(one_line(text), small, max_lines=3)]
    look = {**PAPER, "axis": {**PAPER["axis"], "labelLimit": round(_MOST_LABEL * width_px)}}
    return {
        **figure.spec,
        "title": {"text": lines or [figure.title], **({"subtitle": caveats} if caveats else {})},
        "width": width_px,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": {**look, "legend": {**PAPER["legend"], **_columns(figure, width_px)}},
    }


def _columns(figure: Figure, width_px: float) -> dict[str, Any]:
    """Two columns of a legend where its names fit into them, beside the axis that it begins at; else one."""
    names = (str(row[field]) for row in figure.rows for field in _IN_LEGENDS if field in row)
    longest_px = max((len(one_line(name)) for name in names), default=0) * _LEGEND_LETTER_PX + _SYMBOL_PX
    if 2 * longest_px <= width_px - _AXIS_PX:
        return {"labelLimit": round(width_px / 2 - _SYMBOL_PX)}
    return {"columns": 1, "labelLimit": round(width_px - _AXIS_PX - _SYMBOL_PX)}


def svg(figure: Figure, width_in: float) -> str:
    """A figure as SVG of this width."""
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(specification(figure, width_in))
    return text


def stacked(drawings: Sequence[str], scale: float = 1.0) -> str:
    """Drawings one below the other, their ids kept apart; `scale` changes the size of the whole."""
    sizes = [tuple(map(float, found.groups())) for text in drawings if (found := _SIZE.search(text)) is not None]
    parts, top = [], 0.0
    for index, (text, (_, height)) in enumerate(zip(drawings, sizes, strict=True)):
        own = re.sub(r'(id="|url\(#)', rf"\g<1>f{index}-", text)
        parts.append(own.replace("<svg ", f'<svg y="{top:g}" ', 1))
        top += height + _GAP
    wide, high = max(width for width, _ in sizes), top - _GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide * scale:g}" height="{high * scale:g}" '
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return f'{head}viewBox="0 0 {wide:g} {high:g}">{ground}{"".join(parts)}</svg>'


def _encoded(drawings: Sequence[str], suffix: str) -> bytes:
    import vl_convert

    if suffix == ".svg":
        return stacked(drawings).encode()
    if suffix == ".pdf":
        return bytes(vl_convert.svg_to_pdf(stacked(drawings, _POINTS_PER_PIXEL)))
    return bytes(vl_convert.svg_to_png(stacked(drawings), scale=_POINTS_PER_PIXEL, ppi=_PRINT_PPI))
