"""The meter `timeline`: torch's memory through one step, and what held it at the peak. Imports torch late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.memory_timeline import FILE, Held, MemoryTimeline, write_timeline
from speechmeter.core.protocols import ORDINARY, Phase, Session
from speechmeter.core.scope import MODULE, Scope
from speechmeter.core.types import Case, Measurement
from speechmeter.meters.recording.needs import Needs
from speechmeter.meters.recording.session import recording_of

_OUTSIDE = "(outside)"
"""The row of what was allocated outside of all modules."""


class TimelineMeter:
    """Bytes of tensors at the peak of a step, by module; over time in an artifact."""

    name = "timeline"
    metrics = (metrics.MEMORY_TENSORS_PEAK, metrics.MEMORY_AT_PEAK)
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY
    phase = Phase.PROFILE

    def unavailable(self, case: Case) -> str | None:
        """Needs torch, whose allocators tell the profiler what they do."""
        return "allocations are torch's, and torch is not installed" if find_spec("torch") is None else None

    def needs(self, session: Session) -> Needs:
        """One step with its allocations, and the modules that made them."""
        return Needs(modules=True, memory=True, traced=1)

    def measure(self, session: Session) -> list[Measurement]:
        """Add up the allocations of the first step that was recorded."""
        from speechmeter.meters.timeline.follow import followed

        recording = recording_of(session, self.needs(session))
        timeline = followed(recording.trace.events, session.case.device)
        if timeline is None:
            return [Measurement.absent(metrics.MEMORY_TENSORS_PEAK, "no tensor was allocated")]
        if session.keep.folder is not None:
            write_timeline(session.keep.folder / FILE, timeline)
        return rows(timeline, recording.notes)


def rows(timeline: MemoryTimeline, recorded: Mapping[str, Any] = MappingProxyType({})) -> list[Measurement]:
    """The peak, and what each module held then."""
    notes = {"start_bytes": timeline.start_bytes, "operators": _costliest(timeline.held), **recorded}
    return [
        Measurement.of(
            metrics.MEMORY_TENSORS_PEAK, [float(timeline.growth_bytes)], source="torch.profiler", notes=notes
        ),
        *(
            Measurement.of(metrics.MEMORY_AT_PEAK, [float(size)], scope=Scope.of(MODULE, path))
            for path, size in by_module(timeline.held).items()
        ),
    ]


def by_module(held: Iterable[Held]) -> dict[str, int]:
    """Path → bytes, the largest first."""
    found: dict[str, int] = {}
    for one in held:
        found[one.module or _OUTSIDE] = found.get(one.module or _OUTSIDE, 0) + one.bytes
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _costliest(held: Iterable[Held], most: int = 5) -> list[list[str | int]]:
    return [[one.operator, one.module or _OUTSIDE, one.bytes] for one in list(held)[:most]]
