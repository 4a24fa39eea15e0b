"""Peak memory of every module's forward on a GPU, from torch's allocator; no profiler runs. Imports torch late."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.device import Device
from speechmeter.core.scope import MODULE, Scope
from speechmeter.core.types import Measurement
from speechmeter.meters.modules import names

_CPU = "torch keeps no peak of its CPU memory; the meter `memory` has that of the whole call"


def module_memory(
    call: Callable[[], Any], roots: Mapping[str, Any], patterns: Sequence[str], device: Device
) -> list[Measurement]:
    """One call, and how far above its start allocation went in each module; the highest where it is called again."""
    if not device.is_cuda:
        return [Measurement.absent(metrics.MEMORY_MODULE, _CPU)]
    import torch

    from speechmeter.meters.modules.ranges import module_ranges

    name = str(device)
    peaks = Peaks(
        now=lambda: int(torch.cuda.memory_allocated(name)),
        highest=lambda: int(torch.cuda.max_memory_allocated(name)),
        forget=lambda: torch.cuda.reset_peak_memory_stats(name),
    )
    with module_ranges(roots, patterns, peaks.open):
        call()
    return [
        Measurement.of(metrics.MEMORY_MODULE, [float(growth)], scope=Scope.of(MODULE, path))
        for path, growth in peaks.by_path.items()
    ]


class Peaks:
    """What each module adds at most. An allocator tells one peak since it last forgot: every edge reads and forgets."""

    def __init__(self, now: Callable[[], int], highest: Callable[[], int], forget: Callable[[], None]) -> None:
        self.now, self.highest, self.forget = now, highest, forget
        self.by_path: dict[str, int] = {}
        self.stack: list[int] = []
        """The highest seen so far inside each open module, the innermost last."""

    def open(self, name: str) -> _Open:
        """A range that notes the peak of what runs inside it."""
        return _Open(self, name)

    def look(self) -> None:
        """Bring the innermost module up to date."""
        if self.stack:
            self.stack[-1] = max(self.stack[-1], self.highest())
        self.forget()


class _Open:
    def __init__(self, peaks: Peaks, name: str) -> None:
        self.peaks, self.name, self.start = peaks, name, 0

    def __enter__(self) -> None:
        self.peaks.look()
        self.start = self.peaks.now()
        self.peaks.stack.append(self.start)

    def __exit__(self, *error: object) -> None:
        self.peaks.look()
        peak = self.peaks.stack.pop()
        if self.peaks.stack:
            self.peaks.stack[-1] = max(self.peaks.stack[-1], peak)
        if self.name.startswith(names.MODULE):
            path = self.name.removeprefix(names.MODULE)
            self.peaks.by_path[path] = max(self.peaks.by_path.get(path, 0), peak - self.start)
