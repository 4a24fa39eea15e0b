"""`speechmeter run`: measure a plan, flags, or the built-in tour."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from speechmeter.cli.saying import say

if TYPE_CHECKING:
    from speechmeter.api.runs import Options, Run
    from speechmeter.plan.overrides import Override
    from speechmeter.plan.study import Study

_LIST = "comma-separated"
TOUR = "tour"


def run(
    plan: Path | None = typer.Argument(
        None, metavar="[PLAN.yaml]", help="A plan; without one, flags or the tour.", show_default=False
    ),
    model: list[str] | None = typer.Option(
        None,
        "--model",
        help="log-mel, transformers:SOURCE, python:FILE.py:FACTORY; NAME=… in front names it in tables; repeatable.",
    ),
    seconds: str | None = typer.Option(None, help=f"Seconds of audio, {_LIST}."),
    batch: str | None = typer.Option(None, help=f"Items a call, {_LIST}."),
    audio: str | None = typer.Option(None, help="A sound file, `sample` (ships with the package) or `noise`."),
    data: str | None = typer.Option(None, help="A list of utterances or a folder of them."),
    device: str | None = typer.Option(None, help="cpu, cuda, cuda:N."),
    dtype: str | None = typer.Option(None, help="float32, float16, bfloat16."),
    threads: str | None = typer.Option(None, help="Threads of the math libraries."),
    cores: str | None = typer.Option(None, help="CPU cores, by affinity."),
    compile: str | None = typer.Option(None, help="true or false: torch.compile."),
    deterministic: str | None = typer.Option(None, help="true or false."),
    boundary: str | None = typer.Option(
        None, help="What is inside the clock: model, +decode, +features, +copy, +load."
    ),
    meters: str | None = typer.Option(
        None, help="latency, memory, parameters, flops, energy, …: see `speechmeter models`."
    ),
    rounds: str | None = typer.Option(None, help="Fresh processes a case: a number, or auto."),
    precision: str | None = typer.Option(None, help="With auto: half the interval over rounds, such as 5%."),
    baseline_python: str | None = typer.Option(
        None, "--baseline-python", help="Measure the same cases with this interpreter too, interleaved."
    ),
    repeats: int | None = typer.Option(None, help="Exactly so many samples after `discard`."),
    triangle: bool | None = typer.Option(None, "--triangle/--no-triangle", help="Skip the heavy half of the grid."),
    set_: list[str] | None = typer.Option(None, "--set", help="key=value for any key of a plan; repeatable."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Run directory; default runs/<time>-<plan>."),
    launcher: str = typer.Option("subprocess", help="subprocess, inline, or ray: on a cluster."),
    address: str | None = typer.Option(None, help="With --launcher ray: auto, or HOST:PORT of a cluster."),
    resume: bool = typer.Option(False, "--resume", help="Go on with a run; finished records are kept."),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="With --resume: measure failed cases again."),
    force: bool = typer.Option(False, "--force", help="Replace a run that stands at -o."),
    find: str | None = typer.Option(
        None, "--find", help="Search the largest that fits: max-batch, max-seconds or max-frames."
    ),
    find_most: float | None = typer.Option(None, "--find-most", help="Never try more than this."),
    find_within: str | None = typer.Option(None, "--find-within", help="How close the search comes, such as 1%."),
    find_margin: str | None = typer.Option(None, "--find-margin", help="Safety margin below it; 5% unless given."),
    quick: bool = typer.Option(False, "--quick", help="One round."),
    strict: bool = typer.Option(False, "--strict", help="Exit 1 when any case failed; without it, when all did."),
    dry_run: bool = typer.Option(False, "--dry-run", help="List cases, skipped cells and a time estimate."),
    trust: bool = typer.Option(False, "--trust", help="Run code that the plan names."),
    offline: bool = typer.Option(False, "--offline", help="Never use the network."),
) -> None:
    """Measure a plan, the models named by flags, or (with neither) a built-in tour."""
    from speechmeter.api.runs import Options, changed_data

    flags = {
        "seconds": seconds, "batch": batch, "device": device, "dtype": dtype, "threads": threads, "cores": cores,
        "compile": compile, "deterministic": deterministic, "boundary": boundary, "meters": meters,
    }  # fmt: skip
    if quick and rounds is not None:
        raise typer.BadParameter("--quick is one round: give one of the two", param_hint="--rounds")
    wanted = int(rounds) if rounds is not None and rounds.isdigit() else rounds
    single = {
        "audio": audio,
        "data": {"manifest": data} if data is not None else None,
        "precision": precision,
        "rounds": 1 if quick else wanted,
        "repeats": repeats,
        "triangle": triangle,
        "find": find,
        "find_most": find_most,
        "find_within": find_within,
        "find_margin": find_margin,
    }
    overrides = _overrides(model, flags, single, set_ or [])
    study = _study(plan, overrides, bool(model), output if resume else None, trust=trust)
    for note in study.notes:
        say(f"speechmeter: {note}", err=True)
    options = Options(
        output=output,
        launcher=_launcher(launcher),
        address=address,
        resume=resume,
        baseline_python=baseline_python,
        retry_failed=retry_failed,
        force=force,
        offline=offline,
    )
    for line in changed_data(study, options):
        say(f"speechmeter: {line}", err=True)
    if dry_run:
        _list_cases(study, options)
        return
    made = _measure(study, options)
    _show(made)
    if plan is None and not resume and study.plan.name == TOUR:
        _write_report(made)
    if (strict and made.failed) or not made.measured:
        raise typer.Exit(1)


def _overrides(
    models: list[str] | None, lists: dict[str, str | None], single: dict[str, Any], sets: list[str]
) -> list[Override]:
    from speechmeter.plan.overrides import Override, from_flag, from_models, from_set

    found = [from_models(models)] if models else []
    found += [from_flag(key, value) for key, value in lists.items() if value is not None]
    found += [
        Override(path=(key,), value=value, where=f"--{key.replace('_', '-')}")
        for key, value in single.items()
        if value is not None
    ]
    return found + [from_set(text) for text in sets]


def _study(
    plan: Path | None, overrides: list[Override], has_model: bool, resumed: Path | None, *, trust: bool
) -> Study:
    from speechmeter.plan.study import study_from_file, study_from_flags, study_of_run, tour
    from speechmeter.store.run_dir import RunDir

    if plan is not None:
        return study_from_file(plan, overrides, trust=trust)
    if has_model or any(override.path == ("models",) for override in overrides):
        return study_from_flags(overrides)
    if resumed is not None:
        return study_of_run(RunDir.existing(resumed).plan_path, overrides, trust=trust)
    return tour(overrides)


def _launcher(name: str) -> Any:
    from speechmeter.api.crews import LAUNCHERS
    from speechmeter.core.errors import InputError
    from speechmeter.core.plugins import nearest

    if name not in LAUNCHERS:
        raise InputError(f"there is no launcher {name!r}", where="--launcher", fix=nearest(name, list(LAUNCHERS)))
    return name


def _measure(study: Study, options: Options) -> Run:
    from speechmeter.api.runs import run_study
    from speechmeter.cli.console import console_for
    from speechmeter.cli.progress import progress

    with progress(console_for(sys.stderr)) as watch:
        return run_study(study, options, watch)


def _show(made: Run) -> None:
    from speechmeter.cli.console import console_for
    from speechmeter.report.lines import example_lines, failure_lines, summary
    from speechmeter.report.terminal import draw

    for line in failure_lines(made.records):
        say(line)
    draw(made.tables(), console_for(sys.stdout))
    say(f"{summary(made.records)} · {made.path}")
    say(f"see again: speechmeter show {shlex.quote(str(made.path))}")
    say(f"as a page: speechmeter report {shlex.quote(str(made.path))}")
    for path in made.written:
        say(f"written: {path}")
    for line in example_lines(made.records):
        say(line)


def _write_report(made: Run) -> None:
    """The tour ends with its page; a machine without the extra is told how to get one."""
    from speechmeter.cli.report import write_report
    from speechmeter.report.charts import missing

    if missing():
        say("speechmeter: no page was written: pip install 'speechmeter[report]'", err=True)
        return
    path = made.path / "report.html"
    write_report([str(made.path)], path)
    say(f"report: {path}")


def _list_cases(study: Study, options: Options) -> None:
    from speechmeter.api.runs import check_study, left_to_do
    from speechmeter.api.searching import search_lines, search_of
    from speechmeter.cli.progress import duration
    from speechmeter.launch.schedule import earlier_walls, forecast
    from speechmeter.report.numbers import counted

    sweep = check_study(study, options)
    if study.plan.find is not None:
        say("\n".join(search_lines(search_of(study, sweep))))
        return
    pairs = left_to_do(sweep, options)
    left_out = {skip.case.id for skip in sweep.unavailable}
    for case in sweep.cases:
        if case.id not in left_out:
            rounds = sum(1 for other, _ in pairs if other.id == case.id)
            more = f" (up to {sweep.rounds.most})" if sweep.rounds.adaptive else ""
            say(f"{case.id}  {case.label}  · {counted(rounds, 'round')}{more}")
    for skip in (*sweep.skipped, *sweep.unavailable):
        say(f"{skip.case.id}  {skip.case.label}  · left out: {skip.reason}")
    guess = forecast(pairs, study.plan.limits.value(), earlier_walls([Path("runs")]))
    most = "no limit" if guess.most_s is None else duration(guess.most_s)
    cases = counted(len(sweep.cases), "case")
    say(
        f"{cases}, {len(sweep.skipped)} skipped, {len(sweep.unavailable)} unavailable; "
        f"{counted(guess.total, 'measurement')}, between {duration(guess.least_s)} and {most} "
        f"({guess.known} of them timed by earlier runs; the rest from process start-up to the time limit)"
    )
