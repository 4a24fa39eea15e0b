"""What a model puts out, small enough to be kept: two configurations of a model are compared by it.

Text is kept as a hash. Of numbers, which may be millions, a count sketch is kept: each number is added to one of 256
sums, with a sign; place and sign are drawn once, from a fixed seed. The squared distance of two sketches is on average
that of the two outputs, with a standard error of 9 %.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.outputs import output_of
from speechmeter.core.protocols import Meter, Session
from speechmeter.core.tuning import OUTPUTS
from speechmeter.core.types import Batch, Measurement

SUMS = 256
MOST_ITEMS = {"text": 10_000, "numbers": 8}
"""So many items are kept."""
_SEED = 20


class OutputsMeter(Meter):
    """A sketch of what the last stage puts out, item by item, and how many of its numbers are not finite."""

    name = OUTPUTS
    metrics = (metrics.OUTPUT_SKETCH, metrics.OUTPUT_NOT_FINITE)

    def measure(self, session: Session) -> list[Measurement]:
        """One pass outside every clock; the reason where the outputs are neither text nor numbers."""
        kind, items, broken = "", dict[str, list[float]](), 0
        for number, batch in enumerate(session.all_batches):
            last = session.call(batch)[-1]
            found = output_of(last)
            if found.lines:
                kind, own = "text", [[_hashed(" ".join(line.split()))] for line in found.lines]
            else:
                arrays = list(_arrays(last))
                if not arrays:
                    reason = "the outputs are neither text nor numbers, so they cannot be compared"
                    return [Measurement.absent(metrics.OUTPUT_SKETCH, reason)]
                kind, own = "numbers", [sketch(item) for item in _by_item(arrays, batch.items)]
                broken += sum(_not_finite(array) for array in arrays)
            names = _names(batch, number, len(own))
            items.update({name: row for name, row in zip(names, own, strict=True) if name not in items})
            if len(items) >= MOST_ITEMS[kind]:
                break
        rows = dict(list(items.items())[: MOST_ITEMS.get(kind, 0)])
        width = 1 if kind == "text" else SUMS + 1
        notes = {"items": list(rows), "kind": kind, "width": width}
        values = [value for row in rows.values() for value in row]
        return [
            Measurement.of(metrics.OUTPUT_SKETCH, values, notes=notes),
            Measurement.of(metrics.OUTPUT_NOT_FINITE, [float(broken)]),
        ]


def sketch(item: Any) -> list[float]:
    """How many numbers there are, and their 256 signed sums; what is not finite counts as 0."""
    import numpy as np

    flat = np.nan_to_num(np.asarray(item, dtype=np.float64).ravel(), nan=0.0, posinf=0.0, neginf=0.0)
    drawn = (np.random.default_rng(_SEED).random(len(flat)) * 2 * SUMS).astype(np.int64)
    sums = np.bincount(drawn // 2, weights=flat * (1 - 2 * (drawn % 2)), minlength=SUMS)
    return [float(len(flat)), *(float(value) for value in sums)]


def _hashed(text: str) -> float:
    return float(int.from_bytes(hashlib.sha256(text.encode(errors="replace")).digest()[:6], "big"))


def _names(batch: Batch, number: int, count: int) -> Sequence[str]:
    """The ids of the items, else their numbers in the batch."""
    if len(batch.ids) == count:
        return batch.ids
    return [f"{number}.{index}" for index in range(count)]


def _arrays(value: Any) -> Iterator[Any]:
    """The arrays of numbers inside a result."""
    import numpy as np

    if isinstance(value, Mapping):
        for part in value.values():
            yield from _arrays(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _arrays(part)
    elif hasattr(value, "detach"):  # a tensor of torch
        value = value.detach()
        if value.is_floating_point():
            yield value.float().cpu().numpy()
    elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
        yield value


def _by_item(arrays: Sequence[Any], items: int) -> list[Any]:
    """What belongs to each item, where the first axis counts items; else all of it as one."""
    import numpy as np

    if items > 1 and all(array.ndim and array.shape[0] == items for array in arrays):
        return [np.concatenate([array[index].ravel() for array in arrays]) for index in range(items)]
    return [np.concatenate([array.ravel() for array in arrays])]


def _not_finite(array: Any) -> int:
    import numpy as np

    return int((~np.isfinite(array)).sum())
