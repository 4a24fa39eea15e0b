"""The process in which models are built from shapes alone, for meters that need no values. Imports no torch itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from speechmeter.core.protocols import ORDINARY, Way

SHAPES = "shapes"
"""The name of that process."""


@contextmanager
def _on_shapes() -> Iterator[None]:
    if find_spec("torch") is None:
        yield
        return
    from speechmeter.meters.flops.shapes_only import shapes_only

    with shapes_only():
        yield


SHAPES_THEN_REAL = (Way(around=_on_shapes, warm=False), *ORDINARY)
"""Shapes alone first; an ordinary run where the model refuses."""
