"""`speechmeter run`: measure a plan, flags, or the built-in tour."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from speechmeter.cli.options import one_of, option_group
from speechmeter.cli.printing import console_for, note, print_tables, say

if TYPE_CHECKING:
    from speechmeter.api.runs import Run
    from speechmeter.api.starting import Launcher, Outlook
    from speechmeter.launch.executors import Processes

_what = option_group("What is measured")
_how = option_group("How it is measured")
_live = option_group("Live recognition: audio is fed in chunks, as from a microphone")
_rounds = option_group("How often it is measured")
_find = option_group("Finding the largest input, or the highest load")
_where = option_group("Where it runs, and what it may do")
_output = option_group("Output, and continuing a run")


def run(
    plan: Path | None = typer.Argument(
        None,
        metavar="PLAN.yaml",
        help="A plan. Options change its values. Without a plan and without --model, a built-in tour is measured.",
    ),
    model: list[str] | None = _what(
        None,
        "--model",
        metavar="MODEL",
        help="A model: log-mel, transformers:openai/whisper-tiny, python:mymodel.py:make. "
        "NAME=MODEL gives it a name in tables; MODEL@PYTHON measures it by another Python interpreter. Repeatable.",
    ),
    seconds: str | None = _what(None, "--seconds", metavar="S,S", help="Lengths of audio in seconds, such as 1,5,30."),
    batch: str | None = _what(None, "--batch", metavar="N,N", help="Batch sizes, such as 1,8."),
    audio: str | None = _what(
        None, "--audio", metavar="FILE", help="The sound to use: a file, `sample` (comes with the package) or `noise`."
    ),
    data: str | None = _what(None, "--data", metavar="LIST", help="A list of utterances, or a folder of audio files."),
    meters: str | None = _what(
        None,
        "--meters",
        metavar="M,M",
        help="What to measure: latency, memory, parameters, flops, energy, … `speechmeter models` lists all.",
    ),
    profile: str | None = _what(
        None,
        "--profile",
        metavar="NAME",
        help="Also score outputs as a leaderboard does: open-asr. The data must have texts.",
        callback=one_of("open-asr"),
    ),
    triangle: bool | None = _what(
        None, "--triangle/--no-triangle", help="Skip the combinations of long audio and large batch."
    ),
    device: str | None = _how(None, "--device", metavar="DEVICE", help="cpu, cuda or cuda:N."),
    dtype: str | None = _how(None, "--dtype", metavar="TYPE", help="float32, float16 or bfloat16."),
    threads: str | None = _how(
        None, "--threads", metavar="N,N", help="Number of threads of the math libraries, such as 1,4."
    ),
    cores: str | None = _how(
        None, "--cores", metavar="N,N", help="Number of CPU cores that the process may use, such as 1,4."
    ),
    compile: str | None = _how(None, "--compile", metavar="BOOL", help="Use torch.compile: true or false."),
    deterministic: str | None = _how(
        None, "--deterministic", metavar="BOOL", help="Use deterministic algorithms: true or false."
    ),
    boundary: str | None = _how(
        None,
        "--boundary",
        metavar="STAGE",
        help=(
            "What is timed: model (the model only), +decode (also decoding), +features (also feature "
            "extraction), +copy (also the copy to the device) or +load (also loading the data). Each "
            "includes all steps named before it."
        ),
    ),
    baseline_python: str | None = _how(
        None,
        "--baseline-python",
        metavar="PYTHON",
        help="Also measure with this Python interpreter, in the same rounds, to compare two versions of the code.",
    ),
    set_: list[str] | None = _how(
        None,
        "--set",
        metavar="KEY=VALUE",
        help="Set a plan key that has no option of its own, such as limits.time_s=60. Repeatable.",
    ),
    pace: str | None = _live(
        None,
        "--pace",
        metavar="PACE",
        help=(
            "How audio is fed: realtime (live, as fast as it is spoken), fast (live, without waiting) or "
            "offline (each utterance as a whole, not live). Several values are compared: "
            "realtime,offline."
        ),
    ),
    chunk: str | None = _live(
        None, "--chunk", metavar="T,T", help="Length of the audio that is sent at a time, such as 20ms,100ms."
    ),
    streams: str | None = _live(
        None, "--streams", metavar="N,N", help="Number of conversations at the same time, such as 1,2,4."
    ),
    rate: str | None = _live(
        None,
        "--rate",
        metavar="R,R",
        help="Number of conversations that begin per second, at random times. Use it instead of --streams.",
    ),
    arrivals: str | None = _live(
        None,
        "--arrivals",
        metavar="HOW",
        help=(
            "When conversations begin. With --rate: poisson (the default), constant or gamma:0.5. "
            "Without --rate: trace:FILE, a file with the start times."
        ),
    ),
    turn_end: str | None = _live(
        None,
        "--turn-end",
        metavar="WHO",
        help=(
            "What ends a turn: system (the measured system decides), oracle (the true end of speech), "
            "oracle:200ms (200 ms after it), or client-vad:energy:500ms (500 ms of silence)."
        ),
    ),
    silence: str | None = _live(
        None, "--silence", metavar="T", help="Silence that is sent after each utterance. The default is 2s."
    ),
    turns: int | None = _live(
        None,
        "--turns",
        metavar="N",
        help="Number of conversations in each stream. The default is one for each utterance.",
    ),
    duration: str | None = _live(
        None, "--duration", metavar="T", help="Start new conversations for this long, such as 10min."
    ),
    rounds: str | None = _rounds(
        None,
        "--rounds",
        metavar="N",
        help=(
            "Number of rounds. Each round measures every case in a fresh process. auto adds rounds until "
            "the confidence intervals are narrow enough (see --precision)."
        ),
    ),
    precision: str | None = _rounds(
        None,
        "--precision",
        metavar="SHARE",
        help="With --rounds auto: how wide an interval may be on either side of a value, such as 5%.",
    ),
    repeats: int | None = _rounds(
        None,
        "--repeats",
        metavar="N",
        help="Time exactly N calls in each round. Calls that the plan key `discard` drops are not counted.",
    ),
    quick: bool = _rounds(
        False, "--quick", help="Measure one round only. The results then have no confidence intervals."
    ),
    find: str | None = _find(
        None,
        "--find",
        metavar="WHAT",
        help="What to maximise: max-batch, max-seconds or max-frames that fit into memory; max-streams or max-rate "
        "that a live system carries within --slo.",
    ),
    slo: str | None = _find(
        None,
        "--slo",
        metavar="BOUNDS",
        help="Bounds for a live system, such as final_delay_p95_s=0.8,live_completeness=99%,keep_up=0.01.",
    ),
    find_most: float | None = _find(None, "--find-most", metavar="N", help="With --find: the largest value to try."),
    find_within: str | None = _find(
        None,
        "--find-within",
        metavar="SHARE",
        help="With --find: stop when the largest value that fits is known to this precision, such as 1%.",
    ),
    find_margin: str | None = _find(
        None,
        "--find-margin",
        metavar="SHARE",
        help=(
            "With --find: how far the size that is reported as safe is below the largest size that fits. "
            "The default is 5%."
        ),
    ),
    launcher: str = _where(
        "subprocess",
        "--launcher",
        metavar="LAUNCHER",
        help="subprocess, inline (in this process), or ray (on a cluster).",
        callback=one_of("subprocess", "inline", "ray"),
    ),
    processes: str = _where(
        "auto",
        "--processes",
        metavar="HOW",
        help=(
            "How measuring processes start: exec (each imports the libraries again), fork (the libraries "
            "are imported once for all processes; no cold start is measured), or auto (fork for memory and "
            "counts, exec for what is timed)."
        ),
        callback=one_of("auto", "exec", "fork"),
    ),
    address: str | None = _where(
        None,
        "--address",
        metavar="HOST:PORT",
        help=(
            "With --launcher ray: the address of the cluster, or auto for the cluster that this machine "
            "belongs to. The default is a new cluster on this machine only."
        ),
    ),
    trust: bool = _where(False, "--trust", help="Allow the plan to run the Python code and commands that it names."),
    offline: bool = _where(False, "--offline", help="Never use the network."),
    output: Path | None = _output(
        None, "-o", "--output", metavar="DIR", help="The run directory to write. The default is runs/<time>-<plan>."
    ),
    resume: bool = _output(
        False, "--resume", help="Continue the run in the output directory. Finished records are kept."
    ),
    retry_failed: bool = _output(False, "--retry-failed", help="With --resume: measure failed cases again."),
    force: bool = _output(False, "--force", help="Replace the run in the output directory."),
    strict: bool = _output(
        False, "--strict", help="Exit with 1 if any case fails. The default is to do so only if all fail."
    ),
    dry_run: bool = _output(False, "--dry-run", help="Measure nothing: list the cases and estimate the time."),
) -> None:
    """Measure a plan, or the models that --model names, or (with neither) a built-in tour.

    Options that take S,S or N,N accept several values: every combination is measured.

    \b
    Examples:
      speechmeter run --model log-mel --seconds 1,5 --batch 1,8
      speechmeter run --model transformers:openai/whisper-tiny --audio sample --meters latency,memory
      speechmeter run plans/audio-grid.yaml --device cuda -o runs/gpu
      speechmeter run --model known:live --data test.tsv --pace realtime --streams 1,2
      speechmeter run --model known:live --seconds 64 --pace realtime --find max-streams --slo keep_up=0.01
      speechmeter run plans/audio-grid.yaml --resume -o runs/gpu
    """
    from speechmeter.api import runs, starting
    from speechmeter.api.progress import progress
    from speechmeter.core.quality import PROFILES

    # other keys of the plan's `quality`, such as the normaliser, stay
    scored = [f"quality.scores=[{','.join(PROFILES[profile])}]"] if profile is not None else []
    study = starting.study_of(
        plan,
        models=model or [],
        axes={
            "seconds": seconds, "batch": batch, "device": device, "dtype": dtype, "threads": threads, "cores": cores,
            "compile": compile, "deterministic": deterministic, "boundary": boundary, "meters": meters,
            "pace": pace, "chunk": chunk, "streams": streams, "rate": rate,
        },
        keys={
            "audio": audio, "data": {"manifest": data} if data is not None else None, "precision": precision,
            "rounds": rounds, "repeats": repeats, "triangle": triangle, "find": find, "find_most": find_most,
            "find_within": find_within, "find_margin": find_margin, "turn_end": turn_end, "silence": silence,
            "turns": turns, "duration": duration, "arrivals": arrivals, "slo": slo,
        },
        sets=[*scored, *(set_ or [])], quick=quick, resumed=output if resume else None, trust=trust,
    )  # fmt: skip
    options = runs.Options(
        output=output, launcher=cast("Launcher", launcher), processes=cast("Processes", processes), address=address,
        resume=resume,
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
    if made.measured:  # tables of failures alone would only repeat the lines above
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
    from speechmeter.api.durations import forecast_words
    from speechmeter.report.numbers import counted

    if found.forecast is None:
        say("\n".join(found.search_lines))
        return
    more = f" (up to {found.most_rounds})" if found.most_rounds else ""
    for case, rounds in found.cases:
        say(f"{case.id}  {case.label}  · {counted(rounds, 'round')}{more}")
    for skip in (*found.skipped, *found.unavailable):
        say(f"{skip.case.id}  {skip.case.label}  · left out: {skip.reason}")
    cases = counted(len(found.cases) + len(found.unavailable), "case")
    say(
        f"{cases}, {len(found.skipped)} skipped, {len(found.unavailable)} unavailable; "
        f"{counted(found.forecast.total, 'measurement')}, {forecast_words(found.forecast)}"
    )
