"""Torch's profiler, started here and nowhere else, and a range around every call of every module while it runs.

Only forward hooks are used: full backward hooks lose modules whose input takes no gradient, which is the usual case
for sound. Afterwards the model is as it was. Imports torch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from speechmeter.core.machine import note_profiler
from speechmeter.core.traces import STEP
from speechmeter.meters.recording.events import events_of
from speechmeter.meters.recording.label import MODULE, PARAMETER
from speechmeter.meters.recording.recording import Needs, Recording

Step = Callable[[], Any]
Range = Callable[[str], Any]
OPEN: Range = getattr(torch._C._profiler, "_RecordFunctionFast", record_function)
"""Opens a range. The fast one is private to torch and halves what the hooks cost; the public one does the same."""


@contextmanager
def profiling(needs: Needs, *, cuda: bool, kind: type[profile] = profile) -> Iterator[Any]:
    """Torch's profiler on the CPU and, if `cuda`, on the GPU. It records what is needed and nothing else."""
    note_profiler()
    with kind(
        activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])],
        record_shapes=needs.shapes,
        profile_memory=needs.memory,
        with_stack=needs.stacks,
    ) as running:
        yield running


def recorded(
    first: Step,
    steps: Sequence[Step],
    roots: Mapping[str, Any],
    needs: Needs,
    *,
    cuda: bool,
    patterns: Sequence[str] = (),
) -> Recording:
    """One recording of the steps, one after another, each to the end of its work. `roots` are modules by name.

    `first` is run before them: it pays for the profiler's start and belongs to no step. For what ran, not for latency.
    """
    with module_ranges(roots if needs.modules else {}, patterns) as classes, profiling(needs, cuda=cuda) as running:
        first()
        for number, step in enumerate(steps):
            with record_function(f"{STEP}{number}"):
                step()
    return Recording(
        profile=running, events=events_of(running), steps=len(steps), classes=classes, needs=needs, on_cuda=cuda
    )


def count_events(step: Step, roots: Mapping[str, Any], needs: Needs, *, cuda: bool) -> int:
    """How many events the profiler keeps of one step. Events take memory, and time to read."""
    with module_ranges(roots if needs.modules else {}), profiling(needs, cuda=cuda) as running:
        step()
    return len(running.profiler.kineto_results.events())


def named_modules(roots: Mapping[str, Any], known: Collection[int] = ()) -> dict[str, torch.nn.Module]:
    """Path → module, of the roots and all that is inside them; one that has several paths is under the first.

    What is inside a compiled module has no path: hooks there would change what was compiled, or be ignored. Modules
    whose ids are `known` are left out, with what is inside them.
    """
    found: dict[str, torch.nn.Module] = {}
    seen = set(known)

    def walk(path: str, module: torch.nn.Module) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        found[path] = module
        if not is_compiled(module):
            for name, child in module.named_children():
                walk(f"{path}.{name}", child)

    for name, root in roots.items():
        if isinstance(root, torch.nn.Module):
            walk(name, root)
    return found


def is_compiled(module: Any) -> bool:
    """Whether torch.compile runs this module, as a wrapper or through `module.compile()`."""
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


@contextmanager
def module_ranges(
    roots: Mapping[str, Any], patterns: Sequence[str] = (), open_range: Range = OPEN, known: Collection[int] = ()
) -> Iterator[dict[str, str]]:
    """Ranges for every module while this is open; returns path → class. Hooks that are there keep working.

    With patterns only for modules that match one of them, `*` meaning anything; the time of the others belongs to the
    module around them. Modules with `known` ids have ranges already. Afterwards the tables of hooks are as they were,
    whatever was raised.
    """
    everything = named_modules(roots, known)
    modules = {
        path: module
        for path, module in everything.items()
        if not patterns or any(fnmatchcase(path, pattern) for pattern in patterns)
    }
    opened = _Opened(open_range)
    with ExitStack() as undo:
        for path, module in modules.items():
            if module._compiled_call_impl is not None:
                _wrap_compiled(path, module, open_range, undo)
                continue
            before = module.register_forward_pre_hook(opened.enter(path), prepend=True)
            undo.callback(before.remove)
            after = module.register_forward_hook(opened.leave, always_call=True)
            undo.callback(after.remove)
        for path, parameter in _owned_parameters(everything):
            nearest = path  # or the nearest module around it that has a range
            while nearest and nearest not in modules:
                nearest = nearest.rpartition(".")[0]
            if nearest:
                _mark_gradient(nearest, parameter, open_range, undo)
        # of a compiled module, the class of what was compiled
        yield {path: type(getattr(module, "_orig_mod", module)).__name__ for path, module in modules.items()}


def _owned_parameters(modules: Mapping[str, torch.nn.Module]) -> list[tuple[str, torch.nn.Parameter]]:
    """Those that take a gradient, each with the path of its module; a tied one with the first."""
    owned: dict[int, tuple[str, torch.nn.Parameter]] = {}
    for path, module in modules.items():
        for parameter in module.parameters(recurse=is_compiled(module)):
            if parameter.requires_grad and parameter.is_leaf:
                owned.setdefault(id(parameter), (path, parameter))
    return list(owned.values())


def _wrap_compiled(path: str, module: torch.nn.Module, open_range: Range, undo: ExitStack) -> None:
    """`module.compile()` calls its hooks from compiled code, where no range can be opened: go around that call."""
    compiled = module._compiled_call_impl

    def call(*args: Any, **kwargs: Any) -> Any:
        with open_range(MODULE + path):
            return compiled(*args, **kwargs)

    module._compiled_call_impl = call
    undo.callback(setattr, module, "_compiled_call_impl", compiled)


def _mark_gradient(path: str, parameter: torch.nn.Parameter, open_range: Range, undo: ExitStack) -> None:
    """A mark inside the node that adds up a parameter's gradient: nothing else says whose gradient it is."""
    name, before = PARAMETER + path, parameter._post_accumulate_grad_hooks

    def mark(_: Any) -> None:
        with open_range(name):
            pass

    handle = parameter.register_post_accumulate_grad_hook(mark)
    if before is None:  # torch leaves an empty table where there was none
        undo.callback(setattr, parameter, "_post_accumulate_grad_hooks", None)
    undo.callback(handle.remove)


class _Opened(threading.local):
    """The ranges that are open in this thread, the innermost last."""

    def __init__(self, open_range: Range) -> None:
        self.open_range = open_range
        self.stack: list[tuple[int, Any]] = []

    def enter(self, path: str) -> Callable[..., None]:
        """The hook before a call."""
        name = MODULE + path

        def hook(module: Any, _: Any) -> None:
            opened = self.open_range(name)
            opened.__enter__()
            self.stack.append((id(module), opened))

        return hook

    def leave(self, module: Any, _: Any, __: Any) -> None:
        """The hook after a call, also of one that raised. Closes what is still open inside, and nothing outside."""
        if not any(key == id(module) for key, _ in self.stack):
            return  # its call began before the ranges did, or a hook before ours raised
        while True:
            key, opened = self.stack.pop()
            opened.__exit__(None, None, None)
            if key == id(module):
                return
