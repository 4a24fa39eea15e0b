"""Keys in messages, spelt as the flags of the command that was called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import typer

from speechmeter.core.errors import Spell, as_plan

_RUN = "run"


def as_typed(app: typer.Typer, argv: Sequence[str], where: str | None = None) -> Spell:
    """How a key is typed for the command in `argv`: `resume` is `--resume`, and any key of a plan is `--set key=value`.

    Keys of a plan stay as they are in a message about a line of a file: that is what its reader edits.
    """
    command: Any = typer.main.get_command(app)  # of the click that typer brings, under a name of its own
    for word in argv:
        command = getattr(command, "commands", {}).get(word, command)
    flags = {
        str(option.name).rstrip("_"): max(option.opts, key=len)
        for option in command.params
        if option.param_type_name == "option"
    }
    flags |= {"models": flags["model"]} if "model" in flags else {}
    in_file = where is not None and _LINE.search(where) is not None

    def spell(key: str, value: str) -> str:
        of_plan = command.name == _RUN and _is_plan_key(key)
        if of_plan and in_file:
            return as_plan(key, value)
        if key in flags:
            return f"{flags[key]} {value}".rstrip()
        if of_plan:
            return f"--set {key}={value}" if value else f"--set {key}"
        return as_plan(key, value)

    return spell


_LINE = re.compile(r":\d+$")


def _is_plan_key(key: str) -> bool:
    from speechmeter.core.axes import CORE_AXES, SHARED_AXES, axis_names
    from speechmeter.plan.schema import Plan

    return key != "name" and key.partition(".")[0] in {*Plan.model_fields, *axis_names((*CORE_AXES, *SHARED_AXES))}
