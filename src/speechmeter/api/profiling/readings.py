"""What the meters would have read of steps that were recorded as they came. Imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.meters.flops.meter import count_rows
from speechmeter.meters.modules.attribution import attribute_events
from speechmeter.meters.modules.meter import readings as module_rows
from speechmeter.meters.operators import operator_rows
from speechmeter.meters.split import Span, sorted_spans, split_rows
from speechmeter.meters.timeline.meter import rows as timeline_rows

if TYPE_CHECKING:
    from speechmeter.api.profiling.recorder import Recording
    from speechmeter.api.profiling.result import Profile

_NO_MODULE = "no torch module was called"
_NOT_TOLD = "torch lost the name of a module that was imported meanwhile: record again, or without python_stacks"
_NOT_COUNTED = "FLOPs are counted in a warm-up step, and there was none: use @schedule(warmup=1)"


def readings(profile: Profile, *, on_cuda: bool) -> list[Measurement]:
    """Rows of modules, operators, kinds of work; memory and FLOPs where they were asked for."""
    told = [recording for recording in profile.recordings if recording.function_events is not None]
    return [
        *_modules(profile.recordings, on_cuda),
        *_operators(told, on_cuda),
        *_split(told, on_cuda),
        *_memory(profile),
        *_flops(profile),
    ]


def _operators(recordings: Sequence[Recording], on_cuda: bool) -> list[Measurement]:
    if not recordings:
        return [Measurement.absent(metrics.TIME_OPERATOR, _NOT_TOLD)]
    profiles = [(recording.profile, recording.events) for recording in recordings]
    return operator_rows(profiles, {}, sum(recording.steps for recording in recordings), on_cuda=on_cuda)


def _modules(recordings: Sequence[Recording], on_cuda: bool) -> list[Measurement]:
    classes = {path: kind for recording in recordings for path, kind in recording.classes.items()}
    calls = [call for recording in recordings for call in attribute_events(recording.events)[: recording.steps]]
    if not classes and not any(row.place.label for call in calls for row in call.rows):
        return [Measurement.absent(metrics.TIME_MODULE, _NO_MODULE)]
    return module_rows(calls, classes, gpu=on_cuda)


def _split(recordings: Sequence[Recording], on_cuda: bool) -> list[Measurement]:
    if not recordings:
        return [Measurement.absent(metrics.TIME_SPLIT, _NOT_TOLD)]
    whole: list[Span] = []
    spans: dict[str, list[Span]] = {}
    for recording in recordings:
        calls, kinds = sorted_spans(recording.function_events or ())
        whole += calls[: recording.steps]
        for kind, own in kinds.items():
            spans.setdefault(kind, []).extend(own)
    return split_rows(whole, spans, on_cuda=on_cuda)


def _memory(profile: Profile) -> list[Measurement]:
    if not profile.options.memory:
        return []
    timeline = profile.timeline
    if timeline is None:
        return [Measurement.absent(metrics.MEMORY_TENSORS_PEAK, "no tensor was allocated")]
    return timeline_rows(timeline)


def _flops(profile: Profile) -> list[Measurement]:
    if not profile.options.flops:
        return []
    if profile.counted is None:
        return [Measurement.absent(metrics.FLOPS, _NOT_COUNTED)]
    return count_rows(profile.counted)
