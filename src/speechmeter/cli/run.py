"""`speechmeter run`: measure a plan, flags, or the built-in tour."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from speechmeter.cli.options import one_of
from speechmeter.cli.printing import console_for, note, print_tables, say

if TYPE_CHECKING:
    from speechmeter.api.runs import Run
    from speechmeter.api.starting import Launcher, Outlook

_WHAT = "What is measured"
_HOW = "How it is measured"
_ROUNDS = "How often it is measured"
_FIND = "Finding the largest input that fits"
_WHERE = "Where it runs, and what it may do"
_OUTPUT = "Output, and continuing a run"


def run(
    plan: Path | None = typer.Argument(
        None,
        metavar="PLAN.yaml",
        help="A plan. Options change its values. Without a plan and without --model, a built-in tour is measured.",
        show_default=False,
    ),
    model: list[str] | None = typer.Option(
        None,
        "--model",
        metavar="MODEL",
        help="A model: log-mel, transformers:openai/whisper-tiny, python:mymodel.py:make. "
        "NAME=MODEL gives it a name in tables. Repeatable.",
        rich_help_panel=_WHAT,
    ),
    seconds: str | None = typer.Option(
        None, metavar="S,S", help="Lengths of audio in seconds, such as 1,5,30.", rich_help_panel=_WHAT
    ),
    batch: str | None = typer.Option(None, metavar="N,N", help="Batch sizes, such as 1,8.", rich_help_panel=_WHAT),
    audio: str | None = typer.Option(
        None,
        metavar="FILE",
        help="The sound to use: a file, `sample` (comes with the package) or `noise`.",
        rich_help_panel=_WHAT,
    ),
    data: str | None = typer.Option(
        None, metavar="LIST", help="A list of utterances, or a folder of audio files.", rich_help_panel=_WHAT
    ),
    meters: str | None = typer.Option(
        None,
        metavar="M,M",
        help="What to measure: latency, memory, parameters, flops, energy, … `speechmeter models` lists all.",
        rich_help_panel=_WHAT,
    ),
    triangle: bool | None = typer.Option(
        None, "--triangle/--no-triangle", help="Skip the heavy half of the grid.", rich_help_panel=_WHAT
    ),
    device: str | None = typer.Option(None, metavar="DEVICE", help="cpu, cuda or cuda:N.", rich_help_panel=_HOW),
    dtype: str | None = typer.Option(None, metavar="TYPE", help="float32, float16 or bfloat16.", rich_help_panel=_HOW),
    threads: str | None = typer.Option(
        None, metavar="N,N", help="Threads of the math libraries.", rich_help_panel=_HOW
    ),
    cores: str | None = typer.Option(
        None, metavar="N,N", help="Number of CPU cores the process may use.", rich_help_panel=_HOW
    ),
    compile: str | None = typer.Option(
        None, metavar="BOOL", help="Use torch.compile: true or false.", rich_help_panel=_HOW
    ),
    deterministic: str | None = typer.Option(
        None, metavar="BOOL", help="Use deterministic algorithms: true or false.", rich_help_panel=_HOW
    ),
    boundary: str | None = typer.Option(
        None,
        metavar="STAGE",
        help="What is timed: model, +decode, +features, +copy or +load.",
        rich_help_panel=_HOW,
    ),
    baseline_python: str | None = typer.Option(
        None,
        "--baseline-python",
        metavar="PYTHON",
        help="Also measure with this interpreter, side by side, to compare two versions of the code.",
        rich_help_panel=_HOW,
    ),
    set_: list[str] | None = typer.Option(
        None, "--set", metavar="KEY=VALUE", help="Any other key of a plan. Repeatable.", rich_help_panel=_HOW
    ),
    rounds: str | None = typer.Option(
        None, metavar="N", help="Fresh processes for each case: a number, or auto.", rich_help_panel=_ROUNDS
    ),
    precision: str | None = typer.Option(
        None,
        metavar="SHARE",
        help="With --rounds auto: stop when half the interval is below this, such as 5%.",
        rich_help_panel=_ROUNDS,
    ),
    repeats: int | None = typer.Option(
        None, metavar="N", help="Take exactly N samples, after those that `discard` drops.", rich_help_panel=_ROUNDS
    ),
    quick: bool = typer.Option(
        False, "--quick", help="Measure one round only. Figures have no interval.", rich_help_panel=_ROUNDS
    ),
    find: str | None = typer.Option(
        None,
        "--find",
        metavar="WHAT",
        help="What to maximise: max-batch, max-seconds or max-frames.",
        rich_help_panel=_FIND,
    ),
    find_most: float | None = typer.Option(
        None, "--find-most", metavar="N", help="Never try more than this.", rich_help_panel=_FIND
    ),
    find_within: str | None = typer.Option(
        None, "--find-within", metavar="SHARE", help="How close the search comes, such as 1%.", rich_help_panel=_FIND
    ),
    find_margin: str | None = typer.Option(
        None,
        "--find-margin",
        metavar="SHARE",
        help="Safety margin below the result. The default is 5%.",
        rich_help_panel=_FIND,
    ),
    launcher: str = typer.Option(
        "subprocess",
        metavar="LAUNCHER",
        help="subprocess, inline (in this process), or ray (on a cluster).",
        rich_help_panel=_WHERE,
        callback=one_of("subprocess", "inline", "ray"),
    ),
    address: str | None = typer.Option(
        None, metavar="HOST:PORT", help="With --launcher ray: the cluster, or auto.", rich_help_panel=_WHERE
    ),
    trust: bool = typer.Option(False, "--trust", help="Allow code that the plan names to run.", rich_help_panel=_WHERE),
    offline: bool = typer.Option(False, "--offline", help="Never use the network.", rich_help_panel=_WHERE),
    output: Path | None = typer.Option(
        None,
        "-o",
        "--output",
        metavar="DIR",
        help="The run directory to write. The default is runs/<time>-<plan>.",
        rich_help_panel=_OUTPUT,
    ),
    resume: bool = typer.Option(
        False,
        "--resume",
        help="Continue the run in the output directory. Finished records are kept.",
        rich_help_panel=_OUTPUT,
    ),
    retry_failed: bool = typer.Option(
        False, "--retry-failed", help="With --resume: measure failed cases again.", rich_help_panel=_OUTPUT
    ),
    force: bool = typer.Option(
        False, "--force", help="Replace the run in the output directory.", rich_help_panel=_OUTPUT
    ),
    strict: bool = typer.Option(
        False, "--strict", help="Exit with 1 if any case fails. Without it, only if all fail.", rich_help_panel=_OUTPUT
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Measure nothing: list the cases and estimate the time.", rich_help_panel=_OUTPUT
    ),
) -> None:
    """Measure a plan, or the models that --model names, or (with neither) a built-in tour.

    Options that take S,S or N,N accept several values: every combination is measured.

    \b
    Examples:
      speechmeter run --model log-mel --seconds 1,5 --batch 1,8
      speechmeter run --model transformers:openai/whisper-tiny --audio sample --meters latency,memory
      speechmeter run plans/audio-grid.yaml --device cuda -o runs/gpu
      speechmeter run plans/audio-grid.yaml --resume -o runs/gpu
    """
    from speechmeter.api import runs, starting
    from speechmeter.cli.progress import progress

    study = starting.study_of(
        plan,
        models=model or [],
        axes={
            "seconds": seconds, "batch": batch, "device": device, "dtype": dtype, "threads": threads, "cores": cores,
            "compile": compile, "deterministic": deterministic, "boundary": boundary, "meters": meters,
        },
        keys={
            "audio": audio, "data": {"manifest": data} if data is not None else None, "precision": precision,
            "rounds": rounds, "repeats": repeats, "triangle": triangle, "find": find, "find_most": find_most,
            "find_within": find_within, "find_margin": find_margin,
        },
        sets=set_ or [], quick=quick, resumed=output if resume else None, trust=trust,
    )  # fmt: skip
    options = runs.Options(
        output=output, launcher=cast("Launcher", launcher), address=address, resume=resume,
        baseline_python=baseline_python, retry_failed=retry_failed, force=force, offline=offline,
    )  # fmt: skip
    for line in starting.remarks(study, options):
        note(line)
    if dry_run:
        _print_outlook(starting.outlook(study, options))
        return
    with progress(console_for(sys.stderr)) as watch:
        made = runs.run_study(study, options, watch)
    _print_run(made)
    if made.is_tour and not resume:
        _write_page(made)
    if (strict and made.failed) or not made.measured:
        raise typer.Exit(1)


def _print_run(made: Run) -> None:
    for line in made.failure_lines():
        say(line)
    print_tables(made.tables(), "table")
    path = shlex.quote(str(made.path))
    say(f"{made.summary} · {made.path}")
    say(f"to see it again: speechmeter show {path}")
    say(f"as a page: speechmeter report {path}")
    for file in made.written:
        say(f"written: {file}")
    for line in made.example_lines():
        say(line)


def _write_page(made: Run) -> None:
    """The tour ends with its page. Without the extra that draws it, a line says how to get one."""
    from speechmeter.api.pages import extra_missing
    from speechmeter.cli.report import write_page

    if extra_missing():
        note("no page was written: pip install 'speechmeter[report]'")
    else:
        write_page([str(made.path)], made.path / "report.html")


def _print_outlook(found: Outlook) -> None:
    from speechmeter.cli.progress import duration
    from speechmeter.report.numbers import counted

    if found.forecast is None:
        say("\n".join(found.search_lines))
        return
    more = f" (up to {found.most_rounds})" if found.most_rounds else ""
    for case, rounds in found.cases:
        say(f"{case.id}  {case.label}  · {counted(rounds, 'round')}{more}")
    for skip in (*found.skipped, *found.unavailable):
        say(f"{skip.case.id}  {skip.case.label}  · left out: {skip.reason}")
    time = found.forecast
    most = "no limit" if time.most_s is None else duration(time.most_s)
    cases = counted(len(found.cases) + len(found.unavailable), "case")
    say(
        f"{cases}, {len(found.skipped)} skipped, {len(found.unavailable)} unavailable; "
        f"{counted(time.total, 'measurement')}, between {duration(time.least_s)} and {most} "
        f"({time.known} of them timed by earlier runs; the others take between a process's start and the time limit)"
    )
