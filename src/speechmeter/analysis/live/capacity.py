"""The capacity of a live system under an SLO: its levels in order, each with a verdict, and the bracket of the edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from speechmeter.analysis.live.measure import OF
from speechmeter.analysis.live.verdict import Verdict, Word, verdict
from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.core.live import CLIENT_BOUND
from speechmeter.core.slo import Slo
from speechmeter.core.types import Record

STREAMS, RATE = "streams", "rate"


@dataclass(frozen=True, kw_only=True)
class LoadLevel:
    """A system at one level of load: a number of streams, or conversations that begin per second.

    `records` are the rounds that count; `chosen_by` is the verdict on the round that a search chose the level by.
    """

    level: float
    records: tuple[Record, ...]
    found: Verdict
    chosen_by: Verdict | None = None

    @property
    def word(self) -> Word:
        """The verdict; a level fails only where the client was not the reason."""
        return "undecided" if self.found.word == "fails" and self.is_client_bound else self.found.word

    @cached_property
    def is_client_bound(self) -> bool:
        """Whether the client was late in some round, so that the system may carry more."""
        return any(warning.startswith(CLIENT_BOUND) for record in self.records for warning in record.warnings)


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """All levels of a system, ascending. `axis` is `streams` or `rate`."""

    axis: str
    levels: tuple[LoadLevel, ...]

    @property
    def unserved(self) -> str:
        """Why no conversation was held at any level; empty where one was. Then no level fails because of its load."""
        records = [record for level in self.levels for record in level.records]
        return "" if is_served(records) else records[0].reason

    @property
    def fails(self) -> LoadLevel | None:
        """The lowest level that fails."""
        return None if self.unserved else next((one for one in self.levels if one.word == "fails"), None)

    @property
    def passes(self) -> LoadLevel | None:
        """The highest level that passes below the lowest that fails."""
        fails = self.fails
        below = [one for one in self.levels if fails is None or one.level < fails.level]
        return next((one for one in reversed(below) if one.word == "passes"), None)

    @property
    def between(self) -> list[LoadLevel]:
        """Levels that are undecided, above the highest that passes and below the lowest that fails."""
        low = self.passes.level if self.passes is not None else 0.0
        high = self.fails.level if self.fails is not None else float("inf")
        return [one for one in self.levels if low < one.level < high]


def capacities(records: Sequence[Record], slo: Slo) -> list[Capacity]:
    """The capacity of each live system: cases that differ in nothing but their level."""
    lines: dict[tuple[str, str], list[LoadLevel]] = {}
    for group in by_case(records).values():
        case = group[0].case
        if case.live is None or not any(record.find(metrics.LIVE_ANSWERED.id) for record in group):
            continue
        axis = RATE if case.axes.get(RATE) is not None else STREAMS
        if axis == RATE or not case.live.arrivals:
            level = level_of(float(case.axes[axis]), group, slo)
            lines.setdefault((axis, case.line(axis)), []).append(level)
    return [
        Capacity(axis=axis, levels=tuple(sorted(levels, key=lambda one: one.level)))
        for (axis, _), levels in lines.items()
    ]


def is_served(records: Sequence[Record]) -> bool:
    """Whether in some round not every conversation failed at once, as with a server that is not there."""
    return any(record.status == "ok" for record in records)


def level_of(level: float, group: Sequence[Record], slo: Slo) -> LoadLevel:
    """A level with its verdict. Rounds before the first that counts are judged apart."""
    early = [record for record in group if record.round < slo.first_round]
    rounds = tuple(record for record in group if record.round >= slo.first_round)
    return LoadLevel(
        level=level, records=rounds or tuple(group), found=verdict(rounds, slo),
        chosen_by=verdict(early, slo) if early else None,
    )  # fmt: skip


def goodput(records: Sequence[Record], slo: Slo) -> float | None:
    """Audio of the conversations within every bound on a delay / time, over all rounds; None without a throughput."""
    above = below = 0.0
    for record in records:
        found = record.find(metrics.LIVE_THROUGHPUT.id)
        if found is None or not found.values:
            continue
        good = _good(record, slo, len(found.values))
        above += sum(audio for place, audio in enumerate(found.notes["above"]) if place in good)
        below += sum(found.notes["below"])
    return above / below if below else None


def _good(record: Record, slo: Slo, count: int) -> set[int]:
    """The conversations within every bound on a delay."""
    good = set(range(count))
    for bound in slo.bounds:
        if bound.share is None or bound.on_completeness:
            continue
        found = record.find(bound.metric.id)
        values = () if found is None else found.values
        of = range(len(values)) if found is None else found.notes.get(OF, range(len(values)))
        good &= {int(place) for place, value in zip(of, values, strict=False) if value <= bound.limit}
    return good
