"""How many rounds a case needs: a first stage gives its spread, and from that their number is chosen once.

Looking again after every round and stopping when the interval is narrow gives intervals that are too narrow: it stops
where the spread came out small by chance. So there are two stages, as Stein (1945) has them. The first has `least`
rounds. Its spread, steadied by the other cases, gives the number of rounds, and the interval uses it
too. There is at least one round after the first stage, whose record says what was chosen and from what.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import variance

from speechmeter.analysis.derived import round_value
from speechmeter.analysis.difference import Variance, moderated
from speechmeter.analysis.intervals import t_quantile
from speechmeter.core import metrics
from speechmeter.core.types import Pilot, Record


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """How many rounds: a fixed number where `least` and `most` agree, else as many as `precision` needs.

    `precision` is half the interval over rounds as a share of the figure.
    """

    least: int
    most: int
    precision: float = 0.05

    @property
    def adaptive(self) -> bool:
        """Whether the number depends on what is found."""
        return self.least < self.most


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """How many rounds a case gets in all, and from what that was chosen; None where it has no spread to go by."""

    rounds: int
    pilot: Pilot | None = None


def choose(cases: Mapping[str, Sequence[Record]], rounds: Rounds) -> dict[str, Chosen]:
    """The number of rounds of every case whose first stage is complete, by the case's id.

    A case that says what was chosen for it keeps that. One that failed in every round of its first stage is not tried
    any more, one that is not timed needs no further round, and one with a single figure goes on: it has no spread.
    """
    stored = {case: next((r.pilot for r in records if r.pilot is not None), None) for case, records in cases.items()}
    known = {case: pilot for case, pilot in stored.items() if pilot is not None}
    fresh = {
        case: variance_
        for case, records in cases.items()
        if case not in known and (variance_ := _spread(records, rounds)) is not None
    }
    for case, steadied in zip(fresh, moderated(list(fresh.values())), strict=True):
        known[case] = Pilot(rounds=rounds.least, sd=math.sqrt(steadied.value), degrees=steadied.degrees)
    found = {}
    for case, pilot in known.items():
        # as many as the precision needs with this spread, within what is allowed, and one after the first stage
        needed = math.ceil((t_quantile(pilot.degrees) * pilot.sd / math.log1p(rounds.precision)) ** 2)
        found[case] = Chosen(rounds=min(rounds.most, max(pilot.rounds + 1, needed)), pilot=pilot)
    for case, records in cases.items():
        if case not in found and _first_stage(records, rounds) == rounds.least:
            single = any(round_value(record, metrics.LATENCY, "total", records) for record in records)
            found[case] = Chosen(rounds=rounds.most if single else rounds.least)
    return found


def _first_stage(records: Sequence[Record], rounds: Rounds) -> int:
    return sum(record.round < rounds.least for record in records)


def _spread(records: Sequence[Record], rounds: Rounds) -> Variance | None:
    """The variance of the logarithms of the first rounds; None while some are missing, or where there are too few."""
    if _first_stage(records, rounds) < rounds.least:
        return None
    first = [record for record in records if record.round < rounds.least]
    found = [value[0] for record in first if (value := round_value(record, metrics.LATENCY, "total", first))]
    if len(found) < 2 or min(found) <= 0:
        return None
    return Variance(value=variance(map(math.log, found)), degrees=len(found) - 1)
