"""A run that is read: its records, tables, charts and figures as a data frame, and how a notebook shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.metric_names import metric_named
from speechmeter.analysis.selecting import MODEL, by_case, select
from speechmeter.api.displayed import Displayed
from speechmeter.core.errors import for_python
from speechmeter.core.hosts import as_stored, hosts_apart
from speechmeter.core.types import FAILED, LEFT_OUT, Record
from speechmeter.report import choose
from speechmeter.report.lines import example_lines, failure_lines, summary
from speechmeter.report.sources import Source, asked_slo, asked_tuning, read_sources
from speechmeter.report.tables import Table, with_notes
from speechmeter.store.lines import Skipped
from speechmeter.store.run_dir import RunDir, unfinished


@dataclass(frozen=True, kw_only=True, repr=False)
class Run(Displayed):
    """A run: its directory, its records, and the damaged lines that were left out.

    `written` are the tables that `markdown:` in the plan wrote as files; empty for a run that was only loaded.
    """

    path: Path
    records: tuple[Record, ...]
    skipped: tuple[Skipped, ...] = ()
    written: tuple[Path, ...] = ()
    is_tour: bool = False

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {self.summary})"

    def _title(self) -> str:
        left = f" · unfinished: {self.unfinished}" if self.unfinished else ""
        return f"{self.path}: {self.summary}{left}"

    def _shown_records(self) -> Sequence[Record]:
        return self.records

    def _sources(self) -> Sequence[Source]:
        return read_sources([str(self.path)])

    @property
    def measured(self) -> bool:
        """Whether any case has a round that succeeded; also true of a run with nothing to measure."""
        tried = [record for record in self.records if record.status not in LEFT_OUT]
        return not tried or any(record.status == "ok" for record in tried)

    @property
    def unfinished(self) -> str:
        """What is left to measure, in words; empty when it is complete, or where an older run does not say."""
        return unfinished(self.path, [replace(record, case=as_stored(record.case)) for record in self.records])

    @property
    def failed(self) -> tuple[Record, ...]:
        """Records of cases that were tried and did not finish."""
        return tuple(record for record in self.records if record.status in FAILED)

    @property
    def summary(self) -> str:
        """How its records ended: `15 ok, 1 oom`."""
        return summary(self.records)

    def failure_lines(self) -> list[str]:
        """A line for each reason why cases failed."""
        return failure_lines(self.records)

    def example_lines(self) -> list[str]:
        """Lines on what an example costs on average: of cascades, and of datasets with one utterance a call."""
        return example_lines(self.records)

    @for_python
    def estimates(self, metric: str = "latency", **axes: Any) -> list[tuple[Mapping[str, Any], Estimate]]:
        """(axes with the model's name, figure) of every case that has the metric and matches the given axes.

        `estimates("memory", model="log-mel", seconds=2)`. Raises InputError for a name that no metric has, and for
        an axis or a value that no case has.
        """
        chosen = by_case(select(self.records, axes, str(self.path)) if axes else self.records)
        metric_named(metric, self.records)
        found: list[tuple[Mapping[str, Any], Estimate]] = []
        for group in chosen.values():
            made = estimate(group, metric_named(metric, group, among=self.records))
            if made is not None:
                found.append(({MODEL: group[0].case.subject.name, **group[0].case.axes}, made))
        return found

    def tables(self, metric: str | None = None) -> list[Table]:
        """The tables that `speechmeter show` prints, with damaged lines that were left out named below them."""
        slo = asked_slo(RunDir(self.path)) if metric in (None, "capacity") else None
        tuning = asked_tuning(RunDir(self.path)) if metric in (None, "tune") else None
        return with_notes(
            choose.tables(self.records, metric, slo=slo, tuning=tuning),
            [f"warning: {one.note}" for one in self.skipped],
        )


@for_python
def load(path: str | Path) -> Run:
    """Read a run directory. If it holds records of several machines, they have the axis `host`.

    Damaged lines are left out: a SkippedLinesWarning names them, and so does `Run.skipped`. Raises RunDirError if it
    is not a run directory, and StoreError if no line can be read or one was written by a newer Speechmeter.
    """
    store = RunDir.existing(Path(path))
    return Run(path=store.path, records=tuple(hosts_apart(store.records())), skipped=store.skipped)
