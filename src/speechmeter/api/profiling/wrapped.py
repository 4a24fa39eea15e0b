"""Functions, classes and live objects whose calls are steps of a profile. Results and exceptions pass through."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from speechmeter.api.profiling.modules_in import module_type, modules_in_call, modules_of
from speechmeter.api.profiling.options import Options
from speechmeter.api.profiling.result import Profile
from speechmeter.api.profiling.taking import Taking
from speechmeter.core.errors import InputError
from speechmeter.core.plugins import nearest

TAKING = "_speechmeter_taking"
"""Where a wrapped function or class keeps what it records with."""
METHODS = ("fit", "evaluate", "generate")
"""Methods of a class whose calls are recorded; of a torch module also the call itself, of anything else `forward`."""
LOOPS, STEPS = ("fit", "evaluate"), ("fit_batch", "evaluate_batch")
"""Methods that go through batches, and those they call for each, as SpeechBrain's do: each batch is then a step."""
FORWARD = "forward"
"""What calls of a model are listed under."""


def profiled_function(function: Callable[..., Any], options: Options) -> Callable[..., Any]:
    """The same function; every call is a step. Raises InputError for what returns before its work is done."""
    if _returns_early(function):
        raise InputError(
            f"{function.__qualname__} is a generator or coroutine, which returns before its work is done",
            fix="use `with speechmeter.profile()` inside it",
        )
    taking = Taking(function.__qualname__.rpartition("<locals>.")[2], options)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with taking.step(modules_in_call(function, args, kwargs)):
            return function(*args, **kwargs)

    wrapper.profile = taking.profile  # type: ignore[attr-defined]
    setattr(wrapper, TAKING, taking)
    return wrapper


def _returns_early(function: Any) -> bool:
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return any(is_kind(function) for is_kind in kinds)


def profiled_class(kind: type, options: Options) -> type:
    """A subclass of the same name. The given class is not changed."""
    if hasattr(kind, "profile"):
        raise InputError(
            f"{kind.__qualname__} already has an attribute `profile`",
            fix="profile an instance instead of the class: profile(instance)",
        )
    taking = Taking(kind.__name__, options)
    if options.class_hooks is None:
        names = [name for name in (*METHODS, FORWARD) if callable(getattr(kind, name, None))]
    else:
        names = _checked(kind, options.class_hooks, kind.__qualname__)
    if not names:
        raise InputError(
            f"{kind.__qualname__} has none of the methods {', '.join((*METHODS, FORWARD))}",
            fix="list its methods: class_hooks=['transcribe_batch']",
        )
    # hooks of a module run around `forward`, not in it
    attributes = {name: "__call__" if name == FORWARD and _is_module(kind) else name for name in names}
    body = {
        **{attribute: _method(kind, attribute, name, taking) for name, attribute in attributes.items()},
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "profile": taking.profile,
        TAKING: taking,
    }
    return type(kind)(kind.__name__, (kind,), body)


def _checked(owner: Any, hooks: Sequence[str], name: str) -> list[str]:
    for hook in hooks:
        if not callable(getattr(owner, hook, None)):
            public = [one for one in dir(owner) if not one.startswith("_")]
            methods = [one for one in public if inspect.isroutine(inspect.getattr_static(owner, one, None))]
            raise InputError(f"class_hooks: {name} has no method {hook!r}", fix=nearest(hook, methods))
        if _returns_early(getattr(owner, hook)):
            raise InputError(f"class_hooks: {name}.{hook} returns before its work is done", fix="leave it out")
    return list(hooks)


def _is_module(kind: type) -> bool:
    return any(base.__module__.startswith("torch.nn.modules") for base in kind.__mro__)


def _method(kind: type, attribute: str, name: str, taking: Taking) -> Callable[..., Any]:
    original = getattr(kind, attribute)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        with recorded(self, name, taking):
            return original(self, *args, **kwargs)

    return method


class ProfiledObject:
    """A live object whose public methods are recorded; everything else is the object's own, and it is left as it is."""

    def __init__(self, target: Any, options: Options) -> None:
        name = type(target).__name__
        if options.class_hooks is not None:
            _checked(target, options.class_hooks, name)
        elif not callable(target) and not any(_is_public_method(target, one) for one in dir(target)):
            raise InputError(f"{target!r} is not callable", fix="profile a function, a class or a model")
        vars(self)[TAKING] = Taking(name, options)
        vars(self)["target"] = target

    @property
    def profile(self) -> Profile:
        """What was recorded."""
        taking: Taking = vars(self)[TAKING]
        return taking.profile

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the object."""
        taking: Taking = vars(self)[TAKING]
        hooks = taking.profile.options.class_hooks
        if hooks is not None and FORWARD not in hooks:
            return self.target(*args, **kwargs)
        with recorded(self.target, FORWARD, taking):
            return self.target(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        value, taking = getattr(self.target, name), vars(self)[TAKING]
        hooks = taking.profile.options.class_hooks
        if not (_is_public_method(self.target, name) if hooks is None else name in hooks):
            return value
        called = self.target if name == FORWARD and _is_module(type(self.target)) else value

        @functools.wraps(value)
        def method(*args: Any, **kwargs: Any) -> Any:
            with recorded(self.target, name, taking):
                return called(*args, **kwargs)

        return method

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.target)})

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.target, name, value)

    def __repr__(self) -> str:
        return f"profiled {self.target!r}"


def _is_public_method(target: Any, name: str) -> bool:
    """Whether calls of it are recorded unless others were named. What every torch module has (`eval`, `to`) is not."""
    if name.startswith("_") or name == TAKING:
        return False
    base = module_type()
    if base is not None and isinstance(target, base) and name != FORWARD and hasattr(base, name):
        return False
    method = inspect.getattr_static(target, name, None)  # a property is not evaluated
    return inspect.isfunction(method) and name not in getattr(target, "__dict__", {}) and not _returns_early(method)


@contextmanager
def recorded(target: Any, method: str, taking: Taking) -> Iterator[None]:
    """One call of a method: its batches are the steps where the object has methods for them, else it is one itself."""
    roots = modules_of(target)
    batches = [name for name in STEPS if callable(getattr(target, name, None))]
    if method not in LOOPS or not batches or _is_module(type(target)):
        with taking.step(roots, method):
            yield
        return
    # steps of `fit_batch` in `fit` are listed under `fit`, those of its `evaluate_batch` under a name of their own
    kinds = {name: method if name.startswith(method) else f"{method}.{name}" for name in batches}
    with taking.run(roots), _stepping(target, kinds, taking):
        yield
    if not any(taking.profile.seen_by_kind.values()):
        taking.profile.of(method).refused = f"no step was recorded: {method} did not call {' or '.join(batches)}"


@contextmanager
def _stepping(target: Any, kinds: Mapping[str, str], taking: Taking) -> Iterator[None]:
    """While this is open these methods of the object are steps of these kinds."""
    before = {name: vars(target)[name] for name in kinds if name in vars(target)}
    for name, kind in kinds.items():
        setattr(target, name, _step(getattr(target, name), kind, taking))
    try:
        yield
    finally:
        for name in kinds:
            if name in before:
                setattr(target, name, before[name])
            else:
                delattr(target, name)


def _step(method: Callable[..., Any], kind: str, taking: Taking) -> Callable[..., Any]:
    @functools.wraps(method)
    def step(*args: Any, **kwargs: Any) -> Any:
        with taking.step({}, kind):
            return method(*args, **kwargs)

    return step
