"""Run a study into a directory, and read it back. The command `run` and `speechmeter.run` both come through here."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from speechmeter.analysis.conditions import SAME_CODE_FIX, same_code
from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.metric_names import metric_named
from speechmeter.analysis.selecting import MODEL, by_case, select
from speechmeter.analysis.stopping import Rounds
from speechmeter.api.crews import Launcher, crew_for
from speechmeter.api.searching import check_search, search_of
from speechmeter.core.errors import DeviceError, InputError, InterruptedRun, RunDirError, StoppedRun
from speechmeter.core.hosts import as_stored, hosts_apart
from speechmeter.core.machine import available_cores, host_name
from speechmeter.core.outputs import Keep
from speechmeter.core.types import BASELINE, CONTENT_HASHES, FAILED, LEFT_OUT, VARIANT, Case, Record, Skip
from speechmeter.launch.cluster import Machines
from speechmeter.launch.cluster_run import run_on_cluster
from speechmeter.launch.executors import THIS, Executor, InlineExecutor, SubprocessExecutor, all_exact
from speechmeter.launch.offline import offline
from speechmeter.launch.preflight import check_baseline, preflight
from speechmeter.launch.recorder import Event, Watcher, run_sweep
from speechmeter.launch.schedule import Sweep, pending
from speechmeter.launch.search import run_search
from speechmeter.plan.study import Study, study_from_file, study_from_python, study_of_run
from speechmeter.report import choose, text
from speechmeter.report.tables import Table, with_notes
from speechmeter.store.planned import Planned, unfinished
from speechmeter.store.run_dir import RunDir, RunWriter, is_free, is_run, new_run
from speechmeter.store.skipped import Skipped

_CHANGEABLE = ("name", "rounds", "limits", "find_most", "find_within", "markdown")
"""Keys of a plan that are no part of its cases."""
SPLIT = "split"
"""The meter of busy time."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a study is run; none of it is part of a case's identity."""

    output: Path | None = None
    launcher: Launcher = "subprocess"
    address: str | None = None
    baseline_python: str | None = None
    resume: bool = False
    retry_failed: bool = False
    force: bool = False
    offline: bool = False

    @property
    def baseline_path(self) -> str | None:
        """Where the other interpreter is: a bare name is looked for in PATH; what is not found is as it was given."""
        return self.baseline_python and (shutil.which(self.baseline_python) or self.baseline_python)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished or unfinished run: where it is, its records, and the damaged lines that were left out of them.

    `written` are tables that the plan asked for, as files; of a run that was only read, none.
    """

    path: Path
    records: tuple[Record, ...]
    skipped: tuple[Skipped, ...] = ()
    written: tuple[Path, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether any case has a round that went well; also true of a run with nothing to measure."""
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

    def estimates(self, metric: str = "latency", **axes: Any) -> list[tuple[Mapping[str, Any], Estimate]]:
        """(axes with the model's name, figure) of every case that has the metric and matches the given axes.

        `estimates("memory", model="log-mel", seconds=2)`. Raises InputError for a name that no metric has, and for
        an axis or a value that no case has.
        """
        chosen = select(self.records, axes, str(self.path)) if axes else self.records
        metric_named(metric, self.records)
        found: list[tuple[Mapping[str, Any], Estimate]] = []
        for group in by_case(chosen).values():
            made = estimate(group, metric_named(metric, group, among=self.records))
            if made is not None:
                found.append(({MODEL: group[0].case.subject.name, **group[0].case.axes}, made))
        return found

    def table(self, metric: str | None = None, format: str = "markdown", *, sci: bool = False) -> str:
        """The tables that `speechmeter show` prints, as text."""
        return text.formatted(self.tables(metric), format, sci=sci)

    def tables(self, metric: str | None = None) -> list[Table]:
        """The tables that `speechmeter show` prints, lines that were left out named below them."""
        return with_notes(choose.tables(self.records, metric), [f"warning: {one.note}" for one in self.skipped])


def load(path: str | Path) -> Run:
    """Read a run directory, machines told apart by the axis `host` where it holds records of several.

    Damaged lines are left out: a SkippedLinesWarning names them, and so does `Run.skipped`. Raises RunDirError when it
    is no run, StoreError when no line can be read or one was written by a newer Speechmeter.
    """
    store = RunDir.existing(Path(path))
    return Run(path=store.path, records=tuple(hosts_apart(store.records())), skipped=store.skipped)


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

    `address` is that of a Ray cluster, with the launcher `ray`; without it one of this machine alone is started.
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
    """Preflight, then measure everything that the output does not hold yet. Refusals leave nothing behind."""
    _check_options(study, options)
    try:
        with _crew(study, options) as crew:
            return _run(study, options, crew, watch)
    except KeyboardInterrupt:
        raise InterruptedRun("interrupted", finished="nothing was measured or written") from None


