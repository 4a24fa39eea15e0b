"""Subjects that answer from a cache: all timed calls have the same inputs, so their time is that of a look-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from speechmeter.core import metrics
from speechmeter.core.other_content import other_content
from speechmeter.core.types import Measurement
from speechmeter.engine.session import LOAD, LoadedSession
from speechmeter.meters.latency import StageClock

_SUSPICIOUS = 10
"""The first call takes so many times as long as the later ones: then new inputs are tried."""
_SLOWER = 5
"""A new input takes so many times as long as one that was seen before: then there is a cache."""
_LEAST_NS = 1_000_000
"""Less than a millisecond may be anything."""


def cache_warning(session: LoadedSession, found: Sequence[Measurement]) -> list[str]:
    """What to say about a subject that answers from a cache: all timed calls have the same inputs.

    Only where the first call took far longer than the later ones. Then two inputs of the same size that it has not seen
    are tried: if they are slow, and fast when they come again, there is a cache.
    """
    latency = next((m for m in found if (m.metric, m.scope) == (metrics.LATENCY.id, "total") and m.values), None)
    if latency is None:
        return []
    usual_ns = 1e9 * median(latency.values)
    if session.first_ns < max(_SUSPICIOUS * usual_ns, usual_ns + _LEAST_NS):
        return []
    batch = session.batches[0]
    changed = [data for turn in (1, 2) if (data := other_content(batch.data, turn)) is not None]
    if len(changed) < 2:
        return []
    clock = StageClock([stage for stage in session.stages if stage.name != LOAD], session.sync)
    try:
        pairs = [[clock.sample(replace(batch, data=data)) for _ in range(2)] for data in changed]
    except Exception:  # it takes no other input of this form: nothing can be said
        return []
    new_ns, again_ns = zip(*pairs, strict=True)
    if min(new_ns) < max(_SLOWER * max(usual_ns, *again_ns), usual_ns + _LEAST_NS):
        return []
    return [
        f"answers come from a cache: an input that was seen before takes {usual_ns / 1e6:.3g} ms, a new one "
        f"{min(new_ns) / 1e6:.3g} ms; the figures are those of the cache: switch it off"
    ]
