"""Figures from a call that was profiled: the scopes of its kinds of work, and waiting for launches."""

from __future__ import annotations

from speechmeter.analysis.rounds import Round
from speechmeter.core import metrics
from speechmeter.core.scope import BUSY, SPLIT, Scope

CPU, GPU = (Scope.of(BUSY, worker) for worker in ("cpu", "gpu"))
"""Scopes of the busy time."""
AT_WORK = tuple(Scope.of(SPLIT, kind) for kind in ("kernel", "memcpy"))
WAITING = tuple(Scope.of(SPLIT, kind) for kind in ("runtime", "cpu", "idle"))
"""Scopes of a call's time in which the GPU worked, and in which it did not."""


def launch_bound(this: Round, scope: str) -> tuple[float, int] | None:
    """Latency over the GPU's busy time, from whichever meter took it."""
    latency, busy = this.typical(metrics.LATENCY, scope), this.typical(metrics.TIME_GPU, scope)
    if busy is None and scope == "total":
        busy = this.typical(metrics.TIME_BUSY, GPU)
    return (latency / busy, len(this.values(metrics.LATENCY, scope))) if latency is not None and busy else None
