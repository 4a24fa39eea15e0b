"""Live metrics made anew from the exchanges of a run, after a definition changed: nothing is measured again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.live import measurements
from speechmeter.analysis.live.measure import METRICS
from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.core.errors import InputError, StoreError, for_python
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Measurement, Record
from speechmeter.engine.failures import finite
from speechmeter.report.live import live_groups, live_names
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table
from speechmeter.store.artifacts import artifact
from speechmeter.store.exchanges import ExchangeLog, exchange_file, read_exchanges
from speechmeter.store.run_dir import RunDir, RunWriter

_NAMES = {metric.name for metric in METRICS}


@dataclass(frozen=True, kw_only=True)
class Change:
    """A live metric of one case that is not what it was. Figures are None where there was or is none."""

    case: str
    metric: Metric
    before_id: str
    rounds: int
    before: Estimate | None
    after: Estimate | None


@dataclass(frozen=True, kw_only=True)
class Recomputed:
    """What came of it: how many rounds of how many cases were read, and every figure that changed."""

    rounds: int
    cases: int
    changes: tuple[Change, ...]

    def table(self) -> Table:
        """A row for each metric of a case that changed."""
        return Table(
            title="recomputed from exchanges",
            metric=None,
            labels=("case", "metric"),
            columns=("definition", "rounds that changed", "before", "after"),
            rows=tuple(map(_row, self.changes)),
        )


def _row(change: Change) -> Row:
    words = (Cell(word=_definition(change)), Cell(word=str(change.rounds)))
    return Row(labels=(change.case, change.metric.name), cells=(*words, _cell(change.before), _cell(change.after)))


def _definition(change: Change) -> str:
    before, after = change.before_id, change.metric.id
    return after if before == after else f"{before or 'none'} → {after}"


def _cell(found: Estimate | None) -> Cell:
    return Cell(word=NOT_MEASURED) if found is None else Cell(estimate=found)


@for_python
def recompute(run: str | Path) -> Recomputed:
    """Make all live metrics of a run anew from its exchanges, and write the records where they changed.

    Raises StoreError, with nothing written, where an exchange file is missing or damaged: the figures that were made of
    the whole file stay. Raises InputError for a run without live cases.
    """
    path = Path(run)
    RunDir.existing(path)
    with RunWriter(path) as store:
        records = [record for record in store.records() if record.find(metrics.LIVE_ANSWERED.id) is not None]
        if not records:
            raise InputError("this run has no live case that was measured", where=str(path), fix="choose a live run")
        made = [_again(record, store.artifacts_path) for record in records]
        different = [new for old, new in zip(records, made, strict=True) if new.measurements != old.measurements]
        if different:
            store.replace_records(different)
    return Recomputed(rounds=len(records), cases=len(by_case(records)), changes=tuple(_changes(records, made)))


def _again(record: Record, artifacts: Path) -> Record:
    """The record with live metrics made anew; what others measured stays."""
    log = _log_of(record, artifacts)
    made = tuple(_as_stored(finite(one)) for one in measurements(log.exchanges, log.conditions))
    return replace(record, measurements=(*made, *(one for one in record.measurements if _name(one) not in _NAMES)))


def _as_stored(measurement: Measurement) -> Measurement:
    """As it is read back from a record, so that the two can be compared."""
    return Measurement.from_json(measurement.to_json())


def _log_of(record: Record, artifacts: Path) -> ExchangeLog:
    """The exchanges of a round. Raises StoreError where they are not all there."""
    name = exchange_file(record.round)
    kept = "nothing was changed"
    file = artifact(artifacts, record, name)
    if file is None:
        raise StoreError(
            f"{artifacts / record.case.id / name}: this file with the conversations of a round is missing; {kept}"
        )
    try:
        log = read_exchanges(file)
    except StoreError as error:
        raise StoreError(f"{error}; {kept}") from error
    answers = record.find(metrics.LIVE_ANSWERED.id)
    held, known = sum(not one.warm_up for one in log.exchanges), len(answers.values) if answers is not None else 0
    if log.torn or held != known:
        raise StoreError(
            f"{file}: this file is damaged: it holds {held} conversations, but the record says {known}; {kept}"
        )
    return log


def _changes(before: Sequence[Record], after: Sequence[Record]) -> list[Change]:
    names = live_names(live_groups(before))
    old, new = by_case(before), by_case(after)
    found = []
    for key, group in old.items():
        for metric in METRICS:
            pairs = [(_held(was, metric), _held(now, metric)) for was, now in zip(group, new[key], strict=True)]
            differ = [was for was, now in pairs if was != now]
            if differ:
                known = next((was.metric for was in differ if was is not None), "")
                own = replace(metric, id=known or metric.id)
                found.append(
                    Change(
                        case=names[key], metric=metric, before_id=known, rounds=len(differ),
                        before=estimate(group, own), after=estimate(new[key], metric),
                    )
                )  # fmt: skip
    return found


def _held(record: Record, metric: Metric) -> Measurement | None:
    return next((one for one in record.measurements if _name(one) == metric.name), None)


def _name(measurement: Measurement) -> str:
    return measurement.metric.rpartition(".")[0]
