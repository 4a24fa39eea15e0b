"""A loaded case: its stages, its batches, and the times of load and first call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter_ns
from typing import Any

from speechmeter.core.axes import inside_boundary
from speechmeter.core.machine import resident_bytes
from speechmeter.core.protocols import Collected, Prepared, Subject, Workload
from speechmeter.core.stages import run_chain
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.engine.schedule import collect

Progress = Callable[[str], None]
_QUICK_DATA_NS = 10**9


@dataclass(frozen=True, kw_only=True)
class FirstOutputs:
    """What the first call gave, in words: the outputs themselves would stay in memory beside every later reading."""

    is_text: bool
    tokens: int | None


@dataclass(frozen=True, kw_only=True)
class LoadedSession:
    """What meters get (see `core.protocols.Session`)."""

    case: Case
    prepared: Prepared
    stages: tuple[Stage, ...]
    batches: tuple[Batch, ...]
    load_ns: int
    data_ns: int
    reload_ns: int
    first_ns: int
    first: FirstOutputs | None
    resident_loaded_bytes: int | None
    report: Progress
    refused: str = ""

    def call(self, batch: Batch) -> list[Any]:
        """Run the chain once; outputs per stage."""
        outputs = run_chain(self.stages, batch)
        self.sync()
        return outputs

    def sync(self) -> None:
        """Wait for the device."""
        self.prepared.sync()

    def collect(self, sample: Callable[[Batch], int]) -> Collected:
        """Call `sample` as often as the case's protocol asks."""
        return collect(sample, self.batches, self.case.protocol, self.first_ns)

    def progress(self, what: str) -> None:
        """Tell whoever watches what is under way."""
        self.report(what)


def open_session(
    case: Case, subject: Subject, workload: Workload, report: Progress, *, warm: bool = True, refused: str = ""
) -> LoadedSession:
    """Make the batches, load the subject and, if `warm`, call it once; each timed on its own."""
    report("data")
    batches, data_ns = _made_batches(case, workload)
    if not batches:
        raise ValueError("the workload gave no batch")
    # the first time holds the imports of the workload's libraries, which are no part of loading data
    reload_ns = _made_batches(case, workload)[1] if data_ns < _QUICK_DATA_NS else data_ns

    report("load")
    start = perf_counter_ns()
    prepared = subject.prepare(case, str(case.axes["device"]))
    prepared.sync()
    load_ns = perf_counter_ns() - start
    stages = bounded_stages(prepared, case, workload)
    resident = resident_bytes()

    first, first_ns = _first_call(prepared, stages, batches[0], report) if warm else (None, 0)
    return LoadedSession(
        case=case,
        prepared=prepared,
        stages=stages,
        batches=batches,
        load_ns=load_ns,
        data_ns=data_ns,
        reload_ns=reload_ns,
        first_ns=first_ns,
        first=first,
        resident_loaded_bytes=resident,
        report=report,
        refused=refused,
    )


def _first_call(
    prepared: Prepared, stages: Sequence[Stage], batch: Batch, report: Progress
) -> tuple[FirstOutputs, int]:
    report("first call")
    start = perf_counter_ns()
    outputs = run_chain(stages, batch)
    prepared.sync()
    first_ns = perf_counter_ns() - start
    tokens = prepared.tokens(outputs) if prepared.tokens is not None else None
    return FirstOutputs(is_text=_is_text(outputs[-1]), tokens=tokens), first_ns


def _is_text(output: Any) -> bool:
    if isinstance(output, list | tuple) and output:
        return all(isinstance(item, str) for item in output)
    return isinstance(output, str)


def _made_batches(case: Case, workload: Workload) -> tuple[tuple[Batch, ...], int]:
    start = perf_counter_ns()
    batches = tuple(workload.batches(case))
    return batches, perf_counter_ns() - start


def bounded_stages(prepared: Prepared, case: Case, workload: Workload) -> tuple[Stage, ...]:
    """The chain with clocked flags as the case's boundary sets them; `+load` puts data loading in front."""
    boundary = str(case.axes["boundary"])
    stages = tuple(
        replace(stage, clocked=stage.clocked and inside_boundary(stage.name, boundary)) for stage in prepared.stages
    )
    if inside_boundary("load", boundary):
        endless = _endless(case, workload)
        stages = (Stage(name="load", fn=lambda _: next(endless)), *stages)
    return stages


def _endless(case: Case, workload: Workload) -> Iterator[Batch]:
    while True:
        yield from workload.batches(case)
