"""Energy per audio hour, gross and net of idle, for each domain that a sensor read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.report.charts.dots import SERIES, cut, dots
from speechmeter.report.charts.figure import Figure, Rows, bounds, interval_words, reading, sentence, shortened, unit_of
from speechmeter.report.sources import Source

_DOMAINS = {
    "GPU": (metrics.ENERGY_GPU, metrics.ENERGY_GPU_NET),
    "processor": (metrics.ENERGY_CPU, metrics.ENERGY_CPU_NET),
    "system": (metrics.ENERGY_SYSTEM, metrics.ENERGY_SYSTEM_NET),
}
_GROSS, _NET = "idle included", "net of idle"


def figures(source: Source) -> list[Figure]:
    """A figure for each domain with readings: per audio hour, or per call where there is no audio."""
    held = {m.metric for record in source.records for m in record.measurements if m.values}
    found = []
    for domain, (gross, net) in _DOMAINS.items():
        if gross.id not in held:
            continue
        per_hour = metrics.ENERGY_PER_AUDIO_HOUR[gross], metrics.ENERGY_PER_AUDIO_HOUR[net]
        for pair, title in (
            (per_hour, f"energy per audio hour, {domain}"),
            ((gross, net), f"energy of a call, {domain}"),
        ):
            rows, left_out = cut(_rows(source, *pair))
            if rows:
                found.append(_figure(title, rows, pair, left_out))
                break
    return found


def _rows(source: Source, gross: Metric, net: Metric) -> Iterator[dict[str, Any]]:
    labels = shortened(source.labels)
    for key, group in source.cases.items():
        for name, metric in ((_GROSS, gross), (_NET, net)):
            found = estimate(group, metric)
            if found is not None:
                yield {"label": labels[key], SERIES: name, **reading(found)}


def _figure(title: str, rows: Rows, pair: tuple[Metric, Metric], left_out: str) -> Figure:
    return Figure(
        title=title,
        caption=sentence("read by sensors", interval_words(rows, "with 95 % intervals over rounds")) + left_out,
        spec=dots(rows, unit_of(pair[0], bounds(rows)), series="energy", ordered=(_GROSS, _NET)),
        columns=(("label", "case"), (SERIES, "energy"), ("text", "figure")),
        definitions=pair,
    )
