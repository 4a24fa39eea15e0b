"""Plug-ins by entry point, imported when they are asked for; and how a plan names a model that one of them loads."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from speechmeter.core.errors import InputError, PlanError, SubjectError, command_line
from speechmeter.core.metrics import Metric, find, register
from speechmeter.core.protocols import FEATURES, SHAPES, SOUND, TEXT, Fed, Meter, Phase, Subject, Workload
from speechmeter.core.types import Case

SUBJECTS = "speechmeter.subjects"
WORKLOADS = "speechmeter.workloads"
METERS = "speechmeter.meters"


@cache
def _found(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def names(group: str) -> list[str]:
    """Names of all plug-ins of a group, sorted."""
    return sorted(_found(group))


@cache
def _load(group: str, name: str) -> Any:
    point = _found(group).get(name)
    kind = group.rpartition(".")[2].removesuffix("s")
    if point is None and group == METERS and (metric := find(name)) is not None:
        show = command_line("show", "RUN", metric=name)
        raise PlanError(f"{name!r} is a metric, not a meter", fix=f"use `meters: {_meter_of(metric)}`, then {show}")
    if point is None:
        word = "model" if group == SUBJECTS else kind
        raise PlanError(f"there is no {word} {name!r}", fix=nearest(name, names(group)))
    try:
        return point.load()()
    except InputError:
        raise
    except Exception as error:
        raise PlanError(
            f"the {kind} plug-in {name!r} ({point.value}) cannot be imported: {type(error).__name__}: {error}",
            fix="update or uninstall the package that provides it",
        ) from error


def _meter_of(metric: Metric) -> str:
    """The meter to use for a metric: the one it is named after, or that gives it; others are derived from latency."""
    for name in names(METERS):
        with suppress(InputError):
            if metric.name.startswith(name) or metric in meter(name).metrics:
                return name
    return "latency"


def subject(name: str) -> Subject:
    """The subject plug-in of that name; PlanError with the nearest name when there is none."""
    return cast(Subject, _complete(_load(SUBJECTS, name), Subject, name))


def runs_code(name: str, options: Mapping[str, Any]) -> bool:
    """Whether a model with these options executes what its plan names: code, or a command."""
    found = subject(name)
    return found.runs_code or any(one.runs_code and options.get(one.name) is not None for one in found.options)


def workload(name: str) -> Workload:
    """The workload plug-in of that name; PlanError with the nearest name when there is none."""
    return cast(Workload, _complete(_load(WORKLOADS, name), Workload, name))


def _complete(found: Any, protocol: type, name: str) -> Any:
    """The plug-in, which has all that its protocol asks for; PlanError when it was made for an earlier version."""
    if not isinstance(found, protocol):
        members = [*getattr(protocol, "__annotations__", {}), *(m for m in vars(protocol) if not m.startswith("_"))]
        missing = next(member for member in members if not hasattr(found, member))
        raise PlanError(
            f"the {protocol.__name__.lower()} plug-in {name!r} has no `{missing}`",
            fix="update the package that provides it (docs/howto/plugins.md lists what a plug-in has)",
        )
    return found


def meter(name: str) -> Meter:
    """The meter plug-in of that name, its metrics registered; PlanError when there is none, or it has no phase."""
    found = cast(Meter, _load(METERS, name))
    if not isinstance(getattr(found, "phase", None), Phase):  # one for an earlier version has `process(case)` instead
        raise PlanError(
            f"the meter plug-in {name!r} ({type(found).__module__}:{type(found).__name__}) has no phase",
            fix="update the package that provides it, or set `phase = Phase.TIMING` in it (see docs/howto/plugins.md)",
        )
    register(found.metrics)
    return found


def nearest(word: str, choices: list[str]) -> str:
    """The way out for a misspelt word: the nearest valid one, else all of them."""
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return "choose from: " + ", ".join(choices)


_TEXT_TO_SPEAK = "add `text:` to the plan, for example `text: {lines: sentences.txt}`, a file with a text on each line"
_WAYS_OUT = {
    SOUND: "use `audio:` or `data:`",
    FEATURES: "add `features:` to the plan, for example `features: {bands: 80}`",
    TEXT: "add `text:` to the plan, for example `text: {vocabulary: 1000}`",
    SHAPES: "add `shapes:` to the plan, for example `shapes: {steps: 20}`",
}


def fed_by(case: Case) -> Fed:
    """What a case's workload feeds; no kinds where that is unknown, as between the stages of a cascade."""
    if case.workload.plugin in names(WORKLOADS):
        with suppress(InputError):  # data that cannot be used: the workload's own check says why
            return workload(case.workload.plugin).feeds(case)
    return Fed()


def check_input(case: Case) -> None:
    """Raise SubjectError when a model takes none of what its workload feeds: it would run on, and measure nothing."""
    fed, taken = fed_by(case).kinds, subject(case.subject.plugin).takes
    if fed and taken and not set(fed) & set(taken):
        raise SubjectError(
            f"{case.subject.name} needs {' or '.join(taken)} as input, "
            f"but `{case.workload.plugin}:` provides {' or '.join(fed)}",
            fix=_TEXT_TO_SPEAK if taken[0] == TEXT and case.live is not None else _WAYS_OUT[taken[0]],
        )


def default_name(load: str) -> str:
    """`python:dir/mine.py:make` → `mine:make`, `log-mel` → `log-mel`."""
    plugin, _, source = load.partition(":")
    if not source:
        return plugin
    path, colon, factory = source.partition(":")
    stem = path.rstrip("/").rpartition("/")[2]
    return stem.removesuffix(".py").removesuffix(".json") + colon + factory


def split_name(text: str) -> tuple[str | None, str]:
    """(name, load) of `NAME=LOAD`, as models are given outside of a plan file; the name is None for a load alone.

    A name comes before the plug-in, so that an equals sign behind the first colon is part of the source:
    `transformers:a=b` has no name. Raises PlanError for an empty name or load.
    """
    before = text.partition(":")[0]
    name, equals, _ = before.partition("=")
    if not equals:
        return None, text
    name, load = name.strip(), text.partition("=")[2].strip()
    if not name or not load:
        raise PlanError(f"{text!r} is not NAME=MODEL", key="models", fix="for example mine=python:mine.py:make")
    return name, load


_INTERPRETER = re.compile(r"(?s)(.+)@((?:.*/)?(?:python|pypy)[\w.-]*)")


def split_interpreter(load: str) -> tuple[str, str | None]:
    """(load, interpreter) of `LOAD@PYTHON`, as models are given outside of a plan file; None without one.

    The name of the interpreter's file begins with `python` or `pypy`: an @ in a path or in an address is no separator.
    """
    found = _INTERPRETER.fullmatch(load)
    return (load, None) if found is None else (found[1], found[2])


def joined_name(name: str, load: str) -> str | None:
    """`NAME=LOAD` for a model of this name; None for a name that `split_name` would not read back."""
    plain = bool(name) and name == name.strip() and not set(":=") & set(name)
    return f"{name}={load}" if plain else None
