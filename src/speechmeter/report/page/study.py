"""One study on the page: its answers, the charts that compare its models, its table, its sections and its cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from speechmeter.core.metrics import Metric
from speechmeter.report.answers import Top, top_of
from speechmeter.report.caveats import gathered, rounds_of, study_notes, warnings_of
from speechmeter.report.charts.figure import Figure
from speechmeter.report.large_figures import Finding
from speechmeter.report.lines import summary
from speechmeter.report.numbers import counted
from speechmeter.report.page.cases import Shared, case_data
from speechmeter.report.page.lenses import lenses_data
from speechmeter.report.page.players import players
from speechmeter.report.page.table import raw_metrics, shown_metrics, table_data
from speechmeter.report.plot import chart_figures
from speechmeter.report.sources import Source
from speechmeter.report.views import CHARTS, Chart

MOST_FIGURES = 24
"""A section with more figures than this is cut, and says how to get the others."""
MOST_COMPARED = 2
"""Charts beside each other below the large figures."""
SUMMARY = "summary"
Defined = dict[str, Metric]


@dataclass(kw_only=True)
class Drawn:
    """A section before it is written: a chart and the figures it has for these sources."""

    chart: Chart
    figures: list[Figure] = field(default_factory=list)
    more: bool = False


def study_data(
    source: Source,
    key: str,
    shared: Shared,
    defined: Defined,
    done: Callable[[], None] = lambda: None,
    samples: int = 0,
) -> dict[str, Any]:
    """Everything the page shows of a study; the metrics it shows are added to `defined`.

    `samples` of speech of each system that speaks can be listened to.
    """
    sections, top = list(drawn_sections([source], together=False)), top_of(source)
    tabled = [one.metric for one in top.findings if one.tabled and _section_of(one, sections) is None]
    shown = list(dict.fromkeys([*shown_metrics(source.records), *tabled]))
    raw = raw_metrics(shown)
    defined.update((metric.id, metric) for metric in (*shown, *raw))
    warned = {case: warnings_of(rounds) for case, rounds in source.cases.items()}
    cases = []
    for case in source.cases:
        cases.append(case_data(source, case, raw, shared, warned[case]))
        done()
    compared = _compared(top, sections)
    indices = {case: index for index, case in enumerate(source.cases)}
    return {
        "id": key,
        "name": source.name,
        "about": _about(source),
        "notes": [*source.notes, *study_notes(source.records)],
        "headline": top.headline,
        "doubts": list(top.doubts),
        "findings": [_finding(one, sections, compared, indices) for one in top.findings],
        "compared": [{"id": _anchor(at), **figure_data(figure)} for at, figure in enumerate(compared)],
        "table": table_data(source, shown),
        "cases": cases,
        "warnings": _warnings(source, warned),
        "sections": [section_data(one, defined, compared) for one in sections],
        "lenses": lenses_data([source], defined),
        "players": players(source, samples),
    }


def _warnings(source: Source, warned: Mapping[str, Sequence[str]]) -> list[list[Any]]:
    """[warning, names of the cases that have it]."""
    names = [source.labels[case] for case in warned]
    found = gathered(warned.values())
    return [[text, [names[place] for place in places]] for text, places in found.items()]


def keys_of(names: Sequence[str]) -> list[str]:
    """An id for each study that is the same every time: its name in plain letters, numbered where two are alike."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-") or "study"
        number = next(n for n in range(1, len(found) + 2) if (plain if n == 1 else f"{plain}-{n}") not in found)
        found.append(plain if number == 1 else f"{plain}-{number}")
    return found


def drawn_sections(sources: Sequence[Source], *, together: bool) -> Iterator[Drawn]:
    """A section for each chart that has figures of its own; charts over several runs only where asked `together`."""
    for chart in CHARTS.values():
        if chart.together is not together:
            continue
        worth_drawing = (figure for figure in chart_figures(chart, sources, page=True) if not figure.trivial)
        figures = list(islice(worth_drawing, MOST_FIGURES + 1))
        if figures:
            yield Drawn(chart=chart, figures=figures[:MOST_FIGURES], more=len(figures) > MOST_FIGURES)


