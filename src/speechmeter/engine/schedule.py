"""How many calls are made in one process, and which of them are samples.

The first call after loading is made (and timed on its own) before any of this; it counts as the first discarded one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from statistics import median

from speechmeter.core.batches import in_turn
from speechmeter.core.protocol import SCHEDULE, Protocol, RepeatsProtocol, SteadyProtocol, Steps
from speechmeter.core.protocols import Collected
from speechmeter.core.types import Batch

Sample = Callable[[Batch], int]
_WARMUP_SHARE = 0.25
"""Warm-up, the first call included, ends when it has used this share of the budget."""
WINDOW = 5
_TOLERANCE = 0.05


def collect(sample: Sample, batches: Sequence[Batch], protocol: Protocol, first_ns: int) -> Collected:
    """Make the calls that the protocol asks for. Raises ValueError for a mode that is not known.

    Samples are whole passes over the batches, from the first on: sample n is of batch n modulo their number. Only a
    schedule is kept to the step, as the classic studies do: it says itself which batches its samples are of.
    """
    if isinstance(protocol, SteadyProtocol):
        return _steady(sample, batches, protocol, first_ns)
    if isinstance(protocol, RepeatsProtocol):
        discarded = max(0, protocol.discard - 1)
        count = _whole_passes(protocol.samples, batches)
        for calls in (discarded, count):
            for batch in in_turn(batches, calls):
                sample(batch)
        return Collected(kept=(False,) * discarded + (True,) * count, stop_reason="repeats")
    steps = Steps.of(protocol, len(batches))
    if steps is not None:
        # step n is fed batch n. The first call was step 0, unless that one is a sample
        made = steps.all[1:] if steps.lead else steps.all
        for step in made:
            sample(batches[step % len(batches)])
        return Collected(
            kept=tuple(map(steps.is_kept, made)),
            stop_reason=SCHEDULE,
            indices=() if steps.in_turn else steps.indices,
        )
    raise ValueError(f"unknown protocol mode {protocol.to_json().get('mode')!r}")


def _steady(sample: Sample, batches: Sequence[Batch], protocol: SteadyProtocol, first_ns: int) -> Collected:
    """Warm up until two adjacent windows agree, within a cap of calls and of time; then take the samples."""
    budget_ns = int(protocol.budget_s * 1e9)
    feed = in_turn(batches)
    warm: list[int] = []
    spent_ns = first_ns
    while len(warm) < protocol.warmup and spent_ns < budget_ns * _WARMUP_SHARE and not is_steady(warm):
        warm.append(sample(next(feed)))
        spent_ns += warm[-1]
    spent_ns, count = 0, 0
    wanted, least = (_whole_passes(calls, batches) for calls in (protocol.samples, protocol.min_samples))
    while count < wanted and (count < least or spent_ns < budget_ns):
        spent_ns += sum(sample(batch) for batch in batches)
        count += len(batches)
    reason = "samples" if count == wanted else "budget"
    ready = "steady" if is_steady(warm) else "warm-up capped"
    return Collected(kept=(False,) * len(warm) + (True,) * count, stop_reason=f"{reason}, {ready}")


def _whole_passes(calls: int, batches: Sequence[Batch]) -> int:
    return ceil(calls / len(batches)) * len(batches)


def is_steady(times: Sequence[float]) -> bool:
    """Whether the last two windows of calls agree in level and in spread."""
    if len(times) < 2 * WINDOW:
        return False
    before, after = times[-2 * WINDOW : -WINDOW], times[-WINDOW:]
    level, spreads = median(before), (_spread(before), _spread(after))
    same_level = abs(median(after) - level) <= max(_TOLERANCE * level, sum(spreads) / 2)
    return same_level and spreads[1] <= 2 * spreads[0] + _TOLERANCE * level


def _spread(times: Sequence[float]) -> float:
    centre = median(times)
    return median(abs(time - centre) for time in times)
