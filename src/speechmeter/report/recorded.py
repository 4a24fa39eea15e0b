"""How profiled calls were recorded, for their tables: what beside operators and modules, and how many."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record

_USUAL = ("CPU", "CUDA", "modules")


def recorded_notes(records: Sequence[Record], metric: Metric) -> list[str]:
    """Lines where more than usual was recorded with a metric, fewer calls than asked for, or rounds differ."""
    found = {tuple(m.notes["recorded"]): None for r in records for m in r.measurements
             if m.metric == metric.id and "recorded" in m.notes}  # fmt: skip
    more = list(dict.fromkeys(word for words in found for word in words if word not in _USUAL))
    lines = [f"recorded with {', '.join(more)}: calls take longer, small operators most."] if more else []
    notes = (m.notes for r in records for m in r.measurements if m.metric == metric.id and "shortened" in m.notes)
    lines += dict.fromkeys(f"{one['shortened']}." for one in notes)
    return lines + (["rounds were recorded in different ways, which take different times."] if len(found) > 1 else [])
