"""The modules meter: where the time of a call goes, by module and label, from a profiled pass. Imports torch late.

For shares, never for latency: that comes from a pass without a profiler, in another process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.protocols import ORDINARY, Phase, Session
from speechmeter.core.types import Case, Measurement
from speechmeter.meters.modules.measurements import measurements
from speechmeter.meters.modules.memory import module_memory
from speechmeter.meters.recording.needs import Needs
from speechmeter.meters.recording.recording import Recording
from speechmeter.meters.recording.session import chosen_roots, recording_of, turns

_COMPILED = "torch.compile of the whole model fuses its modules: none can be told apart; compile block by block instead"
_NO_MODULE = "the subject names no torch module"


class ModulesMeter:
    """Time of every module by its path, forward, backward and recomputed, on the CPU and the GPU."""

    name = "modules"
    metrics = (metrics.TIME_MODULE, metrics.TIME_GPU, metrics.MEMORY_MODULE)
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY
    phase = Phase.PROFILE

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, and modules that can be told apart."""
        if find_spec("torch") is None:
            return "modules are torch's, and torch is not installed"
        return _COMPILED if case.axes.get("compile") else None

    def needs(self, session: Session) -> Needs:
        """A few calls with a range around every module."""
        return Needs(modules=True, means=True)

    def measure(self, session: Session) -> list[Measurement]:
        """Rows of the calls that were recorded; on a GPU a call of its own for the memory of each module."""
        from speechmeter.meters.modules.ranges import is_compiled

        roots = chosen_roots(session)
        if not roots:
            return [Measurement.absent(metrics.TIME_MODULE, _NO_MODULE)]
        if all(is_compiled(module) for module in roots.values()):
            return [Measurement.absent(metrics.TIME_MODULE, _COMPILED)]
        recording = recording_of(session, self.needs(session))
        notes = turns(session, recording)
        return [*module_rows([recording], notes), *_memory(session, roots)]


def module_rows(recordings: Sequence[Recording], notes: Mapping[str, Any] | None = None) -> list[Measurement]:
    """The time of every module in the calls of one or several recordings."""
    calls = [call for recording in recordings for call in recording.calls]
    classes = {path: kind for recording in recordings for path, kind in recording.classes.items()}
    gpu = any(recording.on_cuda for recording in recordings)
    return measurements(calls, classes, gpu, notes or {}, recordings[0].notes)


def _memory(session: Session, roots: Mapping[str, Any]) -> list[Measurement]:
    patterns = session.case.protocol.filter
    return module_memory(lambda: session.call(session.batches[0]), roots, patterns, session.case.device)
