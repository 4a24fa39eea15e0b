"""What the meters read of steps that were recorded as they came: the same rows, by the same code. Imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.meters.flops.meter import count_rows
from speechmeter.meters.modules import gpu_busy, module_rows
from speechmeter.meters.operators.meter import operator_rows
from speechmeter.meters.split import split_rows
from speechmeter.meters.timeline import timeline_rows

if TYPE_CHECKING:
    from speechmeter.api.profiling.result import Profile
    from speechmeter.meters.flops.count import Count
    from speechmeter.meters.recording.recording import Recording

_NO_MODULE = "no torch module was called"
_NOT_COUNTED = "FLOPs are counted in the last warm-up step, and none ran: run more steps, or use @schedule(warmup=1)"


def readings(profile: Profile) -> list[Measurement]:
    """Rows of modules, operators, kinds of work; memory where it was asked for."""
    return [
        *_modules(profile.recordings),
        *operator_rows(profile.recordings, {}),
        *split_rows(profile.recordings),
        *_memory(profile),
    ]


def _modules(recordings: Sequence[Recording]) -> list[Measurement]:
    calls = [call for recording in recordings for call in recording.calls]
    named = any(recording.classes for recording in recordings)
    if named or any(row.owner.label for call in calls for row in call.rows):
        return module_rows(recordings)
    busy = [gpu_busy(calls, {}, recordings[0].notes)] if any(recording.on_cuda for recording in recordings) else []
    return [Measurement.absent(metrics.TIME_MODULE, _NO_MODULE), *busy]


def _memory(profile: Profile) -> list[Measurement]:
    if not profile.options.memory:
        return []
    timeline = profile.timeline
    if timeline is None:
        return [Measurement.absent(metrics.MEMORY_TENSORS_PEAK, "no tensor was allocated")]
    return timeline_rows(timeline)


def flop_readings(counted: Count | None) -> list[Measurement]:
    """Rows of FLOPs: they are counted in a step that is not recorded."""
    return [Measurement.absent(metrics.FLOPS, _NOT_COUNTED)] if counted is None else count_rows(counted)
