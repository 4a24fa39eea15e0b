"""The models of a study side by side at one size that all of them were measured at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.study import Setting, shared
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.charts.colours import models_of
from speechmeter.report.charts.figure import (
    Figure,
    bounds,
    caveats_of,
    interval_words,
    log_words,
    reading,
    sentence,
    shortened,
    unit_of,
)
from speechmeter.report.charts.findings import best_words, headline, named
from speechmeter.report.charts.marks import cut, dots
from speechmeter.report.labels import cell_words
from speechmeter.report.losses import is_loss
from speechmeter.report.numbers import counted, number
from speechmeter.report.sources import Source
from speechmeter.report.studies import settings_of
from speechmeter.report.tables import cell_of


def figures(source: Source, metric: Metric | None = None) -> Iterator[Figure]:
    """One figure, of the real-time factor, or of latency without audio; of a metric that is named, of that one."""
    records = [record for record in source.records if not is_loss(record) and record.status != "skipped"]
    heard = any(record.find(metrics.AUDIO_SECONDS.id) for record in records)
    shown = metric or (metrics.RTF if heard else metrics.LATENCY)
    found = _shared(records, shown)
    if found is not None:
        models = models_of(source.records)
        elsewhere = [name for name in models_of(records) if name not in {line.model for line in found[1]}]
        yield _figure(*found, shown, models, f"measured only at other sizes: {named(elsewhere)}" if elsewhere else "")


def _shared(records: Sequence[Record], metric: Metric) -> tuple[str, list[Setting]] | None:
    """(the size in words, the settings that have it); None where fewer than two have a figure at one size."""
    found = shared(settings_of(records), metric)
    if sum(estimate(one.rounds, metric) is not None for one in found) < 2:
        return None
    names = shortened({one.name: one.name for one in found})
    size = found[0].size
    return cell_words(*size) if size != ("all", 1) else "", [replace(one, name=names[one.name]) for one in found]


def _figure(where: str, lines: Sequence[Setting], metric: Metric, models: Sequence[str], more: str) -> Figure:
    found = {line.name: figure for line in lines if (figure := estimate(line.rounds, metric)) is not None}
    unit = unit_of(metric, [one.value for one in found.values()])
    rows, left_out = cut(_row(line, found.get(line.name), metric, unit.factor) for line in _ordered(lines, found))
    drawn = [record for line in lines for record in line.rounds]
    unit = unit_of(metric, [row["value"] * unit.factor for row in rows if row.get("value") is not None])
    return Figure(
        title=headline(best_words(found), f"{metric.title} of {_counted(lines)}{f', {where}' if where else ''}"),
        caption=sentence(interval_words(rows, "bars are 95 % intervals over rounds"), log_words(bounds(rows)), more)
        + left_out,
        sampled=not metric.exact,
        caveats=(*([more] if more else []), *caveats_of(drawn, sampled=not metric.exact)),
        spec=dots(rows, unit, models=models),
        columns=(("label", "model"), ("text", metric.title)),
        definitions=(metric,),
    )


def _counted(lines: Sequence[Setting]) -> str:
    """`4 models`; where one has several lines, `4 settings of 2 models`."""
    models = len({line.model for line in lines})
    if models == len(lines):
        return counted(models, "model")
    return f"{len(lines)} settings" + (f" of {models} models" if models > 1 else "")


def _ordered(lines: Sequence[Setting], found: dict[str, Estimate]) -> list[Setting]:
    """The best first; those without a figure last."""
    known = [line for line in lines if line.name in found]
    sign = -1 if known and found[known[0].name].metric.direction == "higher" else 1
    known.sort(key=lambda line: sign * found[line.name].value)
    return [*known, *(line for line in lines if line.name not in found)]


def _row(line: Setting, found: Estimate | None, metric: Metric, factor: float) -> dict[str, Any]:
    named = {"label": line.name, "model": line.model}
    if found is None:
        word = cell_of(line.rounds, metric).word
        return {**named, "word": word, "text": word}
    return {**named, **reading(found, factor), "short": number(found.value, metric.unit)}
