"""`profile` and its kin: around a function, a class, a live object, or as `with profile() as p:` around a loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from speechmeter.api.profiling import wrapped
from speechmeter.api.profiling.modules_in import modules_of
from speechmeter.api.profiling.options import ANALYST, OPTIMISER, PLAIN, Options, Schedule
from speechmeter.api.profiling.result import Profile
from speechmeter.api.profiling.taking import Taking
from speechmeter.core.errors import InputError

_PENDING = "_speechmeter_pending"
"""Where `schedule` and `export` leave what a `profile` further out will read."""


def profile(
    target: Any = None,
    *,
    modules: Any = None,
    memory: bool | None = None,
    python_stacks: bool | None = None,
    flops: bool | None = None,
    folder: str | Path | None = None,
    name: str | None = None,
    **schedule: int,
) -> Any:
    """Record what runs: time by module, operator and kind of work; memory, Python's stacks and FLOPs if asked for.

    `@profile` on a function: every call is a step. On a class: calls of `fit`, `evaluate`, `generate` and `forward`.
    `profile(thing)` on a live object: use what is returned in its place. `with profile() as p:` around any code, with
    `p.step()` where a step of a loop ends. The first three steps are recorded; `wait`, `warmup`, `active` and `repeat`
    choose others. `modules` are a torch module or several by name; those that are called are found without being named.
    Whatever is profiled returns and raises what it always did, and has the result as `.profile`.
    """
    given = {"memory": memory, "python_stacks": python_stacks, "flops": flops}
    return _Profiling(PLAIN, given, schedule, folder, modules, name)._applied(target)


def profile_analyst(target: Any = None, **options: Any) -> Any:
    """`profile` with everything: memory over time, Python's stacks, and FLOPs where there is a warm-up step."""
    return _preset(ANALYST, target, options)


def profile_optimiser(target: Any = None, **options: Any) -> Any:
    """`profile` with what one needs to make a model smaller and faster: memory over time, and modules."""
    return _preset(OPTIMISER, target, options)


def _preset(base: Options, target: Any, options: Mapping[str, Any]) -> Any:
    given = {"memory": base.memory, "python_stacks": base.python_stacks, "flops": base.flops, **options}
    return profile(target, **given)


def schedule(target: Any = None, *, wait: int = 0, warmup: int = 1, active: int = 3, repeat: int = 1) -> Any:
    """Which steps a `profile` records: above or below it. Bare, one step of warm-up and three that are kept."""
    chosen = Schedule(wait=wait, warmup=warmup, active=active, repeat=repeat)
    return _adding({"schedule": chosen}, target)


def export(target: Any = None) -> Any:
    """Write what a `profile` above or below it records: `@export("folder")`; bare, into `profiles/<name>`."""
    if target is None or isinstance(target, str | Path):
        return _adding({"folder": None if target is None else Path(target)}, None)
    return _adding({"folder": None}, target)


def _adding(changes: Mapping[str, Any], target: Any) -> Any:
    def add(decorated: Any) -> Any:
        taking: Taking | None = getattr(decorated, wrapped.TAKING, None)
        if taking is not None:
            taking.options = replace(taking.options, **_settled(changes, taking.profile.name))
        else:
            setattr(decorated, _PENDING, {**getattr(decorated, _PENDING, {}), **changes})
        return decorated

    return add if target is None else add(target)


def _settled(changes: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A folder that was left open is named after what is profiled."""
    if "folder" in changes and changes["folder"] is None:
        return {**changes, "folder": Path("profiles") / name}
    return dict(changes)


class _Profiling:
    """What `profile(…)` gives without a target: a decorator and a context manager."""

    def __init__(
        self,
        base: Options,
        given: Mapping[str, bool | None],
        schedule_: Mapping[str, int],
        folder: str | Path | None,
        modules: Any,
        name: str | None,
    ) -> None:
        unknown = set(schedule_) - set(Schedule.__dataclass_fields__)
        if unknown:
            raise InputError(f"profile has no option {min(unknown)!r}", fix="see help(speechmeter.profile)")
        chosen = {key: value for key, value in given.items() if value is not None}
        self._options = replace(
            base, **chosen, schedule=Schedule(**schedule_), folder=None if folder is None else Path(folder)
        )
        self._modules = modules
        self._name = name
        self._taking: Taking | None = None
        self._stepped = False

    def __call__(self, target: Any) -> Any:
        """Decorate."""
        return self._applied(target)

    def _applied(self, target: Any) -> Any:
        if target is None:
            return self
        changes = _settled(getattr(target, _PENDING, {}), getattr(target, "__name__", type(target).__name__))
        options = replace(self._options, **changes)
        if isinstance(target, type):
            return wrapped.profiled_class(target, options)
        if hasattr(target, "__code__") or hasattr(target, "__func__") or hasattr(target, "__wrapped__"):
            return wrapped.profiled_function(target, options)
        if not callable(target) and not any(hasattr(target, name) for name in wrapped.METHODS):
            raise InputError(f"{target!r} is nothing that runs", fix="profile a function, a class or a model")
        return wrapped.ProfiledObject(target, options)

    def __enter__(self) -> Profile:
        self._taking = Taking(self._name or "block", self._options)
        self._stepped = False
        self._taking.open(self._roots())
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
        taking.close()

    def _next(self) -> None:
        assert self._taking is not None
        self._stepped = True
        self._taking.end()
        self._taking.begin()

    def _roots(self) -> dict[str, Any]:
        if isinstance(self._modules, Mapping):
            return dict(self._modules)
        return {} if self._modules is None else modules_of(self._modules)
