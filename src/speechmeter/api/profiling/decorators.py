"""`profile` and its kin: around a function, a class, a live object, or as `with profile() as p:` around a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from speechmeter.api.profiling import wrapped
from speechmeter.api.profiling.options import (
    ANALYST,
    EXPORT_WORDS,
    OPTIMISER,
    PLAIN,
    SCHEDULE_WORDS,
    Options,
    Schedule,
    export_from,
    in_our_words,
    options_from,
)
from speechmeter.api.profiling.result import Profile
from speechmeter.api.profiling.taking import Taking
from speechmeter.core.errors import InputError

_PENDING = "_speechmeter_pending"
"""Where `schedule` and `export` leave what a `profile` further out will read."""


def profile(
    target: Any = None,
    *,
    name: str | None = None,
    modules: Any = None,
    class_hooks: Iterable[str] | None = None,
    memory: bool | None = None,
    python_stacks: bool | None = None,
    flops: bool | None = None,
    folder: str | Path | None = None,
    **more: Any,
) -> Any:
    """Profile a function, a class, an object or a block: time by module, operator and kind of work.

    Memory, Python stacks and FLOPs are recorded if you ask for them.

    - `@profile` on a function: every call is a step.
    - `@profile` on a class: calls of `fit`, `evaluate`, `generate` and `forward`, or of the methods in `class_hooks`.
    - `profile(thing)` for an object: calls of every public method. Use the object that is returned.
    - `with profile() as p:` around any code; call `p.step()` at the end of each step of a loop.

    The first step is not recorded, the next three are. `wait`, `warmup`, `active`, `repeat` and `skip_first` choose
    other steps; `warmup=0` also records the first. `name` names the profile. `modules` is a torch module, or a dict of
    several by name; modules that are called are found without it. `profile_memory`, `with_stack`, `with_flops`,
    `record_shapes`, `activities`, `schedule`, `on_trace_ready`, `dir_name`, `worker_name` and `use_gzip` mean the same
    as in torch's profiler and in SpeechBrain's decorators. What you profile returns and raises the same as before; the
    result is its attribute `profile`. Raises InputError for an unknown option.
    """
    given = {
        "name": name, "modules": modules, "class_hooks": class_hooks, "memory": memory,
        "python_stacks": python_stacks, "flops": flops, "folder": folder, **more,
    }  # fmt: skip
    return _profiling(PLAIN, target, given)


def profile_analyst(target: Any = None, **options: Any) -> Any:
    """`profile` with everything: also memory over time, Python stacks, and FLOPs (counted in the second step)."""
    return _profiling(ANALYST, target, options)


def profile_optimiser(target: Any = None, **options: Any) -> Any:
    """`profile` with memory over time: for making a model smaller and faster."""
    return _profiling(OPTIMISER, target, options)


def _profiling(base: Options, target: Any, given: Mapping[str, Any]) -> Any:
    options = options_from(base, {word: one for word, one in given.items() if not isinstance(one, _Addition)})
    for one in given.values():
        options = replace(options, **one.changes) if isinstance(one, _Addition) else options
    made = _Profiling(options)
    return made if target is None else made(target)


def schedule(target: Any = None, **numbers: int) -> Any:
    """Choose the steps that `profile` records: a decorator above or below it, or `profile(schedule=schedule(…))`.

    Takes `wait`, `warmup`, `active`, `repeat` and `skip_first`. Default: one step of warm-up, then three are recorded.
    """
    return _adding({"schedule": Schedule(**in_our_words(numbers, SCHEDULE_WORDS, "schedule"))}, target)


def export(target: Any = None, **options: Any) -> Any:
    """Write what `profile` records into files: a decorator, or `profile(on_trace_ready=export(…))`.

    `@export("folder")`, or `@export` for `profiles/<name>`. Takes `folder` or `dir_name`, `worker_name` (the name of
    the trace) and `use_gzip`.
    """
    given = {"folder": target, **options} if isinstance(target, str | Path) else options
    asked = export_from(in_our_words(given, EXPORT_WORDS, "export"))
    return _adding({"export": asked}, None if isinstance(target, str | Path) else target)


def _adding(changes: Mapping[str, Any], target: Any) -> Any:
    addition = _Addition(changes)
    return addition if target is None else addition(target)


class _Addition:
    """What `schedule(…)` and `export(…)` give without a target: a decorator, and a value for options of `profile`."""

    def __init__(self, changes: Mapping[str, Any]) -> None:
        self.changes = changes

    def __call__(self, decorated: Any) -> Any:
        """Decorate: change the `profile` inside, or leave the change for the one outside to find."""
        taking: Taking | None = getattr(decorated, wrapped.TAKING, None)
        if taking is not None:
            taking.profile.options = replace(taking.profile.options, **self.changes)
            return decorated
        try:
            setattr(decorated, _PENDING, {**getattr(decorated, _PENDING, {}), **self.changes})
        except AttributeError:  # a bound method, say
            raise InputError(
                f"schedule and export cannot be attached to {decorated!r}",
                fix="apply `profile` first, then `schedule` and `export`",
            ) from None
        return decorated


class _Profiling:
    """What `profile(…)` gives without a target: a decorator and a context manager."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._taking: Taking | None = None
        self._stepped = False

    def __call__(self, target: Any) -> Any:
        """Decorate."""
        options = replace(self._options, **getattr(target, _PENDING, {}))
        if isinstance(target, type):
            return wrapped.profiled_class(target, options)
        if hasattr(target, "__code__") or hasattr(target, "__func__") or hasattr(target, "__wrapped__"):
            return wrapped.profiled_function(target, options)
        return wrapped.ProfiledObject(target, options)

    def __enter__(self) -> Profile:
        self._taking = Taking("block", self._options)
        self._stepped = False
        self._taking.open({})
        self._taking.begin()
        self._taking.profile._next = self._next
        return self._taking.profile

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        taking = self._taking
        assert taking is not None
        taking.profile._next = None
        taking.profile.failed = error
        if not self._stepped:
            taking.end()
        taking.close(one_step=not self._stepped)

    def _next(self) -> None:
        assert self._taking is not None
        self._stepped = True
        self._taking.end()
        self._taking.begin()
