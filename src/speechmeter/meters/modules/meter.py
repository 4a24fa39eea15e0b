"""The modules meter: where the time of a call goes, by module and label, from a profiled pass. Imports torch late.

For shares, never for latency: that comes from a pass without a profiler, in another process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.protocols import ORDINARY, PROFILED, Session
from speechmeter.core.stages import step
from speechmeter.core.types import Batch, Case, Measurement, by_turns
from speechmeter.meters.modules.attribution import Attributed, attribute
from speechmeter.meters.modules.measurements import measurements
from speechmeter.meters.modules.memory import module_memory
from speechmeter.meters.modules.names import CALL, STAGE

_MOST_CALLS, _LEAST_CALLS = 5, 3
_SLOW_NS = 20 * 10**9
_COMPILED = "torch.compile of the whole model fuses its modules: none can be told apart; compile block by block instead"
_NO_MODULE = "the subject names no torch module"


class ModulesMeter:
    """Time of every module by its path, forward, backward and recomputed, on the CPU and the GPU."""

    name = "modules"
    metrics = (metrics.TIME_MODULE, metrics.TIME_GPU, metrics.MEMORY_MODULE)
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY

    def process(self, case: Case) -> str:
        """One of its own, after the timing."""
        return PROFILED

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, and modules that can be told apart."""
        if find_spec("torch") is None:
            return "modules are torch's, and torch is not installed"
        return _COMPILED if case.axes.get("compile") else None

    def measure(self, session: Session) -> list[Measurement]:
        """A few calls under the profiler, whole passes over the batches where they are few, after one that is not."""
        from speechmeter.meters.modules.ranges import is_compiled, module_ranges

        roots = chosen_roots(session)
        if not roots:
            return [Measurement.absent(metrics.TIME_MODULE, _NO_MODULE)]
        if all(is_compiled(module) for module in roots.values()):
            return [Measurement.absent(metrics.TIME_MODULE, _COMPILED)]
        batches, patterns = _batches(session), _patterns(session)
        memory = module_memory(lambda: session.call(batches[0]), roots, patterns, str(session.case.axes["device"]))
        session.call(batches[0])
        with module_ranges(roots, patterns) as classes:
            calls = attribute(_profiled(session, batches))
        notes = by_turns(session.batches) if len(batches) % len(session.batches) == 0 else {}
        return [*measurements(calls, classes, _on_gpu(session), notes), *memory]


def chosen_roots(session: Session) -> Mapping[str, Any]:
    """The torch modules that the subject names; where it names none, those that its stages do."""
    import torch

    named = session.prepared.modules or {k: v for stage in session.stages for k, v in stage.modules.items()}
    return {name: module for name, module in named.items() if isinstance(module, torch.nn.Module)}


def _patterns(session: Session) -> Sequence[str]:
    return tuple(session.case.protocol.get("filter", ()))


def _batches(session: Session) -> list[Batch]:
    """The first batches in turn: once each, and three calls at least where a call is not slow."""
    count = min(_MOST_CALLS, len(session.batches))
    if session.first_ns < _SLOW_NS:
        count = max(count, -(-_LEAST_CALLS // count) * count)
    return [session.batches[place % len(session.batches)] for place in range(count)]


def _on_gpu(session: Session) -> bool:
    return str(session.case.axes["device"]).startswith("cuda")


def _profiled(session: Session, batches: Sequence[Batch]) -> Any:
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if _on_gpu(session) else [])]
    session.sync()
    with profile(activities=activities) as profiled:
        for number, batch in enumerate(batches):
            session.progress(f"modules: call {number + 1} of {len(batches)}")
            marked_call(session, batch, number)
    return profiled


def marked_call(session: Session, batch: Batch, number: int) -> None:
    """Run the chain once, every clocked stage in ranges of its own that name it and the number of the call."""
    from speechmeter.meters.modules.ranges import OPEN

    outputs: list[Any] = [batch]
    for stage in session.stages:
        if stage.clocked:
            with OPEN(f"{CALL}{number}"), OPEN(STAGE + stage.name):
                step(stage, outputs)
        else:
            step(stage, outputs)
    session.sync()


def readings(calls: Sequence[Attributed], classes: Mapping[str, str], *, gpu: bool) -> list[Measurement]:
    """What the meter would record of calls that somebody else has profiled."""
    return measurements(calls, classes, gpu, {})
