"""Which implementation computes: the compiled one for the CPU where numba is installed, plain torch otherwise.

An engine answers for itself whether it can take the logits, and offers the four functions of `Engine`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache

import torch

from speechmeter.transducer import lattice, rows
from speechmeter.transducer.checks import Sizes
from speechmeter.transducer.rows import Rows

Cells = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """The steps of a loss: rows to cells, cells to likelihoods and posteriors, posteriors to the gradient."""

    name: str
    takes: Callable[[torch.Tensor], bool]
    cell_scores: Callable[[torch.Tensor, Rows], Cells]
    log_likelihood: Callable[[torch.Tensor, torch.Tensor, Sizes], torch.Tensor]
    posteriors: Callable[[torch.Tensor, torch.Tensor, Sizes], tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
    gradient: Callable[[torch.Tensor, Rows, torch.Tensor, torch.Tensor, torch.Tensor, float], torch.Tensor]


TORCH = Engine(
    name="torch",
    takes=lambda logits: True,
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
    named = _only.get()
    if named is not None:
        return named
    compiled = _compiled()
    return compiled if compiled is not None and compiled.takes(logits) else TORCH


@cache
def _compiled() -> Engine | None:
    try:
        from speechmeter.transducer import compiled
    except ImportError:
        return None
    return Engine(
        name="numba",
        takes=compiled.takes,
        cell_scores=compiled.cell_scores,
        log_likelihood=compiled.log_likelihood,
        posteriors=compiled.posteriors,
        gradient=compiled.gradient,
    )
