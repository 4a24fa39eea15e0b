"""A loaded case: its stages, its batches, and the times of load and first call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import islice
from time import perf_counter_ns
from typing import Any

from speechmeter.core.axes import inside_boundary
from speechmeter.core.batches import Batches, ChosenBatches, gathered
from speechmeter.core.machine import resident_bytes
from speechmeter.core.outputs import Keep, Output, output_of
from speechmeter.core.process_tree import started_bytes
from speechmeter.core.protocol import Steps
from speechmeter.core.protocols import Collected, Prepared, Subject, Workload
from speechmeter.core.stages import made_by, run_chain
from speechmeter.core.types import Batch, Case, Measurement, Stage
from speechmeter.engine.outputs import unfinished
from speechmeter.engine.schedule import collect

Progress = Callable[[str], None]
_QUICK_DATA_NS = 10**9
LOAD = "load"
"""The stage that makes or reads the data, in front of the subject's own."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """What a call gave, without the tensors: they would stay in memory beside every later reading.

    `unfinished` names what in the result was not computed yet.
    """

    output: Output
    made: tuple[Measurement, ...]
    unfinished: str = ""

    @classmethod
    def of(cls, stages: Sequence[Stage], outputs: Sequence[Any]) -> Call:
        """From the outputs of every stage."""
        return cls(
            output=output_of(outputs[-1]), made=tuple(made_by(stages, [outputs])), unfinished=unfinished(outputs[-1])
        )


@dataclass(frozen=True, kw_only=True)
class LoadedSession:
    """What meters get (see `core.protocols.Session`)."""

    case: Case
    prepared: Prepared
    stages: tuple[Stage, ...]
    batches: Batches
    all_batches: Batches
    load_ns: int
    data_ns: int
    reload_ns: int
    first_ns: int
    first: Call | None
    resident_loaded_bytes: int | None
    report: Progress
    refused: str = ""
    earlier: Sequence[Measurement] = ()
    keep: Keep = field(default_factory=Keep)
    shared: dict[str, Any] = field(default_factory=dict)

    def call(self, batch: Batch) -> list[Any]:
        """Run the chain once; outputs per stage."""
        outputs = run_chain(self.stages, batch)
        self.sync()
        return outputs

    def sync(self) -> None:
        """Wait for the device."""
        self.prepared.sync()

    @cached_property
    def results(self) -> tuple[Call, ...]:
        """What a call with each of all batches gives; nothing where the first gave nothing to keep or to count.

        One pass outside every clock, made when it is first asked for.
        """
        first = self.first
        if first is None or not (first.output.lines or first.output.speech or first.made):
            return ()
        return (first, *(Call.of(self.stages, self.call(batch)) for batch in islice(self.all_batches, 1, None)))

    def outputs(self) -> list[Output]:
        """What a call with each of all batches puts out; empty where nothing can be kept of it."""
        return [call.output for call in self.results]

    def collect(self, sample: Callable[[Batch], int]) -> Collected:
        """Call `sample` as often as the case's protocol asks."""
        return collect(sample, self.all_batches, self.case.protocol, self.first_ns)

    @cached_property
    def steps(self) -> Steps | None:
        """Those of the case's schedule; None where it has none."""
        return Steps.of(self.case.protocol, len(self.all_batches))

    @property
    def measured(self) -> Sequence[int]:
        """Which of all batches are measured, by their index."""
        return range(len(self.all_batches)) if self.steps is None else self.steps.measured

    def progress(self, what: str) -> None:
        """Report to whoever watches what is in progress."""
        self.report(what)


def open_session(
    case: Case,
    subject: Subject,
    workload: Workload,
    report: Progress,
    *,
    warm: bool = True,
    refused: str = "",
    earlier: Sequence[Measurement] = (),
    keep: Keep = Keep(),
) -> LoadedSession:
    """Make the batches, load the subject and, if `warm`, call it once; each timed on its own."""
    report("data")
    start = perf_counter_ns()
    batches = gathered(lambda: workload.batches(case))
    data_ns = perf_counter_ns() - start
    if not batches:
        raise ValueError("the workload produced no batch")
    reload_ns = data_ns
    if data_ns < _QUICK_DATA_NS:  # once more: the first time holds the imports of the workload's libraries
        start = perf_counter_ns()
        sum(1 for _ in batches.again())  # none is held, as it would count as memory of the model
        reload_ns = perf_counter_ns() - start

    report("load")
    start = perf_counter_ns()
    prepared = subject.prepare(case, case.axes.device)
    prepared.sync()
    load_ns = perf_counter_ns() - start
    if inside_boundary(LOAD, case.axes.boundary):
        batches = _NumberedBatches(batches)
    stages = bounded_stages(prepared, case, batches)
    resident = resident_bytes()
    resident = None if resident is None else resident + started_bytes()

    steps = Steps.of(case.protocol, len(batches))
    first, first_ns = None, 0
    if warm:
        report("first call")
        start = perf_counter_ns()
        outputs = run_chain(stages, batches[0])
        prepared.sync()
        first_ns = perf_counter_ns() - start
        first = Call.of(stages, outputs)
    return LoadedSession(
        case=case,
        prepared=prepared,
        stages=stages,
        batches=batches if steps is None else ChosenBatches(batches, steps.measured),
        all_batches=batches,
        load_ns=load_ns,
        data_ns=data_ns,
        reload_ns=reload_ns // len(batches),
        first_ns=first_ns,
        first=first,
        resident_loaded_bytes=resident,
        report=report,
        refused=refused,
        earlier=earlier,
        keep=keep,
    )


def bounded_stages(prepared: Prepared, case: Case, batches: Batches) -> tuple[Stage, ...]:
    """The chain with clocked flags as the case's boundary sets them; `+load` puts data loading in front."""
    boundary = case.axes.boundary
    stages = tuple(
        replace(stage, clocked=stage.clocked and inside_boundary(stage.name.rpartition(".")[2], boundary))
        for stage in prepared.stages
    )
    if inside_boundary(LOAD, boundary):
        stages = (Stage(name=LOAD, fn=_Loading(batches)), *stages)
    return stages


@dataclass(frozen=True, kw_only=True)
class _Numbered(Batch):
    """A batch with its number, by which it can be loaded anew."""

    index: int


class _NumberedBatches(Batches):
    """The batches of another, each with its number."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self.left_out = batches.left_out
        self.notes = batches.notes
        self.warnings = batches.warnings

    def __len__(self) -> int:
        return len(self._batches)

    def one(self, index: int) -> Batch:
        """The batch and its number."""
        batch = self._batches.one(index)
        return _Numbered(**{own.name: getattr(batch, own.name) for own in fields(Batch)}, index=index)

    def outlines(self) -> Iterator[Batch]:
        """Those of the other."""
        return self._batches.outlines()

    def again(self) -> Iterator[Batch]:
        """Those of the other."""
        return self._batches.again()


class _Loading:
    """Loads the batch that it is called with. Out of order, all batches before it are loaded too."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._fresh: Iterator[Batch] = iter(())
        self._next = -1

    def __call__(self, batch: _Numbered) -> Batch:
        if batch.index != self._next:
            self._fresh = islice(self._batches.again(), batch.index, None)
        self._next = batch.index + 1
        return next(self._fresh)
