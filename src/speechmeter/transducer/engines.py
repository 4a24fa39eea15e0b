"""Which implementation computes: fused on a GPU with triton, compiled on the CPU with numba, plain torch otherwise.

An engine answers for itself whether it can take the logits, and offers the functions of `Engine`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache

import torch

from speechmeter.transducer import arcs, lattice, rows
from speechmeter.transducer.arcs import Durations
from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.rows import Cells, Rows


@dataclass(frozen=True, kw_only=True)
class Engine:
    """The steps of a loss: rows to cells, cells to likelihoods and posteriors, posteriors to the gradient."""

    name: str
    takes: Callable[[torch.Tensor], bool]
    takes_cells: Callable[[torch.Tensor], bool]
    cell_scores: Callable[[torch.Tensor, Rows], Cells]
    log_likelihood: Callable[[torch.Tensor, torch.Tensor, Sizes], torch.Tensor]
    posteriors: Callable[[torch.Tensor, torch.Tensor, Sizes], tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
    gradient: Callable[[torch.Tensor, Rows, Cells, torch.Tensor, float, bool], torch.Tensor]
    arc_posteriors: Callable[
        [torch.Tensor, torch.Tensor, Sizes, Durations], tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    ] = arcs.posteriors
    """Of a lattice whose arcs may skip frames; there are no kernels of it, so that torch computes it on a GPU."""


TORCH = Engine(
    name="torch",
    takes=lambda logits: True,
    takes_cells=lambda cells: True,
    cell_scores=rows.cell_scores,
    log_likelihood=lattice.log_likelihood,
    posteriors=lattice.posteriors,
    gradient=rows.gradient,
)


_only: ContextVar[Engine | None] = ContextVar("_only", default=None)


@contextmanager
def only(engine: Engine) -> Iterator[None]:
    """Compute by this engine alone, to hold engines against each other. The backward pass follows the forward one."""
    token = _only.set(engine)
    try:
        yield
    finally:
        _only.reset(token)


def engine_for(logits: torch.Tensor) -> Engine:
    """Return the first engine that takes these logits, or the one that `only` names."""
    return _only.get() or next(engine for engine in _engines(logits) if engine.takes(logits))


def engine_for_cells(cells: torch.Tensor) -> Engine:
    """Return the first engine that takes these float64 cells of a lattice, or the one that `only` names."""
    return _only.get() or next(engine for engine in _engines(cells) if engine.takes_cells(cells))


def _engines(scores: torch.Tensor) -> Iterator[Engine]:
    fast = fused() if scores.device.type == "cuda" else _compiled()  # neither is imported where it has nothing to do
    return (engine for engine in (fast, TORCH) if engine is not None)


@cache
def fused() -> Engine | None:
    """Return the engine of Triton kernels; None where triton is not installed."""
    try:
        from speechmeter.transducer.fused import lattice, rows
    except ImportError:
        return None
    return Engine(
        name="triton",
        takes=rows.takes,
        takes_cells=lambda cells: cells.device.type == "cuda",
        cell_scores=rows.cell_scores,
        log_likelihood=lattice.log_likelihood,
        posteriors=lattice.posteriors,
        gradient=rows.gradient,
    )


@cache
def _compiled() -> Engine | None:
    try:
        from speechmeter.transducer import compiled, compiled_arcs
    except ImportError:
        return None
    return Engine(
        name="numba",
        takes=compiled.takes,
        takes_cells=compiled.takes,
        cell_scores=compiled.cell_scores,
        log_likelihood=compiled.log_likelihood,
        posteriors=compiled.posteriors,
        gradient=compiled.gradient,
        arc_posteriors=compiled_arcs.posteriors,
    )
