"""What can be searched for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from speechmeter.core.errors import InputError
from speechmeter.core.protocol import SearchProtocol
from speechmeter.core.types import Case

TRIAL_METERS = ("latency", "memory")
"""What is read off a trial, as far as a plan asks for it."""
COARSE_ROUNDS = 1
"""Rounds that choose a level of load. A verdict does not count them: the level is there because they looked so."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One axis that is searched upwards. Values are whole multiples of `step`.

    `start` is used if a plan names no value, `most` and `within` if it sets no limits: the search ends
    when the largest that fits and the smallest that does not are closer than `within` as a share, or one step apart.
    """

    axis: str
    step: float
    start: float
    most: float
    within: float
    live: bool = False
    """Whether its trials are live cases, judged by an SLO, and not calls that fit into memory."""

    def value(self, steps: int) -> int | float:
        """The value of so many steps, a whole number where steps are."""
        return steps * int(self.step) if float(self.step).is_integer() else round(steps * self.step, 6)

    def steps(self, value: float) -> int:
        """How many whole steps a value holds."""
        return int(value / self.step + 1e-9)


TARGETS: Mapping[str, Target] = {
    "max-batch": Target(axis="batch", step=1, start=1, most=65_536, within=0.0),
    "max-seconds": Target(axis="seconds", step=0.1, start=1.0, most=7_200.0, within=0.01),
    "max-frames": Target(axis="max_frames", step=1, start=1_000, most=10_000_000, within=0.01),
    "max-streams": Target(axis="streams", step=1, start=1, most=4_096, within=0.0, live=True),
    "max-rate": Target(axis="rate", step=0.01, start=1.0, most=10_000.0, within=0.1, live=True),
}


def target_of(case: Case) -> Target | None:
    """What the search was after that a case is a trial of; None for a case of an ordinary study."""
    return TARGETS.get(case.protocol.find) if isinstance(case.protocol, SearchProtocol) else None


def check_enough(case: Case, items: int) -> None:
    """Raise InputError for a trial whose batch is more than all there is to feed: a smaller one would be fed unseen."""
    batch = case.axes.batch
    if target_of(case) is not None and batch is not None and batch > items:
        reason = f"{items} items cannot fill a batch of {batch}"
        raise InputError(reason, where=case.workload.name, fix=f"start the search at {items} or less")


def at(case: Case, target: Target, steps: int) -> Case:
    """The trial of a search at so many steps."""
    return case.with_axes(**{target.axis: target.value(steps)})


def one_call(case: Case) -> bool:
    """Whether memory is read in one call and in total alone, as a trial asks for; elsewhere again, and by stage."""
    return isinstance(case.protocol, SearchProtocol) and case.protocol.readings == 1
