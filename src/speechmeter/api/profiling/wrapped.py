"""Functions, classes and live objects whose calls are steps of a profile. Results and exceptions pass through."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from speechmeter.api.profiling.modules_in import modules_in_call, modules_of
from speechmeter.api.profiling.options import Options
from speechmeter.api.profiling.result import Profile
from speechmeter.api.profiling.taking import Taking
from speechmeter.core.errors import InputError

TAKING = "_speechmeter_taking"
"""Where a wrapped function or class keeps what it records with."""
METHODS = ("fit", "evaluate", "generate")
"""Methods whose calls are recorded; of a torch module also the call itself, of anything else `forward`."""
STEPS = ("fit_batch", "evaluate_batch")
"""Methods that the ones above may call, as SpeechBrain's do: each call is then a step, and the rest is none."""


def profiled_function(function: Callable[..., Any], options: Options) -> Callable[..., Any]:
    """The same function; every call is a step. Raises InputError for what returns before its work is done."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise InputError(
            f"{function.__qualname__} returns before its work is done", fix="use `with speechmeter.profile()` inside it"
        )
    taking = Taking(_name(function), options)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with taking.step(modules_in_call(function, args, kwargs)):
            return function(*args, **kwargs)

    wrapper.profile = taking.profile  # type: ignore[attr-defined]
    setattr(wrapper, TAKING, taking)
    return wrapper


def _name(function: Callable[..., Any]) -> str:
    return function.__qualname__.rpartition("<locals>.")[2]


def profiled_class(kind: type, options: Options) -> type:
    """A class of the same name below the given one, which stays as it was."""
    if hasattr(kind, "profile"):
        raise InputError(f"{kind.__qualname__} has a `profile` of its own", fix="profile an object of it: profile(it)")
    taking = Taking(kind.__name__, options)
    methods = {name: _method(kind, name, taking) for name in _recorded(kind)}
    if not methods:
        raise InputError(
            f"{kind.__qualname__} has none of {', '.join((*METHODS, 'forward'))}", fix="profile one of its methods"
        )
    body = {
        **methods,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "profile": taking.profile,
        TAKING: taking,
    }
    return type(kind)(kind.__name__, (kind,), body)


def _recorded(kind: type) -> list[str]:
    call = "__call__" if _is_module(kind) else "forward"
    return [name for name in (*METHODS, call) if callable(getattr(kind, name, None))]


def _is_module(kind: type) -> bool:
    return any(base.__module__.startswith("torch.nn.modules") for base in kind.__mro__)


def _method(kind: type, name: str, taking: Taking) -> Callable[..., Any]:
    original = getattr(kind, name)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        with recorded(self, taking):
            return original(self, *args, **kwargs)

    return method


class ProfiledObject:
    """A live object whose calls are recorded; everything else is the object's own, and it is left as it is."""

    def __init__(self, target: Any, options: Options) -> None:
        vars(self)[TAKING] = Taking(type(target).__name__, options)
        vars(self)["target"] = target

    @property
    def profile(self) -> Profile:
        """What was recorded."""
        taking: Taking = vars(self)[TAKING]
        return taking.profile

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the object."""
        with recorded(self.target, vars(self)[TAKING]):
            return self.target(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.target, name)
        if name not in (*METHODS, "forward") or not callable(value):
            return value
        called = self.target if name == "forward" and _is_module(type(self.target)) else value

        @functools.wraps(value)
        def method(*args: Any, **kwargs: Any) -> Any:
            with recorded(self.target, vars(self)[TAKING]):
                return called(*args, **kwargs)

        return method

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.target, name, value)

    def __repr__(self) -> str:
        return f"profiled {self.target!r}"


@contextmanager
def recorded(target: Any, taking: Taking) -> Iterator[None]:
    """One call of an object: its batches are the steps where it has methods for them, else it is one itself."""
    roots = modules_of(target)
    names = [name for name in STEPS if callable(getattr(target, name, None))]
    if not names or _is_module(type(target)):
        with taking.step(roots):
            yield
        return
    with taking.run(roots), _stepping(target, names, taking):
        yield


@contextmanager
def _stepping(target: Any, names: list[str], taking: Taking) -> Iterator[None]:
    """While this is open these methods of the object are steps."""
    before = {name: vars(target)[name] for name in names if name in vars(target)}
    for name in names:
        setattr(target, name, _step(getattr(target, name), taking))
    try:
        yield
    finally:
        for name in names:
            if name in before:
                setattr(target, name, before[name])
            else:
                delattr(target, name)


def _step(method: Callable[..., Any], taking: Taking) -> Callable[..., Any]:
    @functools.wraps(method)
    def step(*args: Any, **kwargs: Any) -> Any:
        with taking.step({}):
            return method(*args, **kwargs)

    return step
