"""The page as one file: data as JSON, a script, a style sheet and the chart runtime, nothing from outside."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from speechmeter.core.metrics import Metric
from speechmeter.report.caveats import ONE_ROUND, rounds_of, study_notes
from speechmeter.report.charts.samples import strip
from speechmeter.report.charts.style import PAGE
from speechmeter.report.numbers import counted
from speechmeter.report.page.cases import Shared, case_data, raw_metrics
from speechmeter.report.page.sections import definition_data, section_data
from speechmeter.report.page.table import Labels, row_data, shown_metrics, table_words
from speechmeter.report.sources import Source

Watch = Callable[[int, int], None]
"""Told how many of how many cases are done."""


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
            rows.append([labels.of(source, group), row_data(source, group, shown)])
            cases.append(case_data(source, key, raw, shared))
            watch(len(cases), total)
    return {
        "version": version,
        "runs": [_run(source) for source in sources],
        "table": {
            "labels": labels.headings,
            "columns": [_column(metric) for metric in shown],
            "rows": rows,
            "text": table_words([cell for _, cells in rows for cell in cells]),
        },
        "cases": cases,
        "sections": list(section_data(sources, defined)),
        "definitions": definition_data(defined.values()),
        "shared": shared.values,
        "strip": strip(),
        "config": PAGE,
    }


def _column(metric: Metric) -> dict[str, Any]:
    return {"id": metric.id, "title": metric.title, "raw": [source.id for source in raw_metrics([metric])]}


def _run(source: Source) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for record in source.records:
        counts[record.status] = counts.get(record.status, 0) + 1
    devices = dict.fromkeys(source.device(record) for record in source.records if record.status != "skipped")
    started = min((record.started for record in source.records if record.started), default="")
    return {
        "name": source.name,
        "devices": list(devices),
        "started": started[:16].replace("T", " "),
        "cases": len(source.cases),
        "counts": counts,
        "rounds": _rounds(source),
        "notes": [
            *source.notes,
            *([ONE_ROUND] if rounds_of(source.records)[1] == 1 else []),
            *study_notes(source.records),
        ],
    }


def _rounds(source: Source) -> str:
    """`1 round`, `3 rounds`, `3 to 5 rounds`; empty where nothing was measured."""
    least, most = rounds_of(source.records)
    return "" if not most else counted(most, "round") if least == most else f"{least} to {most} rounds"


def _part(name: str) -> str:
    return (files("speechmeter.report.page") / name).read_text(encoding="utf-8")
