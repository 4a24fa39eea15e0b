"""`speechmeter tune`: the cheapest configuration that still does the job."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from speechmeter.cli.options import format_option, one_of, option_group
from speechmeter.cli.printing import console_for, note, print_tables, say

if TYPE_CHECKING:
    from speechmeter.api.starting import Launcher
    from speechmeter.api.tuning import Tuned

_GOALS = ("rtfx", "latency", "memory", "energy", "cost")
_what = option_group("What is tuned")
_where = option_group("Where it runs, and what it may do")
_output = option_group("Output, and continuing")


def tune(
    plan: Path | None = typer.Argument(None, metavar="PLAN.yaml", help="A plan. Options change its values."),
    model: str | None = _what(None, "--model", metavar="MODEL", help="The model, as for `speechmeter run`."),
    data: str | None = _what(None, "--data", metavar="LIST", help="A list of utterances, or a folder of audio files."),
    goal: str | None = _what(
        None,
        "--goal",
        metavar="GOAL",
        help="What to improve: rtfx (the default), latency, memory, energy, or cost (with --price).",
        callback=one_of(*_GOALS),
    ),
    keep: list[str] | None = _what(
        None,
        "--keep",
        metavar="BOUND",
        help="What must hold, such as 'wer<=+0.3' (percentage points against the default), 'memory<=4GiB', "
        "'latency_p95<=200ms' or 'outputs<=2%'. Repeatable.",
    ),
    over: str | None = _what(
        None,
        "--over",
        metavar="AXIS,AXIS",
        help="The axes to tune. The default is those of dtype,threads,batch,compile,quantize,beam that it has.",
    ),
    set_: list[str] | None = _what(
        None,
        "--set",
        metavar="KEY=VALUE",
        help="Set a plan key, such as threads=2,1: the default comes first. Repeatable.",
    ),
    device: str | None = _what(None, "--device", metavar="DEVICE", help="cpu, cuda or cuda:N."),
    within: str | None = _what(None, "--within", metavar="TIME", help="Time that measuring may take, such as 20min."),
    min_effect: str | None = _what(
        None, "--min-effect", metavar="SHARE", help="The smallest difference that matters. The default is 5%."
    ),
    price: float | None = _what(None, "--price", metavar="P", help="With --goal cost: the price of one machine hour."),
    launcher: str = _where(
        "subprocess",
        "--launcher",
        metavar="LAUNCHER",
        help="subprocess, or inline (in this process).",
        callback=one_of("subprocess", "inline"),
    ),
    trust: bool = _where(False, "--trust", help="Allow the plan to run the Python code and commands that it names."),
    offline: bool = _where(False, "--offline", help="Never use the network."),
    output: Path | None = _output(
        None, "-o", "--output", metavar="DIR", help="The run directory to write. The default is runs/<time>-<plan>."
    ),
    resume: bool = _output(False, "--resume", help="Continue the tuning in the output directory."),
    force: bool = _output(False, "--force", help="Replace the run in the output directory."),
    dry_run: bool = _output(False, "--dry-run", help="Measure nothing: list the configurations."),
    format: str = format_option("table", "markdown", "json"),
) -> None:
    """Find the configuration of a model that is best for a goal and still does the job.

    The configurations are the combinations of the axes. They are measured round by round, and those that are slower
    drop out. A configuration with other outputs is not chosen, unless --keep bounds a score and the data prove it.
    The gain comes from fresh rounds of the default and the chosen configuration.

    The exit code is 0 with an answer, 3 if it cannot be told whether another configuration is better than the default.

    \b
    Examples:
      speechmeter tune --model moonshine-voice --data test.tsv --keep 'wer<=+0.3' --within 20min
      speechmeter tune --model transformers:openai/whisper-small --data test.tsv --over dtype,batch
      speechmeter tune --resume -o runs/tuned
    """
    from speechmeter.api import starting, tuning
    from speechmeter.api.progress import progress

    asked = {
        "tune.goal": goal or (None if resume or plan is not None else "rtfx"),
        "tune.keep": keep or None,
        "tune.over": None if over is None else [name.strip() for name in over.split(",")],
        "tune.within": within,
        "tune.min_effect": min_effect,
        "tune.price": price,
        "data": None if data is None else {"manifest": data},
    }
    study = tuning.tuning_study(
        plan, models=[model] if model is not None else [], axes={"device": device}, keys=asked, sets=set_ or [],
        resumed=output if resume else None, trust=trust,
    )  # fmt: skip
    options = starting.Options(
        output=output, launcher=cast("Launcher", launcher), resume=resume, force=force, offline=offline
    )
    for line in starting.remarks(study, options):
        note(line)
    if dry_run:
        for line in [*tuning.before(study), *starting.outlook(study, options).search_lines]:
            say(line)
        return
    with progress(console_for(sys.stderr)) as watch:
        made = tuning.run_tuned(study, options, watch, note)
    _print(made, format)
    if made.exit_code:
        raise typer.Exit(made.exit_code)


def _print(made: Tuned, format: str) -> None:
    if format == "json":
        say(made.json())
        return
    print_tables(made.tables(), format)
    path = shlex.quote(str(made.run.path))
    say(f"\n{made.words}")
    say(f"the plan: {made.plan}")
    say(f"to measure it: {made.command}")
    say(f"all trials: speechmeter show {path} --metric summary")
