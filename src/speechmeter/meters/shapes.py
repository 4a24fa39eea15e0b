"""The process in which models are built from shapes alone, for meters that need no values. Imports no torch itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from speechmeter.core import metrics
from speechmeter.core.machine import kib_field
from speechmeter.core.protocols import ORDINARY, Way
from speechmeter.core.types import Measurement


@contextmanager
def _on_shapes() -> Iterator[None]:
    if find_spec("torch") is None:
        yield
        return
    from speechmeter.meters.flops.shapes_only import shapes_only

    with shapes_only():
        yield


_FLOP_PER_S, _BYTES_PER_S = 3e10, 3e9
"""What one core of an ordinary processor does."""
_CHEAP_S = 10.0
_CHEAP_BYTES = 4 * 2**30


def is_cheap(found: Sequence[Measurement]) -> bool:
    """Whether what was counted on shapes can be counted on a real run too: a few seconds, and memory that is there.

    What operators read and write is more than what weights and activations hold at any moment.
    """
    work = {metric: sum(m.values) for metric in _WORK for m in found if (m.metric, m.scope) == (metric.id, "total")}
    moved = work.pop(metrics.BYTES_MOVED, 0.0)
    seconds = sum(work.values()) / _FLOP_PER_S + moved / _BYTES_PER_S
    free = kib_field("/proc/meminfo", "MemAvailable") or 2 * _CHEAP_BYTES
    return bool(work) and seconds <= _CHEAP_S and moved <= min(_CHEAP_BYTES, free / 2)


_WORK = (metrics.FLOPS, metrics.FLOPS_BACKWARD, metrics.BYTES_MOVED)
SHAPES_THEN_REAL = (Way(around=_on_shapes, warm=False, check_next=is_cheap), *ORDINARY)
"""Shapes alone first; an ordinary run where the model refuses, and as a check where it costs little."""
