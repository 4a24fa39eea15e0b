"""Synthetic features for models that take them: normal numbers, lengths drawn between two bounds, one seed."""

from __future__ import annotations

from collections.abc import Iterator

from speechmeter.core.axes import BATCH, Option
from speechmeter.core.errors import InputError
from speechmeter.core.finding import check_enough
from speechmeter.core.protocols import FEATURES, Fed
from speechmeter.core.types import Batch, Case
from speechmeter.workloads.batching import padded
from speechmeter.workloads.sound import FRAME_S

_BANDS = 80
_FRAMES = (100, 1000)


class FeatureWorkload:
    """`count` items of `frames: [least, most]` frames × `bands`, `batch` of them at a time, padded with zeros."""

    axes = (BATCH,)
    options = (
        Option(
            name="frames",
            kind=(list, int),
            default=list(_FRAMES),
            minimum=1,
            help="number of frames of an item: [minimum, maximum], or one number",
        ),
        Option(name="bands", kind=int, default=_BANDS, minimum=1, help="values in a frame"),
        Option(name="count", kind=int, minimum=1, help="number of items (default: one batch)"),
    )

    def check(self, case: Case) -> None:
        """Frames must be two whole numbers in order, and there must be enough items."""
        least, most = _bounds(case)
        if not 1 <= least <= most:
            given = case.workload.options["frames"]
            raise InputError(
                f"`frames` takes [minimum, maximum], not {given!r}",
                key="features",
                fix="for example `frames: [100, 1000]`",
            )
        if "count" in case.workload.options:
            check_enough(case, _count(case))

    def feeds(self, case: Case) -> Fed:
        """Features of the bands that the plan says."""
        return Fed(kinds=(FEATURES,), bands=case.workload.options.get("bands", _BANDS))

    def batches(self, case: Case) -> Iterator[Batch]:
        """The same on every call: lengths are drawn first, then numbers, from one seed."""
        import numpy as np

        size, count = int(case.axes["batch"]), _count(case)
        bands = int(case.workload.options.get("bands", _BANDS))
        least, most = _bounds(case)
        draw = np.random.default_rng(case.protocol.seed)
        lengths = [int(length) for length in draw.integers(least, most + 1, size=count)]
        for start in range(0, count, size):
            part = lengths[start : start + size]
            arrays = [draw.standard_normal((length, bands), dtype=np.float32) for length in part]
            yield Batch(
                data=padded(arrays),
                items=len(part),
                ids=tuple(f"features-{start + row}" for row in range(len(part))),
                lengths=tuple(part),
                audio_s=sum(part) * FRAME_S,
                padded_s=len(part) * max(part) * FRAME_S,
            )


def _count(case: Case) -> int:
    given = case.workload.options.get("count")
    return int(case.axes["batch"]) if given is None else int(given)


def _bounds(case: Case) -> tuple[int, int]:
    """`[least, most]`, or one number for both; (0, 0) for anything else."""
    frames = case.workload.options.get("frames", _FRAMES)
    pair = frames if isinstance(frames, list | tuple) else [frames, frames]
    if len(pair) != 2 or not all(isinstance(part, int) and not isinstance(part, bool) for part in pair):
        return 0, 0
    return pair[0], pair[1]
