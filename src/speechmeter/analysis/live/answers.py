"""What a study of live systems found: how late text is, how many streams a system carries, who makes fewest errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.frontier import Size
from speechmeter.analysis.live.levels import edge, ladders
from speechmeter.analysis.study import Answer, Setting, Study, best_of
from speechmeter.core import metrics

_DELAYS = (
    metrics.FINAL_DELAY, metrics.REQUEST_LATENCY, metrics.WORD_LAG, metrics.FIRST_PARTIAL_FROM_ONSET,
    metrics.FIRST_SOUND,
)  # fmt: skip
_REAL_TIME = "realtime"


def least_delay(study: Study) -> Iterator[Answer]:
    """The system whose text is final soonest, in the middle of all conversations, with the fewest streams.

    Where no final text has a delay, the latency of requests, then the lag of words, the time to the first text, or to
    the first sound.
    """
    settings = _alone(study)
    for metric in _DELAYS:
        if any(estimate(one.rounds, metric) is not None for one in settings):
            several = len({_count(one) for one in _live(study)}) > 1
            paces = len({_text_pace(one) for one in _live(study)}) > 1
            where = [_many(settings[0])] * several + [_pace_words(settings[0])] * paces
            yield from best_of("delay", settings, metric, where=", ".join(where))
            return


def lowest_live_error(study: Study) -> Iterator[Answer]:
    """The system with the fewest word errors in its final texts."""
    yield from best_of("live errors", _alone(study), metrics.LIVE_WER)


def most_streams(study: Study) -> Iterator[Answer]:
    """The system that keeps up with the most streams, of those that were tried with several numbers of streams."""
    records = [record for one in _live(study) for record in one.rounds]
    found = []
    for levels in ladders(records):
        kept, behind = edge(levels)
        if kept is not None and len(levels) > 1:
            found.append((kept, behind, next(level for level in levels if level.streams == kept)))
    if not found:
        return
    most = max(kept for kept, _, _ in found)
    best = [(behind, level) for kept, behind, level in found if kept == most]
    behind, level = best[0]
    yield Answer(
        rule="streams", names=tuple(level.records[0].case.subject.name for _, level in best), rounds=level.records,
        figure=_streams(most, at_least=behind is None), of=len(found),
        limit=None if behind is None else _streams(behind),
    )  # fmt: skip


def _streams(count: int, *, at_least: bool = False) -> Size:
    return Size(
        metric=metrics.KEEP_UP, value=float(count), low=None, high=None, rounds=1, samples_per_round=1,
        at_least=at_least,
    )  # fmt: skip


def _live(study: Study) -> list[Setting]:
    return [one for one in study.settings if one.rounds[0].case.live is not None]


def _alone(study: Study) -> Sequence[Setting]:
    """Live settings at the fewest streams, paced as speech is where some are; texts at once where some are."""
    live = _live(study)
    paced = [one for one in live if one.rounds[0].case.axes.get("pace") == _REAL_TIME] or live
    fewest = min((_count(one) for one in paced), default=1)
    alone = [one for one in paced if _count(one) == fewest]
    slowest = min((_text_pace(one) for one in alone), default=0.0)
    found = [one for one in alone if _text_pace(one) == slowest]
    if len({one.model for one in found}) < len(found):
        return found
    return [replace(one, name=one.model) for one in found]


def _many(setting: Setting) -> str:
    """`1 stream`."""
    count = _count(setting)
    return f"{count} stream{'' if count == 1 else 's'}"


def _text_pace(setting: Setting) -> float:
    """Tokens per second of texts; 0 where they come at once."""
    return setting.rounds[0].case.axes.text_pace or 0.0


def _pace_words(setting: Setting) -> str:
    pace = _text_pace(setting)
    return f"text at {pace:g} tokens/s" if pace else "text at once"


def _count(setting: Setting) -> int:
    return int(setting.rounds[0].case.axes.get("streams") or 1)