@contextmanager
def _crew(study: Study, options: Options) -> Iterator[Machines | None]:
    """The machines of a cluster, None for this one; while it lasts the network is left alone where that is asked."""
    here = options.offline and options.launcher != "ray"  # a driver needs its cluster
    with offline(here), crew_for(study, options.launcher, options.address, offline=options.offline) as crew:
        yield crew


def _run(study: Study, options: Options, crew: Machines | None, watch: Watcher) -> Run:
    sweep = _sweep(study, options, crew)
    output = options.output or default_output(study)
    with stops_in(output), RunWriter(output) as store:
        if not options.resume:
            store.clear()
        store.begin(study.plan_text(), _planned(sweep) if study.plan.find is None else None)
        if crew is not None:
            run_on_cluster(sweep, crew, store, watch)
        elif study.plan.find is not None:
            run_search(search_of(study, sweep), _executor(options, study, store), store, watch)
        else:
            run_sweep(sweep, _executor(options, study, store), store, _different_code(store, options, watch))
        made = load(output)
        written = [store.write_table(f"{word}.md", _as_file(made, word)) for word in study.plan.markdown]
        return replace(made, written=tuple(written))


def _as_file(made: Run, word: str) -> str:
    """A table as Markdown: real-time factors in exponents, with busy time of CPU and GPU where it was measured."""
    beside = word == "rtf" and any(SPLIT in record.case.meters for record in made.records)
    return text.markdown(choose.tables(made.records, word, beside=beside), sci=word == "rtf")


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


def _different_code(store: RunWriter, options: Options, watch: Watcher) -> Watcher:
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
                    f"the code would be compared with itself: {same}", where="--baseline-python", fix=SAME_CODE_FIX
                )

    return watched


def _planned(sweep: Sweep) -> Planned:
    cases = tuple(case.id for cell in sweep.cells() for case in cell)
    return Planned(cases=cases, rounds=sweep.rounds.least)


def check_study(study: Study, options: Options) -> Sweep:
    """What a run of this study would do. Raises InputError for anything that can be refused beforehand."""
    _check_options(study, options)
    with _crew(study, options) as crew:
        return _sweep(study, options, crew)


def _sweep(study: Study, options: Options, crew: Machines | None) -> Sweep:
    unavailable: Sequence[Skip]
    if crew is not None:
        unavailable = crew.absent
    else:
        unavailable = preflight(study.cells.cases, study.plan.limits.value(), origin=study.place)
    if options.baseline_path is not None:
        check_baseline(options.baseline_path)
        unavailable = [replace(skip, case=case) for skip in unavailable for case in _variants(skip.case)]
    return Sweep(
        cases=_cases(study, options),
        rounds=_rounds(study),
        run_s=study.plan.limits.run_s,
        skipped=study.cells.skipped,
        unavailable=unavailable,
        retry_failed=options.retry_failed,
    )


def _check_options(study: Study, options: Options) -> None:
    if options.resume and options.output is None:
        raise RunDirError("there is nothing to resume without a directory", where="--resume", fix="name it with -o")
    if options.retry_failed and not options.resume:
        raise InputError("only a resumed run has failed cases to repeat", where="--retry-failed", fix="add --resume -o")
    if options.address is not None and options.launcher != "ray":
        raise InputError("only a cluster has an address", where="--address", fix="add --launcher ray")
    if options.launcher != "subprocess" and options.baseline_python is not None:
        raise InputError(
            f"{options.launcher} has one interpreter", where="--baseline-python", fix="use --launcher subprocess"
        )
    pinned = [case for case in study.cells.cases if case.axes["cores"] != len(available_cores())]
    if options.launcher == "inline" and pinned:
        raise DeviceError(
            "inline cannot pin cores: it measures in this very process",
            where=study.place(pinned[0], "cores"),
            fix="use --launcher subprocess",
        )
    check_search(study, options.launcher, two_interpreters=options.baseline_python is not None)
    if options.output is not None:
        check_output(options.output, study, options)


def _rounds(study: Study) -> Rounds:
    plan = study.plan
    if all_exact({name for case in study.cells.cases for name in case.meters}):  # a second count is the first again
        return Rounds(least=1, most=1, precision=plan.precision)
    if plan.rounds == "auto":
        return Rounds(least=plan.min_rounds, most=plan.max_rounds, precision=plan.precision)
    return Rounds(least=plan.rounds, most=plan.rounds, precision=plan.precision)


def _cases(study: Study, options: Options) -> list[Case]:
    if options.baseline_python is None:
        return list(study.cells.cases)
    return [variant for case in study.cells.cases for variant in _variants(case)]


def _variants(case: Case) -> list[Case]:
    """The same case for the other interpreter and for this one, to be measured side by side."""
    return [replace(case, axes={**case.axes, VARIANT: variant}) for variant in (BASELINE, THIS)]


