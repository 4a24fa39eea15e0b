"""The tactic of a search for the most streams, or the highest rate, that a live system carries within an SLO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speechmeter.analysis.frontier import Bounds
from speechmeter.analysis.live.capacity import is_served, level_of
from speechmeter.analysis.live.probing import Probe, Probed, next_probe, probes_left
from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.core.finding import Target
from speechmeter.core.slo import Slo
from speechmeter.core.types import Record


@dataclass(frozen=True, kw_only=True)
class Carrying:
    """See `launch.search.Tactic`. `confirming` rounds at each edge follow the coarse search."""

    slo: Slo
    confirming: int

    def is_answer(self, record: Record, line: Sequence[Record]) -> bool:
        """Whether conversations were held, and every bound can be judged. A round in which all of them failed says
        something about the load only where another level was served.
        """
        if record.find(metrics.LIVE_ANSWERED.id) is None or not is_served(line):
            return False
        found = level_of(0.0, [record], self.slo)
        return all(one.value is not None for one in (found.chosen_by or found.found).judged)

    def next_probe(self, records: Sequence[Record], target: Target, bounds: Bounds) -> Probe | None:
        """The level to probe next, with the number of its rounds."""
        return next_probe(self._levels(records, target), bounds, self.confirming)

    def left(self, records: Sequence[Record], target: Target, bounds: Bounds) -> int:
        """About how many rounds are left."""
        return probes_left(self._levels(records, target), bounds, self.confirming)

    def _levels(self, records: Sequence[Record], target: Target) -> dict[int, Probed]:
        levels = {}
        for group in by_case(record for record in records if self.is_answer(record, records)).values():
            size = target.steps(group[0].case.axes[target.axis])
            found = level_of(float(size), group, self.slo)
            fresh = [record for record in group if record.round >= self.slo.first_round]
            levels[size] = Probed(
                within=(found.chosen_by or found.found).is_within, word=found.word, fresh=len(fresh),
                client_bound=found.is_client_bound,
            )  # fmt: skip
        return levels
