"""Run a study into a directory, and merge runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from speechmeter.analysis.conditions import SAME_CODE_FIX, same_code
from speechmeter.analysis.tuning_answer import answer_of
from speechmeter.api.loaded import Run, load
from speechmeter.api.progress import shown_progress
from speechmeter.api.searching import search_of
from speechmeter.api.starting import (
    TOUR,
    Launcher,
    Options,
    check_options,
    check_study,
    default_output,
    have_clients,
    history_for,
    interpreters_of,
    machines_for,
    sweep_of,
)
from speechmeter.core.errors import InputError, InterruptedRun, StoppedRun, for_python
from speechmeter.core.outputs import Keep
from speechmeter.core.tuning import tuning_of
from speechmeter.core.types import VARIANT
from speechmeter.launch.cluster import Machines
from speechmeter.launch.cluster_clients import ClusterClients
from speechmeter.launch.cluster_run import run_on_cluster
from speechmeter.launch.executors import Executor, InlineExecutor, Processes, SubprocessExecutor
from speechmeter.launch.recorder import Event, Watcher, run_sweep
from speechmeter.launch.schedule import Sweep
from speechmeter.launch.search import run_search
from speechmeter.launch.tuning import Candidates, run_tuning
from speechmeter.plan.finding import fits_memory
from speechmeter.plan.study import Study, study_from_file, study_from_python
from speechmeter.report import choose, text
from speechmeter.report.tuning import chosen_plan
from speechmeter.store.merge import Merged, merge
from speechmeter.store.run_dir import Planned, RunWriter
from speechmeter.subjects.objects import objects_in, offered

__all__ = ["Merged", "Options", "Run", "check_study", "load", "merge", "run", "run_study"]


@for_python
def run(
    plan: str | Path | Mapping[str, Any],
    *,
    output: str | Path | None = None,
    launcher: Launcher | None = None,
    processes: Processes = "auto",
    address: str | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    force: bool = False,
    trust: bool = False,
    offline: bool = False,
    progress: bool | None = None,
) -> Run:
    """Run a plan (a YAML file, or its keys as a dict) and return the run.

    A model may be a module or a callable of this program: `{"models": [model, {"name": "b", "load": other}]}`. It is
    fed float32 tensors (batch, samples) at 16 kHz. It is measured in this process (`launcher="inline"`), and the record
    says so: intervals are narrower than over fresh processes, and memory on the CPU is unavailable. Other models are
    measured in subprocesses by default.

    `processes` says how processes start: `exec` (each imports the libraries again), `fork` (the libraries are imported
    once, where the model allows it), or `auto` (exec where time is measured, fork for memory and counts).
    `address` is the address of a Ray cluster, for `launcher="ray"`; by default, a cluster of this machine only is
    started. `progress` shows what is done and how much time is left; by default only in notebooks.
    """
    keys, objects = objects_in(plan) if isinstance(plan, Mapping) else ({}, {})
    if objects and launcher not in (None, "inline"):
        raise InputError(
            f"`launcher: {launcher}` starts other processes, and the model {next(iter(objects))!r} is an object of "
            "this process",
            key="launcher",
            fix="leave out `launcher`, or name a function that makes the model: python:file.py:function",
        )
    with offered(objects):
        study = study_from_python(keys) if isinstance(plan, Mapping) else study_from_file(Path(plan), trust=trust)
        options = Options(
            output=Path(output) if output else None,
            launcher=launcher or ("inline" if objects else "subprocess"),
            processes=processes,
            address=address,
            resume=resume,
            retry_failed=retry_failed,
            force=force,
            offline=offline,
        )
        with shown_progress(progress) as watch:
            return run_study(study, options, watch)


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
        if study.plan.find is None and study.plan.tune is None:  # how many cases a search takes is not known beforehand
            ids = tuple(case.id for cell in sweep.cells() for case in cell)
            planned = Planned(cases=ids, rounds=sweep.rounds.least)
        store.begin(study.plan_text(), planned)
        if machines is not None and not have_clients(study):
            run_on_cluster(sweep, machines, store, watch)
        elif study.plan.find is not None:
            with closing(_executor(options, study, store, machines)) as executor:
                run_search(search_of(study, sweep), executor, store, watch)
        elif study.plan.tune is not None:
            _tune(study, options, store, sweep, watch)
        else:
            watched = _refuse_same_code(store, options, watch)
            with closing(_executor(options, study, store, machines)) as executor:
                run_sweep(sweep, executor, store, watched, partial(history_for, study, output))
        made = load(output)
        busy = any("split" in record.case.meters for record in made.records)
        written = []
        for view in study.plan.markdown:  # real-time factors in exponents, with busy time where it was measured
            tables = choose.tables(made.records, view, beside=view == "rtf" and busy)
            written.append(store.write_table(f"{view}.md", text.markdown(tables, sci=view == "rtf")))
        return replace(made, written=tuple(written), is_tour=study.plan.name == TOUR)


def _tune(study: Study, options: Options, store: RunWriter, sweep: Sweep, watch: Watcher) -> None:
    """Measure until the tuning has its answer, and write the plan of the configuration to use."""
    plan = study.plan.to_plain()
    tuning = tuning_of(plan)
    assert tuning is not None
    candidates = Candidates(cases=sweep.cases, tuning=tuning, unavailable=sweep.unavailable)
    with closing(_executor(options, study, store, None)) as executor:
        state = run_tuning(candidates, executor, store, watch)
    store.write_chosen(chosen_plan(plan, answer_of(state)))


def _executor(options: Options, study: Study, store: RunWriter, machines: Machines | None) -> Executor:
    artifacts = Keep(
        folder=store.artifacts_path.resolve(), speech=study.plan.speech_files(), trace=study.plan.trace_options()
    )
    if machines is not None:
        return ClusterClients(machines, artifacts)
    if options.launcher == "inline":
        return InlineExecutor(artifacts)
    # a search is about the memory of whole processes, of which a forked one shares a part
    processes: Processes = "exec" if fits_memory(study.plan) else options.processes
    return SubprocessExecutor(study.plan.limits.value(), artifacts, processes, interpreters_of(study), options.sides)


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
                if options.commits:
                    raise InputError(
                        f"both commits run the same code: {same}",
                        key="commits",
                        fix="nothing that the model loads differs between them, so there is nothing to compare",
                    )
                raise InputError(
                    f"both interpreters run the same code: {same}", key="baseline_python", fix=SAME_CODE_FIX
                )

    return watched
