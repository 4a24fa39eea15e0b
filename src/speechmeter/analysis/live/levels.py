"""How many streams a system carries: at which level the delay of its text begins to grow along a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Literal

from speechmeter.analysis.intervals import Quantity, t_quantile
from speechmeter.analysis.live.measure import OF
from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.core.axes import Axes
from speechmeter.core.live import CLIENT_BOUND
from speechmeter.core.types import Record

BOUND = 0.01
"""Seconds per second: by more than this a delay grows."""
_FAILED = 1.0
"""The growth of a stream that failed without text: every second it is a second further behind."""
_DIGITS = 9
"""What is smaller is rounding."""
Verdict = Literal["keeps up", "falls behind", "undecided", ""]


@dataclass(frozen=True, kw_only=True)
class Level:
    """A system at one number of streams. `slope` is of its delay, over rounds; None where there is none.

    It keeps up where the slope is at most `BOUND`, at 95 % one-sided from two rounds on. Without a slope it falls
    behind where answers did not come within their timeout, else the verdict is empty.
    """

    streams: int
    records: tuple[Record, ...]
    slope: Quantity | None
    verdict: Verdict

    @property
    def timed_out(self) -> int:
        """How many conversations had no answer in time."""
        answers = [found for record in self.records if (found := record.find(metrics.LIVE_ANSWERED.id)) is not None]
        return sum(list(found.notes.get("errors", ())).count("timeout") for found in answers)

    @property
    def is_client_bound(self) -> bool:
        """Whether the client was late in some round, so that the system may carry more."""
        return any(warning.startswith(CLIENT_BOUND) for record in self.records for warning in record.warnings)


def ladders(records: Sequence[Record]) -> list[list[Level]]:
    """The levels of each system, by the number of streams: cases that differ in nothing else."""
    groups: dict[str, list[Level]] = {}
    for group in by_case(records).values():
        case = group[0].case
        if case.live is not None and not case.live.arrivals and case.axes.get("streams") is not None:
            same = replace(case, axes=Axes({**case.axes, "streams": 1}))
            groups.setdefault(same.id, []).append(_level(group))
    return [sorted(levels, key=lambda level: level.streams) for levels in groups.values()]


def edge(levels: Sequence[Level]) -> tuple[int | None, int | None]:
    """(the most streams with which it keeps up, as with all fewer ones that were tried, the fewest with which not)."""
    behind = next((level.streams for level in levels if level.verdict == "falls behind"), None)
    kept = None
    for level in levels:
        if level.verdict != "keeps up":
            break
        kept = level.streams
    return kept, behind


def slopes(record: Record) -> list[float]:
    """The growth of the delay of each stream of a round, also of those that failed; empty where none has a slope."""
    found, answers = record.find(metrics.KEEP_UP.id), record.find(metrics.LIVE_ANSWERED.id)
    if found is None or not found.values:
        return []
    of = set(found.notes.get(OF, range(len(found.values))))
    errors = () if answers is None else answers.notes.get("errors", ())
    return [*found.values, *(_FAILED for place, error in enumerate(errors) if error and place not in of)]


def _level(group: Sequence[Record]) -> Level:
    rounds = [values for record in group if (values := slopes(record))]
    means = [fmean(values) for values in rounds]
    made = Level(streams=group[0].case.axes.streams, records=tuple(group), slope=None, verdict="")
    if not means:
        return replace(made, verdict="falls behind") if made.timed_out else made
    mean, count = round(fmean(means), _DIGITS), len(means)
    error = stdev(means) / count**0.5 if count > 1 else 0.0
    wide = t_quantile(count - 1) * error if count > 1 else None
    slope = Quantity(
        metric=metrics.KEEP_UP, value=mean, low=None if wide is None else round(mean - wide, _DIGITS),
        high=None if wide is None else round(mean + wide, _DIGITS), rounds=count, samples_per_round=len(rounds[0]),
        statistic="difference",
    )  # fmt: skip
    within = t_quantile(count - 1, 0.95) * error if count > 1 else 0.0
    verdict: Verdict = "undecided"
    if mean + within <= BOUND:
        verdict = "keeps up"
    elif mean - within > BOUND:
        verdict = "falls behind"
    return replace(made, slope=slope, verdict=verdict)
