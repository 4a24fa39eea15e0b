"""Measure an object in the calling program: `speechmeter.measure(model, inputs)`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.metric_names import find_metric, metric_named
from speechmeter.api.displayed import Displayed
from speechmeter.core import plugins
from speechmeter.core.axes import Axes, Axis, Option
from speechmeter.core.device import Device
from speechmeter.core.errors import InputError, for_python
from speechmeter.core.machine import available_cores
from speechmeter.core.protocol import protocol_from_json
from speechmeter.core.protocols import Fed, Installed, Prepared
from speechmeter.core.types import Batch, Case, Record, Spec, Stage
from speechmeter.launch.executors import measure_here
from speechmeter.report import choose
from speechmeter.report.numbers import figure
from speechmeter.report.tables import Table

_PROTOCOL = {"warmup": 30, "samples": 10, "min_samples": 2, "budget_s": 20.0}


@dataclass(frozen=True, kw_only=True, repr=False)
class Result(Displayed):
    """The result of `measure`. `record` has all raw samples; figures are computed from it."""

    record: Record

    def __repr__(self) -> str:
        figures = (found for name in self.record.case.meters if (found := self._first(name)) is not None)
        return f"Result({self.record.case.label!r}, {', '.join([self.record.status, *figures])})"

    def _title(self) -> str:
        reason = f": {self.record.reason}" if self.record.reason else ""
        return f"{self.record.case.label} · {self.record.status}{reason}"

    def _shown_records(self) -> Sequence[Record]:
        return [self.record]

    @for_python
    def estimate(self, metric: str) -> Estimate | None:
        """The figure of a metric by name (`latency`, `memory`, `parameters`, …); None when it was not measured.

        Raises InputError for a name that no metric has.
        """
        return estimate([self.record], metric_named(metric, [self.record]))

    @property
    def latency_s(self) -> float | None:
        """Median seconds of one call."""
        return self._value("latency")

    @property
    def rtf(self) -> float | None:
        """Real-time factor; None unless `audio_seconds` was given."""
        return self._value("rtf")

    def tables(self, metric: str | None = None) -> list[Table]:
        """The tables that `speechmeter show` prints."""
        return choose.tables([self.record], metric)

    def _in_notebook(self) -> list[Table]:
        return [*choose.tables([self.record], "summary"), *self.tables()]

    def _first(self, meter: str) -> str | None:
        """The figure that a meter is named after: `latency 0.201 s`."""
        metric = find_metric(meter, [self.record])
        found = estimate([self.record], metric) if metric is not None else None
        return None if found is None else f"{meter}={figure(found)}"

    def _value(self, metric: str) -> float | None:
        found = self.estimate(metric)
        return None if found is None else found.value


@for_python
def measure(
    subject: Callable[..., Any],
    inputs: Any,
    *,
    audio_seconds: float | None = None,
    meters: Sequence[str] = ("latency", "memory", "parameters"),
    name: str | None = None,
    **axes: Any,
) -> Result:
    """Measure a callable or torch module on `inputs` (one value, a tuple of arguments, or a dict of keyword arguments).

    A module is called without autograd, in its current mode; a callable is called as it is. `audio_seconds` is the
    audio in one call, of all items together. `threads` is set during the measurement; `samples`, `warmup`,
    `min_samples` and `budget_s` set the protocol. One round is measured in this process, so meters that need a process
    of their own are unavailable.

    Raises InputError for an unknown argument. An exception of the model is in the reason of the record.
    """
    unknown = set(axes) - {*_PROTOCOL, "threads"}
    if unknown:
        raise InputError(
            f"`measure` has no argument or axis {min(unknown)!r}",
            fix=plugins.nearest(min(unknown), [*_PROTOCOL, "threads"]),
        )
    given = {**axes, **({} if audio_seconds is None else {"audio_seconds": audio_seconds})}
    for argument in _ARGUMENTS:
        if argument.name in given and (wrong := argument.check(given[argument.name])) is not None:
            raise InputError(wrong, key=argument.name)
    live = _Live(subject, inputs, audio_seconds)
    case = _case(live, name or str(getattr(subject, "__name__", type(subject).__name__)), tuple(meters), axes)
    with _threads(case.axes.threads):
        outcome = measure_here(case, live, live, [plugins.meter(meter) for meter in meters], _WHY)
    return Result(
        record=Record(
            case=case,
            round=0,
            sequence=0,
            status=outcome.status,
            reason=outcome.reason,
            measurements=outcome.measurements,
            environment=outcome.environment.fingerprint if outcome.environment else "",
            warnings=outcome.warnings,
        )
    )


_ARGUMENTS = (
    Option(name="samples", kind=int, minimum=1),
    Option(name="min_samples", kind=int, minimum=1),
    Option(name="warmup", kind=int, minimum=0),
    Option(name="budget_s", kind=float, above=0),
    Option(name="threads", kind=int, minimum=1),
    Option(name="audio_seconds", kind=float, above=0),
)
_WHY = "`measure` cannot start a separate process for an object; use speechmeter.run with python:file.py:factory"


class _Live:
    """Subject and workload in one: an object that is already here, and its inputs."""

    summary = "an object in the calling program"
    axes: tuple[Axis, ...] = ()
    options: tuple[Option, ...] = ()
    runs_code = False
    takes: tuple[str, ...] = ()

    def __init__(self, call: Callable[..., Any], inputs: Any, audio_s: float | None) -> None:
        self._call = call
        self._inputs = inputs
        self._audio_s = audio_s
        self._torch = sys.modules.get("torch")
        self.is_module = self._torch is not None and isinstance(call, self._torch.nn.Module)
        flat = inputs.values() if isinstance(inputs, dict) else inputs if isinstance(inputs, tuple) else [inputs]
        self.tensors = [one for one in flat if self._torch is not None and isinstance(one, self._torch.Tensor)]

    def installed(self) -> Installed:
        return Installed()

    def check(self, case: Case) -> None:
        return None

    def unavailable(self, case: Case) -> str | None:
        return None

    def feeds(self, case: Case) -> Fed:
        return Fed()

    def batches(self, case: Case) -> Iterator[Batch]:
        yield Batch(data=self._inputs, items=1, audio_s=self._audio_s)

    def prepare(self, case: Case, device: str) -> Prepared:
        modules = {type(self._call).__name__: self._call} if self.is_module else {}
        stage = Stage(name="model", fn=self._one, modules=modules)
        if self._torch is None or not Device.read(device).is_cuda:
            return Prepared(stages=(stage,), modules=modules)
        torch = self._torch
        return Prepared(stages=(stage,), modules=modules, sync=lambda: torch.cuda.synchronize(device))

    def _one(self, batch: Batch) -> Any:
        if self.is_module and self._torch is not None:
            with self._torch.inference_mode():
                return _apply(self._call, batch.data)
        return _apply(self._call, batch.data)


def _case(live: _Live, name: str, meters: tuple[str, ...], axes: Mapping[str, Any]) -> Case:
    tensor = live.tensors[0] if live.tensors else None
    threads = axes.get("threads") or len(available_cores())
    protocol = {"clock": "perf_counter_ns", "sync": "both edges", "seed": 0, "mode": "steady"}
    protocol.update({key: axes.get(key, default) for key, default in _PROTOCOL.items()})
    return Case(
        subject=Spec(plugin="live", name=name),
        workload=Spec(plugin="live", name="inputs"),
        axes=Axes(
            {
                "device": str(tensor.device) if tensor is not None else "cpu",
                "dtype": str(tensor.dtype).removeprefix("torch.") if tensor is not None else "unknown",
                "threads": threads,
                "cores": len(available_cores()),
                "boundary": "+features",
            }
        ),
        meters=meters,
        protocol=protocol_from_json(protocol),
    )


def _apply(call: Callable[..., Any], inputs: Any) -> Any:
    if isinstance(inputs, dict):
        return call(**inputs)
    if isinstance(inputs, tuple):
        return call(*inputs)
    return call(inputs)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
