"""Synthetic features for models that take them: normal numbers, lengths drawn between two bounds, one seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import InputError
from speechmeter.core.finding import check_enough
from speechmeter.core.protocols import FEATURES, Fed
from speechmeter.core.types import Batch, Case

_BANDS = 80
_FRAMES = (100, 1000)
_FRAME_S = 0.01
"""A frame stands for 10 ms of sound, as in every common front-end."""


class FeatureWorkload:
    """`count` items of `frames: [least, most]` frames × `bands`, `batch` of them at a time, padded with zeros."""

    axes = (Axis(name="batch", kind=int, default=1, help="items in a call", minimum=1),)
    options = (
        Option(name="frames"),
        Option(name="bands"),
        Option(name="count"),
    )

    def check(self, case: Case) -> None:
        """Whole numbers, in order."""
        options = case.workload.options
        least, most = _bounds(options.get("frames", _FRAMES))
        if not 1 <= least <= most:
            raise InputError(
                f"features: frames takes [least, most], not {options['frames']!r}", where="features", fix="[100, 1000]"
            )
        for name in ("bands", "count"):
            value = options.get(name, 1)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"features: {name} takes a whole number from 1 on, not {value!r}", where="features")
        if "count" in options:
            check_enough(case, options["count"])

    def feeds(self, case: Case) -> Fed:
        """Features of the bands that the plan says."""
        bands = case.workload.options.get("bands", _BANDS)
        return Fed(kinds=(FEATURES,), bands=bands if isinstance(bands, int) else None)

    def batches(self, case: Case) -> Iterator[Batch]:
        """The same on every call: lengths first, then numbers, from one seed."""
        import numpy as np

        options, size = case.workload.options, int(case.axes["batch"])
        least, most = _bounds(options.get("frames", _FRAMES))
        bands, count = int(options.get("bands", _BANDS)), int(options.get("count", size))
        draw = np.random.default_rng(case.protocol.seed)
        lengths = [int(length) for length in draw.integers(least, most + 1, size=count)]
        for start in range(0, count, size):
            part = lengths[start : start + size]
            data: Any = np.zeros((len(part), max(part), bands), dtype=np.float32)
            for row, length in enumerate(part):
                data[row, :length] = draw.standard_normal((length, bands), dtype=np.float32)
            yield Batch(
                data=data,
                items=len(part),
                ids=tuple(f"features-{start + row}" for row in range(len(part))),
                lengths=tuple(part),
                audio_s=sum(part) * _FRAME_S,
                padded_s=len(part) * max(part) * _FRAME_S,
            )


def _bounds(frames: Any) -> tuple[int, int]:
    """`[least, most]`, or one number for both; (0, 0) for anything else."""
    pair = frames if isinstance(frames, list | tuple) else [frames, frames]
    if len(pair) != 2 or not all(isinstance(part, int) and not isinstance(part, bool) for part in pair):
        return 0, 0
    return pair[0], pair[1]
