"""Run a study into a directory, read runs back, and merge them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from speechmeter.analysis.conditions import SAME_CODE_FIX, same_code
from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.metric_names import metric_named
from speechmeter.analysis.selecting import MODEL, by_case, select
from speechmeter.api.searching import search_of
from speechmeter.api.starting import (
    TOUR,
    Launcher,
    Options,
    check_options,
    check_study,
    default_output,
    machines_for,
    sweep_of,
)
from speechmeter.core import metrics
from speechmeter.core.errors import InputError, InterruptedRun, StoppedRun, for_python
from speechmeter.core.hosts import as_stored, hosts_apart
from speechmeter.core.outputs import Keep
from speechmeter.core.types import FAILED, LEFT_OUT, VARIANT, Record
from speechmeter.launch.cluster import Machines
from speechmeter.launch.cluster_run import run_on_cluster
from speechmeter.launch.executors import Executor, InlineExecutor, SubprocessExecutor
from speechmeter.launch.recorder import Event, Watcher, run_sweep
from speechmeter.launch.search import run_search
from speechmeter.plan.study import Study, study_from_file, study_from_python
from speechmeter.report import choose, text
from speechmeter.report.lines import example_lines, failure_lines, summary
from speechmeter.report.numbers import number
from speechmeter.report.tables import Table, with_notes
from speechmeter.store.lines import Skipped
from speechmeter.store.merge import Merged, merge
from speechmeter.store.run_dir import Planned, RunDir, RunWriter, unfinished

__all__ = ["Merged", "Options", "Run", "check_study", "load", "merge", "outcome", "run", "run_study"]

_HEADLINES = (metrics.LATENCY, metrics.FLOPS, metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CUDA_ALLOCATED)
"""The first of these that a record has is shown while a run goes on."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished or unfinished run: where it is, its records, and the damaged lines that were left out of them.

    `written` are tables that the plan asked for, as files; of a run that was only read, none.
    """

    path: Path
    records: tuple[Record, ...]
    skipped: tuple[Skipped, ...] = ()
    written: tuple[Path, ...] = ()
    is_tour: bool = False

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

    @for_python
    def table(self, metric: str | None = None, format: str = "markdown", *, sci: bool = False) -> str:
        """The tables that `speechmeter show` prints, as text. Raises InputError for an unknown format."""
        return text.formatted(self.tables(metric), format, sci=sci)

    def tables(self, metric: str | None = None) -> list[Table]:
        """The tables that `speechmeter show` prints, with damaged lines that were left out named below them."""
        return with_notes(choose.tables(self.records, metric), [f"warning: {one.note}" for one in self.skipped])


@for_python
def load(path: str | Path) -> Run:
    """Read a run directory, machines told apart by the axis `host` where it holds records of several.

    Damaged lines are left out: a SkippedLinesWarning names them, and so does `Run.skipped`. Raises RunDirError when it
    is not a run, StoreError when no line can be read or one was written by a newer Speechmeter.
    """
    store = RunDir.existing(Path(path))
    return Run(path=store.path, records=tuple(hosts_apart(store.records())), skipped=store.skipped)


@for_python
def run(
    plan: str | Path | Mapping[str, Any],
    *,
    output: str | Path | None = None,
    launcher: Launcher = "subprocess",
    address: str | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    force: bool = False,
    trust: bool = False,
    offline: bool = False,
) -> Run:
    """Run a plan (a YAML file, or its keys as a dict) and return its records, machines told apart as `load` does.

    `address` is that of a Ray cluster, for the launcher `ray`. Without it a cluster of this machine alone is started.
    """
    study = study_from_python(plan) if isinstance(plan, Mapping) else study_from_file(Path(plan), trust=trust)
    options = Options(
        output=Path(output) if output else None,
        launcher=launcher,
        address=address,
        resume=resume,
        retry_failed=retry_failed,
        force=force,
        offline=offline,
    )
    return run_study(study, options)


def run_study(study: Study, options: Options, watch: Watcher = lambda event: None) -> Run:
    """Check the study, then measure everything that the output does not hold yet.

    Whatever is refused is refused before anything is written.
    """
    check_options(study, options)
    try:
        with machines_for(study, options) as machines:
            return _run(study, options, machines, watch)
    except KeyboardInterrupt:
        raise InterruptedRun("interrupted", finished="nothing was measured or written") from None


def _run(study: Study, options: Options, machines: Machines | None, watch: Watcher) -> Run:
    sweep = sweep_of(study, options, machines)
    output = options.output or default_output(study)
    with stops_in(output), RunWriter(output) as store:
        if not options.resume:
            store.clear()
        planned = None
        if study.plan.find is None:  # how many cases a search takes is not known beforehand
            ids = tuple(case.id for cell in sweep.cells() for case in cell)
            planned = Planned(cases=ids, rounds=sweep.rounds.least)
        store.begin(study.plan_text(), planned)
        if machines is not None:
            run_on_cluster(sweep, machines, store, watch)
        elif study.plan.find is not None:
            run_search(search_of(study, sweep), _executor(options, study, store), store, watch)
        else:
            run_sweep(sweep, _executor(options, study, store), store, _refuse_same_code(store, options, watch))
        made = load(output)
        busy = any("split" in record.case.meters for record in made.records)
        written = []
        for view in study.plan.markdown:  # real-time factors in exponents, with busy time where it was measured
            tables = choose.tables(made.records, view, beside=view == "rtf" and busy)
            written.append(store.write_table(f"{view}.md", text.markdown(tables, sci=view == "rtf")))
        return replace(made, written=tuple(written), is_tour=study.plan.name == TOUR)


def _executor(options: Options, study: Study, store: RunWriter) -> Executor:
    artifacts = Keep(
        folder=store.artifacts_path.resolve(), speech=study.plan.speech_files(), trace=study.plan.trace_options()
    )
    if options.launcher == "inline":
        return InlineExecutor(artifacts)
    return SubprocessExecutor(study.plan.limits.value(), artifacts, options.baseline_path)


@contextmanager
def stops_in(output: Path) -> Iterator[None]:
    """Inside, a run that is stopped names its directory."""
    try:
        yield
    except KeyboardInterrupt:
        stop = InterruptedRun("interrupted", finished="finished records are kept")
        stop.run = output
        raise stop from None
    except StoppedRun as stop:
        stop.run = output
        raise


def _refuse_same_code(store: RunWriter, options: Options, watch: Watcher) -> Watcher:
    """The watcher, which also refuses a run of two interpreters as soon as both have loaded the same code."""
    seen: dict[str, str] = {}

    def watched(event: Event) -> None:
        watch(event)
        variant = event.case.axes.get(VARIANT)
        if event.kind != "finished" or variant is None or len(seen) > 1 or event.record is None:
            return
        if event.record.environment:
            seen[str(variant)] = event.record.environment
        if len(seen) > 1:
            known = store.environments()
            first, second = (known.get(one, {}).get("facts", {}) for one in seen.values())
            if same := same_code(first, second):
                if not options.resume:
                    store.clear()
                    with suppress(OSError):  # files that are not ours stay
                        store.path.rmdir()
                raise InputError(
                    f"both interpreters run the same code: {same}", key="baseline_python", fix=SAME_CODE_FIX
                )

    return watched


def outcome(record: Record) -> str:
    """How a record ended, in a few words: its first figure, or its status and reason."""
    if record.status != "ok":
        return f"{record.status}: {record.reason}"
    found = [figure for metric in _HEADLINES if (figure := estimate([record], metric)) is not None]
    if not found:
        return "ok"
    shown = number(found[0].value, found[0].metric.unit)
    rtf = estimate([record], metrics.RTF)
    return shown if rtf is None else f"{shown}, RTF {number(rtf.value, '1')}"
