"""A finished recording, what was recorded in it, and what follows from its events: read once, for every meter."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from speechmeter.core.traces import STEP, Trace, read_steps
from speechmeter.meters.recording.attribution import Attributed, Node, attribute_nodes, settled_nodes
from speechmeter.meters.recording.events import Events, Span
from speechmeter.meters.recording.trace import tidied, with_modules


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What is recorded. Operators and, on a GPU, kernels always are; the rest only where a meter needs it.

    Everything that is recorded slows the subject down. `modules` opens a range around every call of a module. `memory`
    records allocations, `shapes` those of inputs, and `stacks` Python's functions. `means` asks for several calls, so
    that there are figures to average, and `traced` is how many of them are to be in a trace.
    """

    modules: bool = False
    memory: bool = False
    shapes: bool = False
    stacks: bool = False
    means: bool = False
    traced: int = 0

    def __or__(self, other: Needs) -> Needs:
        """What both need together."""
        return Needs(
            modules=self.modules or other.modules,
            memory=self.memory or other.memory,
            shapes=self.shapes or other.shapes,
            stacks=self.stacks or other.stacks,
            means=self.means or other.means,
            traced=max(self.traced, other.traced),
        )

    def words(self, *, cuda: bool) -> list[str]:
        """What is recorded, for the notes of a record."""
        chosen = {
            "CPU": True,
            "CUDA": cuda,
            "modules": self.modules,
            "allocations": self.memory,
            "shapes": self.shapes,
            "Python stacks": self.stacks,
        }
        return [word for word, recorded in chosen.items() if recorded]


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Steps that were recorded one after another, and path → class of the modules in them.

    A step is a whole call, to the end of the device's work; its clocked parts are marked inside it. `events` must have
    been read before: torch gives up their memory when it writes a trace, which it does once. What was recorded before
    the first step and after the last belongs to none of them. `shortened` says why there are fewer steps than were
    asked for, and `sampled` are notes on which batches the steps were fed, where these did not come in turn.
    """

    profile: Any
    events: Events
    steps: int
    classes: Mapping[str, str]
    needs: Needs
    on_cuda: bool
    shortened: str = ""
    sampled: Mapping[str, Any] = field(default_factory=dict)

    @property
    def notes(self) -> dict[str, Any]:
        """How the figures were taken, for the notes of a record."""
        shortened = {"shortened": self.shortened} if self.shortened else {}
        return {"recorded": self.needs.words(cuda=self.on_cuda), **shortened}

    @cached_property
    def nodes(self) -> list[Node]:
        """Every event of the CPU with its owner, an outer one before those inside it."""
        return settled_nodes(self.events)

    @cached_property
    def calls(self) -> list[Attributed]:
        """Whose time the clocked parts of each step were."""
        return attribute_nodes(self.nodes, self.events.kernels)[: self.steps]

    @cached_property
    def spans(self) -> list[Span]:
        """When each step ran, in order of time."""
        marks = (event for event in self.events.cpu if event.name.startswith(STEP))
        return sorted((mark.start_ns, mark.end_ns) for mark in marks)[: self.steps]

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _ in self.spans]

    def step_at(self, instant_ns: int) -> int | None:
        """The step that was under way; None between steps."""
        step = bisect_right(self._starts, instant_ns) - 1
        return step if step >= 0 and instant_ns <= self.spans[step][1] else None

    @cached_property
    def operators(self) -> list[tuple[Node, int, bool]]:
        """Every event inside a step that is no range, with its step, and whether no event above it has its name.

        Made once: a small recogniser has 66,000 of them, and four tables are made from them.
        """
        found = []
        for node in self.nodes:
            event = node.event
            step = None if event.is_range else self.step_at(event.start_ns)
            if step is None:
                continue
            above = node.parent
            while above is not None and above.event.name != event.name:
                above = above.parent
            found.append((node, step, above is None))
        return found

    @cached_property
    def trace(self) -> Trace:
        """The first steps as a trace, as many as were asked for, tidied and with modules; nothing is left out."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            self.profile.export_chrome_trace(str(path))
            steps = read_steps(path, min(self.steps, self.needs.traced))
        return tidied(with_modules(steps, self.nodes))
