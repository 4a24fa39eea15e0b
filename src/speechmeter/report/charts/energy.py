"""Energy per audio hour, gross and net of idle, for each domain that a sensor read."""

from __future__ import annotations

from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.report.charts.dots import SERIES, cut, dots
from speechmeter.report.charts.figure import Figure, Rows, bounds, reading, shortened, unit_of
from speechmeter.report.sources import Source

_DOMAINS = {
    "GPU": (metrics.ENERGY_GPU, metrics.ENERGY_GPU_NET),
    "processor": (metrics.ENERGY_CPU, metrics.ENERGY_CPU_NET),
    "system": (metrics.ENERGY_SYSTEM, metrics.ENERGY_SYSTEM_NET),
}
_GROSS, _NET = "idle included", "net of idle"


def figures(source: Source) -> list[Figure]:
    """A figure for each domain with readings: per audio hour, or per call where there is no audio."""
    found = []
    for domain, (gross, net) in _DOMAINS.items():
        per_hour = metrics.ENERGY_PER_AUDIO_HOUR[gross], metrics.ENERGY_PER_AUDIO_HOUR[net]
        for pair, title in (
            (per_hour, f"energy per audio hour, {domain}"),
            ((gross, net), f"energy of a call, {domain}"),
        ):
            rows = _rows(source, *pair)
            if rows:
                found.append(_figure(title, rows, pair))
                break
    return found


def _rows(source: Source, gross: Metric, net: Metric) -> Rows:
    labels = shortened(source.labels)
    return [
        {"label": labels[key], SERIES: name, **reading(found)}
        for key, group in source.cases.items()
        for name, metric in ((_GROSS, gross), (_NET, net))
        if (found := estimate(group, metric)) is not None
    ]


def _figure(title: str, rows: Rows, pair: tuple[Metric, Metric]) -> Figure:
    kept, left_out = cut(rows)
    return Figure(
        title=title,
        caption=f"Read by sensors, with intervals over rounds.{left_out}",
        spec=dots(kept, unit_of(pair[0], bounds(kept)), series="energy", ordered=(_GROSS, _NET)),
        columns=(("label", "case"), (SERIES, "energy"), ("text", "figure")),
        definitions=pair,
    )
