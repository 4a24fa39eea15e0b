"""How the command words an error: keys as the flags of the command that was called, and how to continue a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from speechmeter.core.errors import Spell, StoppedRun, as_plan

_OF_PLANS = ("run", "tune")
"""Commands that take any key of a plan with `--set`, and that continue a run with `--resume`."""
_LINE_OF_FILE = re.compile(r":\d+$")


def as_typed(app: typer.Typer, argv: Sequence[str], where: str | None = None, own: str | None = None) -> Spell:
    """How a key is typed for the command in `argv`: `resume` is `--resume`, and any key of a plan is `--set key=value`.

    `own` is the key that the error is about: one of a plan, unless it is a flag. Keys of a plan stay as they are in a
    message about a line of a file: that is what its reader edits.
    """
    command: Any = typer.main.get_command(app)  # of the click that typer brings, under a name of its own
    for word in argv:
        command = getattr(command, "commands", {}).get(word, command)
    flags = {str(option.name).rstrip("_"): option for option in command.params if option.param_type_name == "option"}
    flags |= {"models": flags["model"]} if "model" in flags else {}
    takes_source = any(argument.name == "source" for argument in command.params)
    in_file = where is not None and _LINE_OF_FILE.search(where) is not None

    def spell(key: str, value: str) -> str:
        of_plan = command.name in _OF_PLANS and (key == own or _is_plan_key(key))
        if of_plan and in_file:
            return as_plan(key, value)
        if key in flags and not (of_plan and value.startswith("{")):  # a flag takes no mapping
            return _flag(flags[key], value)
        if key == "data" and takes_source:
            return "SOURCE"
        if of_plan:
            return f"--set {shlex.quote(f'{key}={value}')}" if value else f"--set {key}"
        return as_plan(key, value)

    return spell


def _flag(option: Any, value: str) -> str:
    """A flag with its value as a shell takes it: a list with commas, and `--no-…` for a switch that is false."""
    if option.is_flag:
        names = option.secondary_opts if value == "false" and option.secondary_opts else option.opts
        return str(max(names, key=len))
    if value.startswith("["):
        value = value.strip("[]").replace(", ", ",")
    return f"{max(option.opts, key=len)} {value}".rstrip()


def _is_plan_key(key: str) -> bool:
    from speechmeter.core.axes import CORE_AXES, SHARED_AXES, axis_names
    from speechmeter.plan.schema import Plan

    return key != "name" and key.partition(".")[0] in {*Plan.model_fields, *axis_names((*CORE_AXES, *SHARED_AXES))}


def stop_lines(stop: StoppedRun, argv: Sequence[str], spell: Spell = as_plan) -> str:
    """What a run that ended early leaves: how far it came, where it is, and the commands that show and continue it.

    `argv` are the words behind `speechmeter` that began it.
    """
    lines = [f"speechmeter: {stop.message(spell)}"]
    if stop.run is not None:
        lines.append(f"to see what was measured: speechmeter show {shlex.quote(str(stop.run))}")
        if argv and argv[0] in _OF_PLANS:
            lines.append(f"to continue: {resume_command(argv, stop.run, stop.resume_with)}")
    return "\n".join(lines)


def resume_command(argv: Sequence[str], run: Path, options: Mapping[str, str] | None = None) -> str:
    """The same words with `--resume -o RUN`, quoted for a shell. `options` replace those that were given."""
    replaced = {f"--{key.replace('_', '-')}": value for key, value in (options or {}).items()}
    words = [word for option in replaced.items() for word in option]
    kept: list[str] = []
    given = iter(argv)
    for word in given:
        flag, equals, _ = word.partition("=")
        if flag in ("-o", "--output", *replaced):  # its value is a word of its own, or joined to it: `--output=a`
            if not equals:
                next(given, None)
        elif word not in {"--resume", "--force"} and not (word.startswith("-o") and not word.startswith("--")):
            kept.append(word)
    return shlex.join(["speechmeter", *kept, *words, "--resume", "-o", str(run)])
