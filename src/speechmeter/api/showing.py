"""What `speechmeter show` prints: tables of a run, or the definition of a metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from speechmeter.analysis.assumed import read_assumptions
from speechmeter.analysis.estimate import STATISTICS
from speechmeter.analysis.selecting import parse, select
from speechmeter.core.errors import InputError
from speechmeter.core.hosts import hosts_apart
from speechmeter.core.plugins import nearest
from speechmeter.core.slo import Slo, slo_of
from speechmeter.report.choose import refuse_absent, tables
from speechmeter.report.explaining import explain
from speechmeter.report.growth import read_at
from speechmeter.report.methods.paragraph import WORD, methods, written
from speechmeter.report.sources import asked_slo, asked_tuning
from speechmeter.report.tables import Table, with_notes
from speechmeter.store.run_dir import RunDir, unfinished


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Tables of a run; of the view `methods` a text instead. `unfinished` says what is left to measure."""

    tables: Sequence[Table] = ()
    text: str = ""
    unfinished: str = ""
    empty: bool = False


def shown(
    run: Path,
    metric: str | None = None,
    *,
    format: str = "table",
    statistic: str = "geomean",
    beside: bool = False,
    modules: str | None = None,
    sort: str | None = None,
    limit: int | None = None,
    assume: Sequence[str] = (),
    at: Sequence[str] = (),
    slo: str | None = None,
) -> Shown:
    """The tables of a run, or of a part of it (`RUN@model=a`), for a view or a metric.

    Without a metric, the first figure of each meter. Raises InputError for an option that does not go with the
    view, and where the run has no such figures.
    """
    if statistic not in STATISTICS:
        raise InputError(f"unknown statistic {statistic!r}", key="statistic", fix=nearest(statistic, list(STATISTICS)))
    path, filters = parse(str(run))
    store = RunDir.existing(path)
    every = store.records()
    left = unfinished(path, every)
    stored = select(every, filters, str(run)) if filters else every
    if metric == WORD:
        return Shown(text=written(methods(stored, store.environments(), statistic), format), unfinished=left)
    records = hosts_apart(stored)
    found = tables(
        records,
        metric,
        statistic,
        read_assumptions(assume),
        modules,
        beside=beside,
        at=read_at(at),
        sort=sort,
        limit=limit,
        slo=_slo(store, metric, slo),
        tuning=asked_tuning(store) if metric in (None, "tune") and not filters else None,
        where="--metric",
    )
    refuse_absent(found, records, metric, run, beside=beside)
    return Shown(tables=with_notes(found, store.notes), unfinished=left, empty=not records)


def _slo(store: RunDir, metric: str | None, given: str | None) -> Slo | None:
    """The SLO that a reader gave, else that of the plan where the table of capacity is shown."""
    asked = asked_slo(store) if given is not None or metric in (None, "capacity", "lenses") else None
    if given is None:
        return asked
    return slo_of(given, first_round=0 if asked is None else asked.first_round)


def explained(name: str, run: Path | None = None) -> str:
    """The full definition of a metric, or what a view shows. A run decides what `memory` means in it."""
    return explain(name, hosts_apart(RunDir.existing(parse(str(run))[0]).records()) if run is not None else ())