def _compared(top: Top, sections: Sequence[Drawn]) -> list[Figure]:
    """The figures that show the answers, each once; without answers the first of all."""
    found: dict[int, Figure] = {}
    for finding in top.findings:
        figure = _figure_of(finding, sections)
        if figure is not None:
            found.setdefault(id(figure), figure)
    first = [section.figures[0] for section in sections[:1]]
    return (list(found.values()) or first)[:MOST_COMPARED]


def _figure_of(finding: Finding, sections: Sequence[Drawn]) -> Figure | None:
    """The figure that shows a finding best; None where no chart does."""
    section = _section_of(finding, sections)
    if section is None:
        return None
    fits = _fitting(finding, section) or section.figures
    named = [figure for figure in fits if finding.within.lower() in figure.title.lower()]
    return next(iter([*named, *fits]))


def _section_of(finding: Finding, sections: Sequence[Drawn]) -> Drawn | None:
    """The first section that shows the figure of a finding; None where the table does, and no section."""
    by_name = {section.chart.name: section for section in sections}
    able = [by_name[name] for name in finding.charts if name in by_name]
    shown = next((section for section in able if _fitting(finding, section)), None)
    return shown or (None if finding.tabled else next(iter(able), None))


def _fitting(finding: Finding, section: Drawn) -> list[Figure]:
    """The figures in which a finding can be read."""
    return [figure for figure in section.figures if finding.metric in figure.definitions and _reads(figure, finding)]


def _reads(figure: Figure, finding: Finding) -> bool:
    texts = [str(value) for row in figure.rows for name, value in row.items() if name.endswith("text")]
    return (
        any(text.split(" ±")[0].split(" [")[0] == finding.written for text in texts) or finding.written in figure.title
    )


def _finding(
    finding: Finding, sections: Sequence[Drawn], compared: Sequence[Figure], indices: dict[str, int]
) -> dict[str, Any]:
    section, figure = _section_of(finding, sections), _figure_of(finding, sections)
    above = next((at for at, one in enumerate(compared) if one is figure), None)
    there = SUMMARY if section is None else section.chart.name
    return {
        "value": finding.value,
        "unit": finding.unit,
        "interval": finding.interval,
        "label": finding.label,
        "name": finding.name,
        "next": finding.next,
        "section": there if above is None else _anchor(above),
        "metric": finding.metric.id,
        "evidence": "Summary" if section is None else section.chart.title,
        "case": indices.get(finding.case),
        "warning": finding.warning,
    }


def _anchor(index: int) -> str:
    return f"compared-{index + 1}"


def section_data(section: Drawn, defined: Defined, elsewhere: Sequence[Figure] = ()) -> dict[str, Any]:
    """A section without the figures that are `elsewhere`; it may be left with none."""
    chart = section.chart
    defined.update((metric.id, metric) for figure in section.figures for metric in figure.definitions)
    more = f" The first {MOST_FIGURES} are drawn; `speechmeter plot RUN@model=… --kind {chart.name}` draws others."
    return {
        "id": chart.name,
        "title": chart.title,
        "text": chart.text + (more if section.more else ""),
        "figures": [
            figure_data(figure) for figure in section.figures if not any(figure is other for other in elsewhere)
        ],
    }


def figure_data(figure: Figure) -> dict[str, Any]:
    """A figure as the page holds it."""
    return {
        "title": figure.title,
        "caption": figure.caption,
        # in a file they are in the picture; the page has the caption beside them
        "caveats": [text for text in figure.caveats or () if text.lower() not in figure.caption.lower()],
        "spec": figure.spec,
        "columns": figure.columns,
    }


def _about(source: Source) -> list[str]:
    """Where and when, how many cases and rounds, and how the records ended where not all went well."""
    devices = dict.fromkeys(source.device(record) for record in source.records if record.status != "skipped")
    least, most = rounds_of(source.records)
    rounds = "" if not most else counted(most, "round") if least == most else f"{least} to {most} rounds"
    started = min((record.started for record in source.records if record.started), default="")
    ended = "" if all(record.status == "ok" for record in source.records) else f"rounds: {summary(source.records)}"
    parts = (", ".join(devices), counted(len(source.cases), "case"), rounds, ended, started[:16].replace("T", " "))
    return [part for part in parts if part]
