"""When conversations arrive: moments that are known before the first of them, from the seed alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, takewhile
from itertools import count as numbers
from random import Random

from speechmeter.core.errors import InputError
from speechmeter.core.protocol import CONSTANT, GAMMA, POISSON, RECORDED, LiveProtocol

MOST_ARRIVALS = 100_000
"""In one round."""


def arrivals_of(protocol: LiveProtocol, rate: float | None, seed: str, utterances: int) -> tuple[float, ...] | None:
    """Seconds from the start of a round, ascending; None where streams hold conversations one after another.

    As many as the protocol's `turns`, those of its `duration_s`, or one with each utterance. Raises InputError for none
    or too many.
    """
    if not protocol.arrivals:
        return None
    moments = (
        iter(protocol.offsets_s) if protocol.arrivals == RECORDED else _moments(protocol.arrivals, rate or 0.0, seed)
    )
    if protocol.duration_s is not None:
        moments = takewhile(lambda moment: moment < (protocol.duration_s or 0.0), moments)
    most = protocol.turns
    if most is None and protocol.duration_s is None and protocol.arrivals != RECORDED:
        most = utterances
    found: list[float] = []
    for moment in moments:
        if most is not None and len(found) == most:
            break
        found.append(moment)
        if len(found) > MOST_ARRIVALS:
            raise InputError(
                f"more than {MOST_ARRIVALS} conversations in a round", key="rate", fix="shorten `duration`"
            )
    if not any(moment >= protocol.ramp_s for moment in found):
        reason = "all conversations begin within the ramp, so none is measured"
        if not protocol.ramp_s:
            reason = "no conversation begins in this round"
        raise InputError(reason, key="ramp" if protocol.ramp_s else "duration", fix="raise `duration` or `turns`")
    return tuple(found)


def _moments(arrivals: str, rate: float, seed: str) -> Iterator[float]:
    """Without end. At random the first arrival comes after an interval as long as any other."""
    kind, _, burstiness = arrivals.partition(":")
    draw = Random(f"{seed}/arrivals")
    if kind == CONSTANT:
        return (number / rate for number in numbers())
    if kind == POISSON:
        return accumulate(draw.expovariate(rate) for _ in numbers())
    assert kind == GAMMA
    shape = float(burstiness)
    return accumulate(draw.gammavariate(shape, 1 / (rate * shape)) for _ in numbers())
