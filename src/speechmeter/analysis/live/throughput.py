"""How much audio a system gets through in a second while all streams are busy (full load).

A conversation counts when it ends. A share of its time would not do: one that waits in a queue makes no progress.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from speechmeter.analysis.live.talk import Talk
from speechmeter.core import metrics
from speechmeter.core.types import Measurement

_SLACK_S = 1e-9
_ONE_EACH = "throughput needs several conversations in each stream; raise `turns`, or set `duration`"
_NO_TIME = "the streams were never all busy at the same time; raise `turns`, or set a longer `duration`"


def throughput(found: Sequence[Talk]) -> Measurement:
    """Of each conversation the audio that counts, and its share of the window's seconds.

    So the sums give the throughput, and a subset of the conversations that part of it which is theirs.
    """
    if _single_turns(found):
        return Measurement.absent(metrics.LIVE_THROUGHPUT, _ONE_EACH)
    start_s, end_s = _window(found)
    if end_s <= start_s:
        return Measurement.absent(metrics.LIVE_THROUGHPUT, _NO_TIME)
    inside = [start_s + _SLACK_S < _end_s(talk) <= end_s + _SLACK_S for talk in found]
    audio = [talk.exchange.audio_s * (talk.is_complete and within) for talk, within in zip(found, inside, strict=True)]
    share_s = (end_s - start_s) / len(found)
    notes = {"of": list(range(len(found))), "above": audio, "below": [share_s] * len(found)}
    return Measurement.of(metrics.LIVE_THROUGHPUT, [one / share_s for one in audio], notes=notes)


def _single_turns(found: Sequence[Talk]) -> bool:
    """Whether a stream of several holds a single conversation."""
    counts = Counter(talk.exchange.stream for talk in found)
    return not found[0].conditions.arrivals and len(counts) > 1 and min(counts.values()) < 2


def _window(found: Sequence[Talk]) -> tuple[float, float]:
    """From the moment at which all streams have begun to that at which the first has ended. With arrivals from the end
    of the first complete conversation to that of the last, so that it is a rate of departures.
    """
    if found[0].conditions.arrivals:
        ends = [_end_s(talk) for talk in found if talk.is_complete] or [_end_s(talk) for talk in found]
        return min(ends), max(ends)
    starts: dict[int, float] = {}
    ends_of: dict[int, float] = {}
    for talk in found:
        one = talk.exchange
        starts[one.stream] = min(one.started_s, starts.get(one.stream, one.started_s))
        ends_of[one.stream] = max(_end_s(talk), ends_of.get(one.stream, 0.0))
    return max(starts.values()), min(ends_of.values())


def _end_s(talk: Talk) -> float:
    return talk.exchange.started_s + talk.exchange.ended_s
