"""Before anything is measured: the study that a user asks for, what of it can be refused, and what a run would do."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from speechmeter.analysis.stopping import Rounds
from speechmeter.api.searching import check_search, needs, search_lines, search_of
from speechmeter.core.axes import LATE_DEFAULTS
from speechmeter.core.commit_files import as_at_commit
from speechmeter.core.errors import DeviceError, InputError, RunDirError
from speechmeter.core.machine import available_cores, host_name
from speechmeter.core.plugins import nearest
from speechmeter.core.types import BASELINE, CONTENT_HASHES, VARIANT, Case, Skip
from speechmeter.launch.cluster import Machines, Requirements, find_machines
from speechmeter.launch.cluster_clients import check_clients
from speechmeter.launch.commits import Commit, check_at_commits
from speechmeter.launch.executors import THIS, Interpreter, Processes, varies
from speechmeter.launch.forecast import Forecast, History, earlier, forecast
from speechmeter.launch.interpreters import answers, located
from speechmeter.launch.offline import offline
from speechmeter.launch.preflight import check_baseline, preflight
from speechmeter.launch.schedule import Schedule, Sweep
from speechmeter.plan.source import Override, from_flag, from_models, from_set
from speechmeter.plan.study import Study, study_from_file, study_from_flags, study_of_run, tour
from speechmeter.store.run_dir import RunDir, is_free, is_run, new_run

Launcher = Literal["subprocess", "inline", "ray"]

TOUR = "tour"
"""The name of the built-in plan."""
_CHANGEABLE = ("name", "rounds", "limits", "find_most", "find_within", "slo", "markdown", "tune")
"""Keys of a plan that its cases do not depend on: a resumed run may change them."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a study is run; none of it is part of a case's identity."""

    output: Path | None = None
    launcher: Launcher = "subprocess"
    processes: Processes = "auto"
    address: str | None = None
    baseline_python: str | None = None
    resume: bool = False
    retry_failed: bool = False
    force: bool = False
    offline: bool = False
    commits: Mapping[str, Commit] = field(default_factory=dict)

    @property
    def baseline_path(self) -> str | None:
        """Where the other interpreter is: a bare name is looked for in PATH; what is not found is as it was given."""
        return self.baseline_python and (shutil.which(self.baseline_python) or self.baseline_python)

    @property
    def sides(self) -> dict[str, Interpreter]:
        """What measures the variants of each case; empty where cases have none."""
        if self.baseline_path is not None:
            return {BASELINE: Interpreter(python=self.baseline_path)}
        return {variant: commit.interpreter for variant, commit in self.commits.items()}


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What a run would do: its cases with their rounds, what is left out and why, and how long it may take.

    `most_rounds` is 0 where the number of rounds is fixed. Of a search there are lines only.
    """

    cases: Sequence[tuple[Case, int]] = ()
    most_rounds: int = 0
    skipped: Sequence[Skip] = ()
    unavailable: Sequence[Skip] = ()
    forecast: Forecast | None = None
    search_lines: Sequence[str] = ()


def study_of(
    plan: Path | None,
    *,
    models: Sequence[str] = (),
    axes: Mapping[str, str | None],
    keys: Mapping[str, Any],
    sets: Sequence[str] = (),
    quick: bool = False,
    resumed: Path | None = None,
    trust: bool = False,
) -> Study:
    """The study of a plan file with options laid over it; without a file, of the options alone.

    Without a file and a model, it is that of the `resumed` run, or the built-in tour. `axes` are texts such as `1,5`,
    `keys` other keys of a plan (`tune.goal` one inside another), `sets` texts such as `threads=2`.
    """
    rounds = keys.get("rounds")
    if quick and rounds is not None:
        raise InputError(
            "`quick` measures one round, so it cannot be combined with `rounds`",
            key="rounds",
            fix="give one of the two",
        )
    number = int(rounds) if isinstance(rounds, str) and rounds.isdigit() else rounds
    given = {**keys, "rounds": 1 if quick else number}
    overrides = [from_models(models)] if models else []
    overrides += [from_flag(key, text) for key, text in axes.items() if text is not None]
    overrides += [
        Override(path=tuple(key.split(".")), value=value) for key, value in given.items() if value is not None
    ]
    overrides += [from_set(text) for text in sets]
    if plan is not None:
        return study_from_file(plan, overrides, trust=trust)
    if any(override.path == ("models",) for override in overrides):
        return study_from_flags(overrides)
    if resumed is not None:
        return study_of_run(RunDir.existing(resumed).plan_path, overrides, trust=trust)
    return tour(overrides)


def remarks(study: Study, options: Options) -> list[str]:
    """What a user should know before the run starts, in a line each: unused files, and inputs that changed."""
    return [*study.notes, *needs(study), *changed_data(study, options)]


def changed_data(study: Study, options: Options) -> list[str]:
    """What a resumed run would measure again because a list, folder or file changed, in a line each."""
    if not options.resume or options.output is None or not is_run(options.output):
        return []
    planned = {case.id: case for case in study.cells.cases}
    held = {record.case.id: record for record in RunDir(options.output).records()}
    stale = {_apart_from_content(record.case): record for key, record in held.items() if key not in planned}
    found: dict[str, None] = {}
    for key, case in planned.items():
        earlier = stale.get(_apart_from_content(case)) if key not in held else None
        if earlier is not None:
            since = earlier.started[:16].replace("T", " ") or "this run began"
            found[
                f"{case.workload.source} changed since {since}: its cases are measured again; the old records are kept"
            ] = None
    return list(found)


def _apart_from_content(case: Case) -> str:
    """The id that a case would have whatever its file or folder holds."""
    options = {key: value for key, value in case.workload.options.items() if key not in CONTENT_HASHES}
    return replace(case, workload=replace(case.workload, options=options)).id


def outlook(study: Study, options: Options) -> Outlook:
    """What a run of this study would do. Raises InputError for anything that can be refused beforehand."""
    sweep = check_study(study, options)
    if study.plan.find is not None:
        return Outlook(search_lines=search_lines(search_of(study, sweep)))
    if study.plan.tune is not None:
        return Outlook(search_lines=_configurations(study, sweep))
    held = options.resume and options.output is not None and is_run(options.output)
    records = RunDir(options.output).records() if held and options.output is not None else []
    left = Schedule(sweep, records).left()
    still_to_come = Counter(case.id for case, _ in left.certain)
    left_out = {skip.case.id for skip in sweep.unavailable}
    measured = [case for case in sweep.cases if case.id not in left_out]
    return Outlook(
        cases=[(case, still_to_come[case.id]) for case in measured],
        most_rounds=sweep.rounds.most if sweep.rounds.adaptive else 0,
        skipped=sweep.skipped,
        unavailable=sweep.unavailable,
        forecast=forecast(left, history_for(study, options.output)),
    )


def _configurations(study: Study, sweep: Sweep) -> list[str]:
    """What a tuning would try, one text for each configuration."""
    assert study.plan.tune is not None
    left_out = {skip.case.id: f"  · left out: {skip.reason}" for skip in sweep.unavailable}
    found = []
    for case in sweep.cases:
        values = {name: case.axes.get(name, LATE_DEFAULTS.get(name)) for name in study.plan.tune.over or ()}
        words = ", ".join(f"{name} {value}" for name, value in values.items())
        found.append(f"{case.id}  {words}{left_out.get(case.id, '')}")
    return found


def history_for(study: Study, output: Path | None) -> History:
    """What earlier runs took on this machine: those in `runs`, and those beside the output."""
    folders = dict.fromkeys([Path("runs"), *([] if output is None else [output.absolute().parent])])
    return earlier(folders, study.plan.limits.value())


def check_study(study: Study, options: Options) -> Sweep:
    """The sweep of this study. Raises InputError for anything that can be refused beforehand."""
    check_options(study, options)
    with machines_for(study, options) as machines:
        return sweep_of(study, options, machines)


@contextmanager
def machines_for(study: Study, options: Options) -> Iterator[Machines | None]:
    """The machines of a cluster, all of them asked about every case; None where this machine measures.

    While it lasts the network is left alone where that is asked. Raises InputError without a cluster, and for a case
    that fits none of its machines.
    """
    if options.launcher != "ray":
        with offline(options.offline):
            yield None
        return
    from speechmeter.launch import ray

    plan = study.plan
    requirements = Requirements(
        cases=study.cells.cases,
        limits=plan.limits.value(),
        kinds={str(device): kind for device, kind in plan.kind.items()},
        offline=options.offline,
        speech=plan.speech_files(),
        trace=plan.trace_options(),
        origin=study.origin,
    )
    with ray.opened(options.address) as cluster:
        machines = find_machines(cluster, requirements)
        if have_clients(study):
            check_clients(machines)
        yield machines


def interpreters_of(study: Study) -> dict[str, str]:
    """Where the interpreters are that measure models in place of this one, by the name of the model."""
    return {name: located(python) for name, python in study.plan.interpreters.items()}


def have_clients(study: Study) -> bool:
    """Whether some case is held by several clients together."""
    return any(case.live is not None and case.live.clients > 1 for case in study.cells.cases)


def sweep_of(study: Study, options: Options, machines: Machines | None) -> Sweep:
    """What is measured, how often, and what is left out because it is not available."""
    unavailable: Sequence[Skip] = machines.absent if machines is not None else ()
    if machines is None:
        elsewhere = answers(study.cells.cases, interpreters_of(study))
        with as_at_commit(options.commits[THIS].interpreter.environ if options.commits else {}):
            unavailable = preflight(
                study.cells.cases, study.plan.limits.value(), origin=study.origin, elsewhere=elsewhere
            )
    cases = list(study.cells.cases)
    if options.commits:
        check_at_commits(cases, options.commits)
    if options.sides:
        for interpreter in options.sides.values():
            check_baseline(interpreter.python)
        unavailable = [replace(skip, case=case) for skip in unavailable for case in _variants(skip.case)]
        cases = [variant for case in cases for variant in _variants(case)]
    plan = study.plan
    if not any(map(varies, study.cells.cases)):
        least = most = 1  # a second count would be the same
    elif plan.rounds == "auto":
        least, most = plan.min_rounds, plan.max_rounds
    else:
        least = most = plan.rounds
    return Sweep(
        cases=cases,
        rounds=Rounds(least=least, most=most, precision=plan.precision),
        run_s=plan.limits.run_s,
        skipped=study.cells.skipped,
        unavailable=unavailable,
        retry_failed=options.retry_failed,
    )


def _variants(case: Case) -> list[Case]:
    """The same case for the other interpreter and for this one, to be measured side by side."""
    return [case.with_axes(**{VARIANT: variant}) for variant in (BASELINE, THIS)]


def check_options(study: Study, options: Options) -> None:
    """Raise InputError for options that exclude each other, or do not go with the study or with the output."""
    if options.launcher not in get_args(Launcher):
        raise InputError(
            f"unknown launcher {options.launcher!r}",
            key="launcher",
            fix=nearest(options.launcher, list(get_args(Launcher))),
        )
    if options.processes not in get_args(Processes):
        raise InputError(
            f"unknown value {options.processes!r}",
            key="processes",
            fix=nearest(options.processes, list(get_args(Processes))),
        )
    if options.launcher != "subprocess" and options.processes != "auto":
        raise InputError(
            "`processes` applies to `launcher: subprocess` only",
            key="processes",
            fix="leave it out, or use `launcher: subprocess`",
        )
    if options.resume and options.output is None:
        raise RunDirError(
            "the run directory to continue is missing", key="resume", fix="set its directory with `output`"
        )
    if options.retry_failed and not options.resume:
        raise InputError("`retry_failed` needs a run to resume", key="retry_failed", fix="add `resume` and `output`")
    if options.resume and options.force:
        raise InputError(
            "`resume` keeps the records of a run and `force` removes them", key="force", fix="use one of the two"
        )
    if options.address is not None and options.launcher != "ray":
        raise InputError("`address` applies to `launcher: ray` only", key="address", fix="add `launcher: ray`")
    if options.launcher != "subprocess" and options.baseline_python is not None:
        raise InputError(
            f"`launcher: {options.launcher}` cannot use a second interpreter",
            key="baseline_python",
            fix="use `launcher: subprocess`",
        )
    if study.plan.interpreters:
        _check_interpreters(study, options)
    pinned = [case for case in study.cells.cases if case.axes.cores != len(available_cores())]
    if options.launcher == "inline" and pinned:
        raise DeviceError(
            "`launcher: inline` measures in this process, so it cannot limit the cores",
            where=study.origin(pinned[0], "cores"),
            fix="use `launcher: subprocess`",
        )
    if options.launcher == "inline" and have_clients(study):
        raise InputError(
            "`launcher: inline` measures in this process alone, so there cannot be several `clients`",
            key="clients",
            fix="use `launcher: subprocess`",
        )
    check_search(study, options.launcher, clients=have_clients(study), two_interpreters=bool(options.sides))
    _check_tuning(study, options)
    if options.output is not None:
        check_output(options.output, study, options)


def _check_interpreters(study: Study, options: Options) -> None:
    name = next(iter(study.plan.interpreters))
    where = study.origin(next(case for case in study.cells.cases if case.subject.name == name), "models")
    if options.launcher != "subprocess":
        raise InputError(
            f"{name!r} is measured by another interpreter, which `launcher: {options.launcher}` cannot start",
            where=where,
            fix="use `launcher: subprocess`",
        )
    if options.commits:
        raise InputError(
            f"{name!r} is measured by an interpreter of its own, so it cannot be measured at two commits",
            where=where,
            fix="leave out its `interpreter`",
        )
    if options.baseline_python is not None:
        raise InputError(
            f"{name!r} is measured by an interpreter of its own, so it cannot also be measured by a second one",
            where=where,
            fix="leave out `baseline_python`, and list the model twice instead, each with its `interpreter`",
        )


def _check_tuning(study: Study, options: Options) -> None:
    """Raise InputError for a tuning that cannot be made as asked. A study without one passes."""
    if study.plan.tune is None:
        return
    if options.launcher == "ray":
        raise InputError(
            "`tune` compares configurations of one machine, so it cannot use `launcher: ray`",
            key="launcher",
            fix="use `launcher: subprocess` on the machine in question",
        )
    if options.baseline_python is not None:
        raise InputError(
            "`tune` uses one interpreter", key="baseline_python", fix="tune with each interpreter in a run of its own"
        )


def default_output(study: Study) -> Path:
    """`runs/<time>-<plan>`, a directory that does not exist yet."""
    plain_name = re.sub(r"[^\w.-]+", "-", study.plan.name).strip(".-") or "run"
    return new_run(plain_name[:80])


def check_output(output: Path, study: Study, options: Options) -> None:
    """Raise RunDirError for a directory that is not free, unless it is to be resumed or replaced."""
    if options.resume and is_run(output):
        _check_same_plan(output, study)
        records, two = RunDir(output).records(), bool(options.sides)
        measured = [record for record in records if record.status != "skipped"]  # those are of neither interpreter
        if measured and not any((VARIANT in record.case.axes) is two for record in measured):
            begun, fix = ("without", "leave it out") if two else ("with", "add it")
            raise RunDirError(
                f"this run was started {begun} `baseline_python`",
                where=str(output),
                fix=f"{fix}, or choose another `output`",
            )
        others = {record.host for record in records} - {host_name()}
        if others and study.plan.find is not None:  # what fitted before says nothing about another machine
            raise RunDirError(
                f"this search was started on {', '.join(sorted(others))}, but this machine is {host_name()}",
                where=str(output),
                fix="choose another `output`, and merge both runs afterwards",
            )
        return
    if is_free(output) or (options.force and is_run(output)):
        return
    if is_run(output):
        raise RunDirError(
            "the output directory already contains a run",
            where=str(output),
            fix="use `resume` to continue it, `force` to replace it, or another `output`",
        )
    raise RunDirError("it exists and is not a run directory", where=str(output), fix="choose another `output`")


def _check_same_plan(output: Path, study: Study) -> None:
    """A run is resumed with the cases it was begun with; rounds and limits may change."""
    stored = RunDir(output).plan_path
    if not stored.is_file():
        return
    begun = study_of_run(stored, trust=True)
    if {case.id for case in begun.cells.cases} != {case.id for case in study.cells.cases}:
        changed = _first_difference(begun.plan.to_plain(), study.plan.to_plain())
        raise RunDirError(
            f"this run was started with a different plan ({changed})",
            where=str(output),
            fix="resume it with the same plan, or choose another `output`",
        )
    for name in begun.plan.interpreters | study.plan.interpreters:
        then, now = (one.plan.interpreters.get(name, "the usual one") for one in (begun, study))
        if then != now:
            raise RunDirError(
                f"{name!r} was measured by another interpreter when this run was started: {then} then, {now} now",
                where=str(output),
                fix="resume it with the same interpreter, or choose another `output`",
            )


def _first_difference(begun: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    for key in dict.fromkeys([*begun, *now]):
        if begun.get(key) != now.get(key) and key not in _CHANGEABLE:
            return f"{key}: {begun.get(key)!r} at the start, {now.get(key)!r} now"
    if begun.get("limits") != now.get("limits") and now.get("find"):  # what fits depends on them
        return f"limits: {begun.get('limits')!r} at the start, {now.get('limits')!r} now"
    return "the number of cores or the audio of this machine is different"