def left_to_do(sweep: Sweep, options: Options) -> list[tuple[Case, int]]:
    """(case, round) pairs that a run would surely measure now."""
    records: Sequence[Record] = ()
    if options.resume and options.output is not None and is_run(options.output):
        records = RunDir(options.output).records()
    return list(pending(sweep, sweep.finished(records)))


def changed_data(study: Study, options: Options) -> list[str]:
    """What a resumed run would measure anew because a list, folder or file is not what it was, in a line each."""
    if not options.resume or options.output is None or not is_run(options.output):
        return []
    planned = {case.id: case for case in study.cells.cases}
    held = {record.case.id: record for record in RunDir(options.output).records()}
    stale = {_apart_from_content(record.case): record for key, record in held.items() if key not in planned}
    found: dict[str, None] = {}
    for key, case in planned.items():
        earlier = stale.get(_apart_from_content(case)) if key not in held else None
        if earlier is not None:
            found[
                f"{case.workload.source} changed since {earlier.started[:16].replace('T', ' ') or 'this run began'}: "
                "its cases are measured anew beside the old ones"
            ] = None
    return list(found)


def _apart_from_content(case: Case) -> str:
    """The id that a case would have whatever its file or folder holds."""
    options = {key: value for key, value in case.workload.options.items() if key not in CONTENT_HASHES}
    return replace(case, workload=replace(case.workload, options=options)).id


def default_output(study: Study) -> Path:
    """`runs/<time>-<plan>`, a directory that does not exist yet."""
    plain_name = re.sub(r"[^\w.-]+", "-", study.plan.name).strip(".-") or "run"
    return new_run(plain_name[:80])


def check_output(output: Path, study: Study, options: Options) -> None:
    """Refuse a directory that is taken, unless it is to be resumed or replaced."""
    if options.resume:
        if is_run(output):
            _check_same_plan(output, study)
            _check_same_interpreters(output, two=options.baseline_python is not None)
            if study.plan.find is not None:
                _check_same_host(output)
            return
        if is_free(output):
            return
    elif is_free(output) or (options.force and is_run(output)):
        return
    if is_run(output):
        raise RunDirError(
            "a run stands here already",
            where=str(output),
            fix="add --resume or --force, or choose another -o",
        )
    raise RunDirError("this exists and is not a run", where=str(output), fix="choose another -o")


def _check_same_plan(output: Path, study: Study) -> None:
    """A run is resumed with the cases it was begun with; rounds and limits may change."""
    stored = RunDir(output).plan_path
    if not stored.is_file():
        return
    begun = study_of_run(stored, trust=True)
    ids = {case.id for case in begun.cells.cases}
    if ids != {case.id for case in study.cells.cases}:
        changed = _first_difference(begun.plan.to_plain(), study.plan.to_plain())
        raise RunDirError(
            f"this run was begun with another plan ({changed})",
            where=str(output),
            fix="resume it with the same plan, or choose another -o",
        )


def _check_same_interpreters(output: Path, *, two: bool) -> None:
    """Cases of one interpreter and of two are other cases, whatever the plan says."""
    measured = [record for record in RunDir(output).records() if record.status != "skipped"]  # those are of neither
    if measured and not any((VARIANT in record.case.axes) is two for record in measured):
        begun, fix = ("without", "leave it out") if two else ("with", "add it")
        raise RunDirError(
            f"this run was begun {begun} --baseline-python", where=str(output), fix=f"{fix}, or choose another -o"
        )


def _check_same_host(output: Path) -> None:
    """A search goes on from what fitted before, and that says nothing about another machine."""
    others = {record.host for record in RunDir(output).records()} - {host_name()}
    if others:
        raise RunDirError(
            f"this search was begun on {', '.join(sorted(others))}, and this is {host_name()}",
            where=str(output),
            fix="choose another -o, and put both together with merge",
        )


def _first_difference(begun: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    for key in dict.fromkeys([*begun, *now]):
        if begun.get(key) != now.get(key) and key not in _CHANGEABLE:
            return f"{key}: {begun.get(key)!r} then, {now.get(key)!r} now"
    if begun.get("limits") != now.get("limits") and now.get("find"):  # what fits depends on them
        return f"limits: {begun.get('limits')!r} then, {now.get('limits')!r} now"
    return "this machine gives other cores or audio"


def _executor(options: Options, study: Study, store: RunWriter) -> Executor:
    artifacts = Keep(
        folder=store.artifacts_path.resolve(), speech=study.plan.speech_files(), trace=study.plan.trace_options()
    )
    if options.launcher == "inline":
        return InlineExecutor(artifacts)
    return SubprocessExecutor(study.plan.limits.value(), artifacts, options.baseline_path)
