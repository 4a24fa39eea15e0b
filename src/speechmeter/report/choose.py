"""From the word after `--metric` to tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from speechmeter.analysis.metric_names import METHODS, metric_named
from speechmeter.core import metrics, plugins
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.caveats import with_caveats
from speechmeter.report.frontier import searched
from speechmeter.report.grids import grids
from speechmeter.report.growth import At
from speechmeter.report.headline import headline
from speechmeter.report.modules import module_times, timed
from speechmeter.report.operators import sorted_operators
from speechmeter.report.phases import split_rtf
from speechmeter.report.tables import Table
from speechmeter.report.views import BESIDE, TABLES, VIEWS, View

WORDS = (*TABLES, "memory")
"""Words of `--metric` beside the metrics' own names."""
_MEMORY = (
    metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CPU_PEAK, metrics.MEMORY_CUDA_ALLOCATED, metrics.MEMORY_CUDA_RESERVED,
)  # fmt: skip
_FIRST = {view.shown_for: view.name for view in VIEWS if view.shown_for is not None}
"""What is shown of each built-in meter when nothing is asked for, in this order."""
_TOP = 10
"""So many operators of each case are listed when nothing is asked for."""


def tables(
    records: Sequence[Record],
    metric: str | None,
    statistic: str = "geomean",
    assumed: Mapping[str, float] | None = None,
    wanted: str | None = None,
    *,
    beside: bool = False,
    at: At = (),
    sort: str | None = None,
    limit: int | None = None,
    where: str | None = None,
) -> list[Table]:
    """The tables of one metric; without one the headline of the study, then each meter's first figure, plug-ins last.

    `assumed` are rates that the reader states for figures of energy (see `analysis.assumed`); `wanted` is a pattern
    for the modules that are listed. `beside` puts busy time of CPU and GPU beside the wall time of a real-time factor;
    other metrics have no such form: InputError. `at` are sizes that the table of growth is to tell about.
    `sort` and `limit` are for the table of operators, and refused for any other: by what they are ordered, and how many
    are listed of each case. `where` is what gave the metric, for messages.
    """
    for flag, given in (("--sort", sort), ("--limit", limit)):
        if given is not None and metric != "operators":
            raise InputError("only operators can be sorted and limited", where=flag, fix="add --metric operators")

    asked = dict.fromkeys(name for record in records for name in record.case.meters)
    own = _definitions(asked)
    if beside:
        return _with_needs(_beside(records, metric, statistic), BESIDE, asked)
    if metric is None and any(map(searched, records)):
        found, rest = list(filter(searched, records)), [record for record in records if not searched(record)]
        return [*tables(found, "frontier"), *(tables(rest, None, statistic, assumed) if rest else ())]
    if metric is None:
        words = _FIRST if _has_audio(records) else {**_FIRST, "latency": "latency"}
        opening, covered = headline(records, statistic)
        covered -= {"energy"} if assumed else set()
        shown = [word for name, word in words.items() if name in asked and name not in covered]
        return with_caveats(opening, records) + [
            table for word in [*shown, *own] for table in _first(records, word, statistic, assumed, asked)
        ]
    if metric in TABLES:
        options = {"statistic": statistic, "assumed": assumed, "wanted": wanted, "at": at}
        return with_caveats(_listed(records, TABLES[metric], options, (sort, limit)), records)
    if metric == "memory":
        return _memory(records, statistic)
    named = metric_named(metric, records, where=where, also=(*WORDS, METHODS))
    scopes = _scopes(records, named)
    return [table for scope in scopes for table in grids(records, named, scope=scope, statistic=statistic)]


def _first(
    records: Sequence[Record], word: str, statistic: str, assumed: Mapping[str, float] | None, asked: Iterable[str]
) -> list[Table]:
    """What is shown of a meter when nothing is asked for."""
    if word == "memory":
        return _memory(records, statistic, growth=False)
    if word == "rtf" and "split" in asked:
        return split_rtf(records, statistic)
    found = tables(records, word, statistic, assumed)
    return [*tables(records, "operators", limit=_TOP), *found] if word == "coverage" else found


def _listed(
    records: Sequence[Record], view: View, given: Mapping[str, Any], order: tuple[str | None, int | None]
) -> list[Table]:
    """The tables that are no grids."""
    asked = dict.fromkeys(name for record in records for name in record.case.meters)
    if view.name == "modules" and timed(records):
        return module_times(records, given["wanted"])
    if view.name == "operators" and order != (None, None):
        return _with_needs(sorted_operators(records, *order), view, asked)
    more = () if view.takes is None else (given[view.takes],)
    return _with_needs(view.function()(records, *more), view, asked)


def _beside(records: Sequence[Record], metric: str | None, statistic: str) -> list[Table]:
    if metric not in (None, "rtf"):
        raise InputError(f"{metric} cannot be split", where="--split", fix="use --metric rtf, or --metric split alone")
    return split_rtf(records, statistic)


def _with_needs(found: list[Table], view: View, asked: Iterable[str]) -> list[Table]:
    """The tables, and a line on the meters that would have filled them and were not asked for."""
    missing = [meter for meter in view.meters if meter not in asked]
    if not missing:
        return found
    line = f"this needs the meter{'s' if len(missing) > 1 else ''} {', '.join(missing)}, which the run did not ask for"
    return [replace(table, notes=(*table.notes, line)) for table in found]


def _definitions(meters: Iterable[str]) -> list[str]:
    """Register what installed plug-in meters define; the name of the first metric of each."""
    found = []
    for name in meters:
        if name not in _FIRST and name in plugins.names(plugins.METERS):
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


def _memory(records: Sequence[Record], statistic: str, *, growth: bool = True) -> list[Table]:
    """A grid for each kind of memory that these records are about; the CPU's when no record holds any.

    Without `growth` that of the CPU is left out where there is a total.
    """
    measured = [metric for metric in _MEMORY if any(record.find(metric.id) for record in records)]
    if not growth and metrics.MEMORY_CPU_TOTAL in measured:
        measured = [metric for metric in measured if metric != metrics.MEMORY_CPU_PEAK]
    kinds = measured or [_MEMORY[0]]
    return [table for kind in kinds for table in grids(_of(records, kind), kind, statistic=statistic)]


def _of(records: Sequence[Record], metric: Metric) -> list[Record]:
    """Records whose device has that kind of memory."""
    cuda = "cuda" in metric.id
    return [r for r in records if r.case.device.is_cuda is cuda]
