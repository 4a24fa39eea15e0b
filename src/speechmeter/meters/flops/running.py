"""Which module is running, in every thread of a call, and which threads could not be followed. Imports torch.

Torch's dispatch modes hold for one thread. A thread that a call starts is followed through `Thread.start`, a task that
it hands to a pool of threads through `ThreadPoolExecutor.submit`, and what comes after it through
`Future.add_done_callback`. A thread that ran before the call and takes its work from elsewhere cannot be entered:
where there is one, torch's profiler shows whether it ran any operator.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import takewhile
from typing import Any, Literal
from unittest.mock import patch

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from speechmeter.core.machine import note_profiler

Phase = Literal["forward", "backward", "recompute"]
OUTSIDE = ""
"""The module of operators that run outside every module."""
_FOLLOWED = "speechmeter: followed"
_ENGINE = "autograd::engine"
"""Threads of autograd's own take the modes of the thread that asked for the backward pass."""


class RunningPath:
    """Which module is running in each thread, and which ran when an autograd node was made."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._threads = threading.local()
        self._by_node: dict[int, dict[int, str]] = {}

    @property
    def stack(self) -> list[str]:
        """The modules that are running in this thread, the innermost last."""
        found: list[str] | None = getattr(self._threads, "stack", None)
        if found is None:
            found = self._threads.stack = []
        return found

    @property
    def inner(self) -> str:
        """The innermost module that is running in this thread."""
        return self.stack[-1] if self.stack else OUTSIDE

    def enter(self, module: Any, inputs: Any) -> None:
        """The hook before a module's call."""
        self.stack.append(self.names.get(id(module), self.inner))

    def leave(self, module: Any, inputs: Any, output: Any) -> None:
        """The hook after it."""
        if self.stack:  # a thread that was entered in the middle of a module leaves more than it entered
            self.stack.pop()

    def now(self) -> tuple[Phase, str]:
        """The phase and module of the operator that runs."""
        inside_backward = torch._C._current_graph_task_id() >= 0
        if not inside_backward or self.stack:
            if torch.is_grad_enabled():  # a reentrant checkpoint makes new nodes inside the backward pass
                made = torch.autograd._get_sequence_nr() - 1  # just before
                self._by_node.setdefault(made, {})[threading.get_ident()] = self.inner
            return "recompute" if inside_backward else "forward", self.inner
        node = torch._C._current_autograd_node()
        return "backward", OUTSIDE if node is None else self._made(node._sequence_nr())

    def _made(self, number: int) -> str:
        """The module that made a node. Threads number their nodes alike: then it is the one around all candidates."""
        candidates = [path.split(".") for path in self._by_node.get(number, {}).values()]
        alike = takewhile(lambda parts: len(set(parts)) == 1, zip(*candidates, strict=False))
        return ".".join(parts[0] for parts in alike)

    @contextmanager
    def following(self, modules: Mapping[str, Any]) -> Iterator[None]:
        """Watch the calls of these root modules, by name, and of all modules inside them."""
        for root, module in modules.items():
            for name, part in module.named_modules() if hasattr(module, "named_modules") else ():
                self.names.setdefault(id(part), f"{root}.{name}" if name else root)
        before = register_module_forward_pre_hook(self.enter)
        after = register_module_forward_hook(self.leave, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()

    @contextmanager
    def continued(self, module: str) -> Iterator[None]:
        """What this thread does is the work of the module that asked for it."""
        kept, self._threads.stack = self.stack, [module] if module else []
        try:
            yield
        finally:
            self._threads.stack = kept


@contextmanager
def in_new_threads(around: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """Do what threads and pools are asked for meanwhile inside `around()`, which is called where they are asked.

    A callback of a future runs in the thread that finishes it, or at once in the one that adds it, which is inside
    already.
    """
    start, submit, add_callback = threading.Thread.start, ThreadPoolExecutor.submit, Future.add_done_callback
    start_low = _thread.start_new_thread
    local = threading.local()
    local.inside = True

    def inside(work: Callable[..., Any]) -> Callable[..., Any]:
        context = around()

        def run(*args: Any, **kwargs: Any) -> Any:
            if getattr(local, "inside", False):
                return work(*args, **kwargs)
            local.inside = True
            try:
                with context:
                    return work(*args, **kwargs)
            finally:
                local.inside = False

        return run

    def started(thread: threading.Thread) -> None:
        if not getattr(local, "submitting", False):  # a pool's thread outlives the call: its tasks are followed instead
            thread.run = inside(thread.run)  # type: ignore[method-assign]
        start(thread)

    def started_low(fn: Callable[..., Any], /, *args: Any) -> int:
        return start_low(inside(fn), *args)

    def submitted(pool: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        local.submitting = True
        try:
            return submit(pool, inside(fn), *args, **kwargs)
        finally:
            local.submitting = False

    def called_back(future: Future[Any], fn: Callable[[Future[Any]], Any]) -> None:
        add_callback(future, inside(fn))

    with (
        patch.object(threading.Thread, "start", started),
        patch.object(_thread, "start_new_thread", started_low),
        patch.object(ThreadPoolExecutor, "submit", submitted),
        patch.object(Future, "add_done_callback", called_back),
    ):
        yield


@contextmanager
def followed() -> Iterator[None]:
    """Say that this thread is followed, for `unseen_threads`."""
    with torch.profiler.record_function(_FOLLOWED):
        yield


@contextmanager
def unseen_threads() -> Iterator[dict[str, int]]:
    """Operators that other threads ran meanwhile, with their calls; complete when it is closed.

    Only where other threads are alive from the beginning, and torch's only profiler is not in use.
    """
    unseen: dict[str, int] = {}
    here = threading.current_thread()  # beside it, the thread of tqdm only watches its bars
    others = any(thread is not here and type(thread).__module__ != "tqdm._monitor" for thread in threading.enumerate())
    profiler = _all_threads() if others and not torch.autograd._profiler_enabled() else None
    if profiler is None:
        yield unseen
        return
    note_profiler()
    with profiler:
        yield unseen
    events = profiler.profiler.kineto_results.events()
    known = {event.start_thread_id() for event in events if event.name().startswith((_FOLLOWED, _ENGINE))}
    for event in events:
        if event.start_thread_id() not in known and event.name().startswith("aten::"):
            unseen[event.name()] = unseen.get(event.name(), 0) + 1


def _all_threads() -> Any:
    """A profiler that sees all threads; None where this torch has none."""
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import ProfilerActivity, profile

    try:
        config = _ExperimentalConfig(profile_all_threads=True)
    except TypeError:  # torch before 2.6
        return None
    return profile(activities=[ProfilerActivity.CPU], experimental_config=config)
