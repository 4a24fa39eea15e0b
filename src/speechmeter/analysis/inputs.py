"""Does a figure on noise hold for real audio? Cases that differ in nothing but what was fed, and their ratio."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from speechmeter.analysis.compare import Verdict, verdict
from speechmeter.analysis.estimate import Estimate
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import CONTENT_HASHES, Case, Record

NOISE = "noise"
RATIO = "of inputs"
"""The statistic of a ratio between two inputs."""
MIN_EFFECT = 0.05


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The rounds of one case on noise, and of the same on real audio, which is called `name`."""

    noise: Sequence[Record]
    real: Sequence[Record]
    name: str

    def compared(self, metric: Metric) -> tuple[Verdict, Estimate | None]:
        """(the verdict on real against noise, their ratio); no ratio where a side has no figure or it is zero.

        Rounds that were measured next to each other are compared by pairs; a single round has no interval.
        """
        found = verdict(self.noise, self.real, metric, MIN_EFFECT, together=True)
        if found.ratio is None:
            return found, None
        samples = min(side.samples_per_round for side in (found.base, found.new) if side is not None)
        ratio = Estimate(
            metric=metrics.REAL_OVER_NOISE,
            value=found.ratio,
            low=found.low,
            high=found.high,
            rounds=found.rounds,
            samples_per_round=samples,
            statistic=RATIO,
        )
        return found, ratio


def pairs(groups: Iterable[Sequence[Record]]) -> Iterator[Pair]:
    """Every case on real audio that was also measured on noise, in the order of the cases."""
    cases = list(groups)
    on_noise = {_key(group[0].case): group for group in cases if _is_noise(group[0].case)}
    for group in cases:
        case = group[0].case
        partner = on_noise.get(_key(case)) if case.workload.plugin == "audio" and not _is_noise(case) else None
        if partner is not None:
            yield Pair(noise=partner, real=group, name=case.workload.name)


def _is_noise(case: Case) -> bool:
    return case.workload.plugin == "audio" and case.workload.source == NOISE


def _key(case: Case) -> str:
    """Everything about a case but what was fed."""
    options = {name: value for name, value in case.workload.options.items() if name not in CONTENT_HASHES}
    return json.dumps([case.subject.to_json(), dict(case.axes), dict(case.protocol), options], sort_keys=True)
