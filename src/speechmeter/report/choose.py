"""From the word after `--metric` to tables."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from speechmeter.analysis.figures import definition
from speechmeter.core import metrics, plugins
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.arithmetic import coverage, flops, modules, operators, utilisation
from speechmeter.report.energy import energy
from speechmeter.report.frontier import frontier, searched
from speechmeter.report.grids import grids
from speechmeter.report.growth import At, growth
from speechmeter.report.lists import cold_start, parameters, stages
from speechmeter.report.losses import losses
from speechmeter.report.modules import module_times, timed
from speechmeter.report.operators import operators_by_module
from speechmeter.report.overview import cascades, relations, summary
from speechmeter.report.phases import split, split_rtf
from speechmeter.report.quality import quality
from speechmeter.report.tables import Table
from speechmeter.report.timeline import timeline
from speechmeter.report.traces import traces
from speechmeter.report.utterances import utterances

_LISTS: dict[str, Callable[[Sequence[Record]], list[Table]]] = {
    "parameters": parameters,
    "cold-start": cold_start,
    "stages": stages,
    "flops": flops,
    "modules": modules,
    "operators": operators,
    "operators-by-module": operators_by_module,
    "coverage": coverage,
    "utilisation": utilisation,
    "energy": energy,
    "cascades": cascades,
    "relations": relations,
    "quality": quality,
    "summary": summary,
    "utterances": utterances,
    "losses": losses,
    "split": split,
    "trace": traces,
    "timeline": timeline,
    "frontier": frontier,
    "growth": growth,
}
_MEMORY = (metrics.MEMORY_CPU_PEAK, metrics.MEMORY_CUDA_ALLOCATED, metrics.MEMORY_CUDA_RESERVED)


_WORDS = {
    "latency": "rtf",
    "memory": "memory",
    "parameters": "parameters",
    "flops": "flops",
    "operators": "coverage",
    "peaks": "utilisation",
    "energy": "energy",
    "quality": "quality",
    "agreement": "losses",
    "split": "split",
    "modules": "modules",
    "timeline": "timeline",
    "trace": "trace",
}
"""What is shown of each built-in meter when nothing is asked for, in this order."""
_NEEDS = {
    "parameters": ("parameters",),
    "flops": ("flops",),
    "modules": ("flops",),
    "operators": ("operators",),
    "operators-by-module": ("operators",),
    "coverage": ("operators",),
    "utilisation": ("latency", "flops", "peaks"),
    "energy": ("energy",),
    "quality": ("quality",),
    "split": ("split",),
    "timeline": ("timeline",),
    "trace": ("trace",),
    "beside": ("latency", "split"),
}
"""The meters behind a table."""


_COUNTS = {
    "wer": metrics.WORD_ERRORS,
    "cer": metrics.CHARACTER_ERRORS,
    "bleu": metrics.BLEU_STATISTICS,
    "chrf": metrics.CHRF_STATISTICS,
    "completeness": metrics.ANSWERED,
}
"""Scores that can be asked for by name, and the counts they are made from."""


def tables(
    records: Sequence[Record],
    metric: str | None,
    statistic: str = "geomean",
    assumed: Mapping[str, float] | None = None,
    wanted: str | None = None,
    *,
    beside: bool = False,
    at: At = (),
) -> list[Table]:
    """The tables of one metric; without one a table of each meter's first figure, plug-ins last.

    `assumed` are rates that the reader states for figures of energy (see `analysis.assumed`); `wanted` is a pattern
    for the modules that are listed. `beside` puts busy time of CPU and GPU beside the wall time of a real-time factor;
    other metrics have no such form: InputError. `at` are sizes that the table of growth is to tell about.
    """
    asked = dict.fromkeys(name for record in records for name in record.case.meters)
    own = _definitions(asked)
    if beside:
        return _with_needs(_beside(records, metric, statistic), "beside", asked)
    if metric is None and any(map(searched, records)):
        rest = [record for record in records if not searched(record)]
        return [*frontier(list(filter(searched, records))), *(tables(rest, None, statistic, assumed) if rest else ())]
    if metric is None:
        words = _WORDS if _has_audio(records) else {**_WORDS, "latency": "latency"}
        shown = [word for name, word in words.items() if name in asked]
        return [table for word in [*shown, *own] for table in tables(records, word, statistic, assumed)]
    if metric == "energy":
        return _with_needs(energy(records, assumed), "energy", asked)
    if metric == "growth":
        return growth(records, at)
    if metric == "summary":
        return summary(records, statistic)
    if metric == "modules" and timed(records):
        return module_times(records, wanted)
    if metric in _LISTS:
        return _with_needs(_LISTS[metric](records), metric, asked)
    if metric == "memory":
        return [
            table
            for found in _memory_metrics(records)
            for table in grids(_of(records, found), found, statistic=statistic)
        ]
    definition = _metric(records, metric)
    scopes = _scopes(records, definition)
    return [table for scope in scopes for table in grids(records, definition, scope=scope, statistic=statistic)]


def _beside(records: Sequence[Record], metric: str | None, statistic: str) -> list[Table]:
    if metric not in (None, "rtf"):
        raise InputError(f"{metric} cannot be split", where="--split", fix="use --metric rtf, or --metric split alone")
    return split_rtf(records, statistic)


def _with_needs(found: list[Table], word: str, asked: Iterable[str]) -> list[Table]:
    """The tables, and a line on the meters that would have filled them and were not asked for."""
    missing = [meter for meter in _NEEDS.get(word, ()) if meter not in asked]
    if not missing:
        return found
    line = f"this needs the meter{'s' if len(missing) > 1 else ''} {', '.join(missing)}, which the run did not ask for"
    return [replace(table, notes=(*table.notes, line)) for table in found]


def _definitions(meters: Iterable[str]) -> list[str]:
    """Register what installed plug-in meters define; the name of the first metric of each."""
    found = []
    for name in meters:
        if name not in _WORDS and name in plugins.names(plugins.METERS):
            with contextlib.suppress(InputError):
                found.append(plugins.meter(name).metrics[0].name)
    return found


def _has_audio(records: Sequence[Record]) -> bool:
    measured = [record for record in records if record.measurements]
    return not measured or any(record.find(metrics.AUDIO_SECONDS.id) for record in measured)


def _scopes(records: Sequence[Record], metric: Metric) -> list[str]:
    """`total`, unless the metric was only measured in others."""
    if any(record.find(metric.id) for record in records):
        return ["total"]
    found = dict.fromkeys(m.scope for record in records for m in record.measurements if m.metric == metric.id)
    return list(found) or ["total"]


def names(records: Sequence[Record]) -> list[str]:
    """Words that `--metric` takes for these records."""
    measured = {m.metric.rpartition(".")[0] for record in records for m in record.measurements}
    derived = {"rtf", "rtfx", "throughput"} if "latency" in measured else set()
    derived |= {name for name, count in _COUNTS.items() if count.name in measured}
    return sorted({*_LISTS, "memory", *measured, *derived} - {"phase"})


def _memory_metrics(records: Sequence[Record]) -> list[Metric]:
    """The kinds of memory these records are about; the CPU's when no record holds any."""
    measured = [metric for metric in _MEMORY if any(record.find(metric.id) for record in records)]
    return measured or [_MEMORY[0]]


def _of(records: Sequence[Record], metric: Metric) -> list[Record]:
    """Records whose device has that kind of memory."""
    cuda = "cuda" in metric.id
    return [r for r in records if str(r.case.axes.get("device", "")).startswith("cuda") is cuda]


def _metric(records: Sequence[Record], name: str) -> Metric:
    known = metrics.find(name)
    if known is not None:
        return known
    for record in records:
        for m in record.measurements:
            if name in (m.metric, m.metric.rpartition(".")[0]):
                return definition(m.metric, m.unit)
    raise InputError(
        f"there is no metric {name!r} in this run", where="--metric", fix=plugins.nearest(name, names(records))
    )
