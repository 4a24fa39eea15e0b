"""The values of a live metric in all rounds of a case: which utterance and which round each of them is of.

Utterances and rounds are crossed: every round is a fresh process that hears the same utterances.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from speechmeter.analysis.live.measure import MISSING, OF, TIMEOUT, WORD
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.quality import UTTERANCES
from speechmeter.core.types import Measurement, Record

CONVERSATIONS, POOLED = "conversations", "pooled"
"""How live metrics are combined (see `core.metrics.Combination`)."""


@dataclass(frozen=True, kw_only=True)
class Samples:
    """One array entry a value; a missing answer is an infinite value. `above` and `below` are there for ratios.

    `unit` and `round` index `utterances` and `rounds`. `place` is the word of the reference that a value is about, or
    0. `timeout_s` is how long answers that are missing were awaited; None where none is missing.
    """

    utterances: tuple[str, ...]
    rounds: tuple[int, ...]
    values: Any
    unit: Any
    round: Any
    place: Any
    above: Any = None
    below: Any = None
    timeout_s: float | None = None

    @property
    def heard(self) -> int:
        """How many distinct utterances have a value."""
        import numpy as np

        return len(np.unique(self.unit))


def is_live(metric: Metric) -> bool:
    """Whether a metric has a value for each conversation, or is a ratio of sums over conversations."""
    return metric.combined in (CONVERSATIONS, POOLED)


def names_of(record: Record) -> Sequence[str]:
    """The utterance of each conversation of a round."""
    found = record.find(metrics.LIVE_ANSWERED.id)
    return () if found is None else [str(name) for name in found.notes.get(UTTERANCES, ())]


def samples_of(records: Sequence[Record], metric: Metric, only: Iterable[str] | None = None) -> Samples | None:
    """The values of all rounds of a case, of these utterances alone where they are given; None without any."""
    import numpy as np

    held = [(r.round, m, names) for r in records if (m := r.find(metric.id)) is not None and (names := names_of(r))]
    wanted = None if only is None else set(only)
    utterances = tuple(sorted({name for _, _, names in held for name in names if wanted is None or name in wanted}))
    place_of = {name: place for place, name in enumerate(utterances)}
    rows: list[tuple[float, int, int, int, float, float]] = []
    rounds = tuple(dict.fromkeys(number for number, m, _ in held if m.values or m.notes.get(MISSING)))
    for number, measurement, names in held:
        if number in rounds:
            found = _rows(measurement, names, place_of, rounds.index(number))
            # a conversation that a ratio does not count, since what it is about never happened, has no counts
            rows += [row for row in found if metric.combined != POOLED or not isnan(row[4])]
    if not rows:
        return None
    columns = np.array(rows, dtype=float).T
    values, unit, round_, place, above, below = columns
    timeouts = [float(m.notes[TIMEOUT]) for _, m, _ in held if m.notes.get(MISSING)]
    ratios = {"above": above, "below": below} if not np.isnan(above).any() else {}
    return Samples(
        utterances=utterances, rounds=rounds, values=values, unit=unit.astype(int), round=round_.astype(int),
        place=place.astype(int), timeout_s=max(timeouts, default=None), **ratios,
    )  # fmt: skip


def _rows(
    measurement: Measurement, names: Sequence[str], place_of: dict[str, int], round_: int
) -> Iterable[tuple[float, int, int, int, float, float]]:
    notes, values = measurement.notes, measurement.values
    of = notes.get(OF, range(len(values)))
    places = notes.get(WORD) or [0] * len(values)
    above, below = (notes.get(key) or [float("nan")] * len(values) for key in ("above", "below"))
    for row in zip(of, values, places, above, below, strict=False):
        unit = place_of.get(names[row[0]]) if row[0] < len(names) else None
        if unit is not None:
            yield row[1], unit, round_, row[2], row[3], row[4]
    for missing in notes.get(MISSING, ()):
        unit = place_of.get(names[int(missing)]) if missing < len(names) else None
        if unit is not None:
            yield float("inf"), unit, round_, 0, float("nan"), float("nan")
