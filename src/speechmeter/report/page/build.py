"""The page as one file: data as JSON, a script, a style sheet and the chart runtime, nothing from outside."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from itertools import islice
from string import Template
from typing import Any

from speechmeter.core.metrics import Metric
from speechmeter.report.caveats import ONE_ROUND, rounds_of, study_notes
from speechmeter.report.charts.figure import Figure, samples_strip
from speechmeter.report.charts.style import PAGE
from speechmeter.report.numbers import counted
from speechmeter.report.page.cases import Labels, Shared, case_data, raw_metrics, row_data, shown_metrics, table_words
from speechmeter.report.plot import chart_figures
from speechmeter.report.sources import Source
from speechmeter.report.views import CHARTS

MOST_FIGURES = 24
"""A section with more figures than this is cut, and says how to get the others."""
Watch = Callable[[int, int], None]
"""Called with how many of how many cases are done."""


def build_page(sources: Sequence[Source], version: str, watch: Watch = lambda done, of: None) -> str:
    """The whole HTML document for some sources."""
    import vl_convert

    names = ", ".join(dict.fromkeys(source.name for source in sources))
    return Template(_part("page.html")).substitute(
        title=html.escape(f"Speechmeter: {names}"),
        style=_part("page.css"),
        data=embedded(page_data(sources, version, watch)),
        runtime=vl_convert.javascript_bundle().replace("</script", r"<\/script"),
        script="".join(_part(name) for name in ("dom.js", "charts.js", "table.js", "detail.js", "page.js")),
    )


def embedded(data: Any) -> str:
    """JSON that may stand inside a script element: no `<` is left in it, so nothing can close the element."""
    try:
        text = _json(data)
    except ValueError:  # rare, and looking for it takes longer than writing
        text = _json(_finite(data))
    return text.replace("<", r"\u003c").encode("utf-8", "replace").decode()


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=False)


def _finite(value: Any) -> Any:
    """The same with words in place of numbers that JSON does not have: `nan`, `inf`."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def page_data(sources: Sequence[Source], version: str, watch: Watch = lambda done, of: None) -> dict[str, Any]:
    """Everything the page shows."""
    records = [record for source in sources for record in source.records]
    shown, shared, labels = shown_metrics(records), Shared(), Labels(sources)
    raw = raw_metrics(shown)
    defined: dict[str, Metric] = {metric.id: metric for metric in (*shown, *raw)}
    cases, rows = [], []
    total = sum(len(source.cases) for source in sources)
    for source in sources:
        for key, group in source.cases.items():
            rows.append([labels.of(source, group), row_data(group, shown)])
            cases.append(case_data(source, key, raw, shared))
            watch(len(cases), total)
    return {
        "version": version,
        "runs": [_run(source) for source in sources],
        "table": {
            "labels": labels.headings,
            "columns": [
                {"id": m.id, "title": m.title, "raw": [source.id for source in raw_metrics([m])]} for m in shown
            ],
            "rows": rows,
            "text": table_words([cell for _, cells in rows for cell in cells]),
        },
        "cases": cases,
        "sections": list(_sections(sources, defined)),
        "definitions": [
            [m.id, m.unit, m.title, m.direction, m.definition, m.formula] for _, m in sorted(defined.items())
        ],
        "shared": shared.values,
        "strip": samples_strip(),
        "config": PAGE,
    }


def _sections(sources: Sequence[Source], defined: dict[str, Metric]) -> Iterator[dict[str, Any]]:
    """A section for each chart that has figures; the metrics they show are added to `defined`."""
    for chart in CHARTS.values():
        worth_drawing = (figure for figure in chart_figures(chart, sources, page=True) if not figure.trivial)
        figures = list(islice(worth_drawing, MOST_FIGURES + 1))
        if not figures:
            continue
        defined.update((metric.id, metric) for figure in figures for metric in figure.definitions)
        more = f" The first {MOST_FIGURES} are drawn; `speechmeter plot RUN@model=… --kind {chart.name}` draws others."
        yield {
            "id": chart.name,
            "title": chart.title,
            "text": chart.text + (more if len(figures) > MOST_FIGURES else ""),
            "figures": [_figure(figure) for figure in figures[:MOST_FIGURES]],
        }


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "title": figure.title,
        "caption": figure.caption,
        "caveats": list(figure.caveats or ()),
        "spec": figure.spec,
        "columns": figure.columns,
    }


def _run(source: Source) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for record in source.records:
        counts[record.status] = counts.get(record.status, 0) + 1
    devices = dict.fromkeys(source.device(record) for record in source.records if record.status != "skipped")
    least, most = rounds_of(source.records)
    rounds = "" if not most else counted(most, "round") if least == most else f"{least} to {most} rounds"
    started = min((record.started for record in source.records if record.started), default="")
    return {
        "name": source.name,
        "devices": list(devices),
        "started": started[:16].replace("T", " "),
        "cases": len(source.cases),
        "counts": counts,
        "rounds": rounds,
        "notes": [
            *source.notes,
            *([ONE_ROUND] if most == 1 else []),
            *study_notes(source.records),
        ],
    }


def _part(name: str) -> str:
    return (files("speechmeter.report.page") / name).read_text(encoding="utf-8")
