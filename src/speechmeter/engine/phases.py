"""Which processes a case needs, which meters share one, and in which order they run. All of it follows from phases.

The order in which a user names the meters decides nothing: it would change what is measured. A profiler slows what is
timed after it, and a meter that loads the machine warms it up for the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from speechmeter.core import metrics
from speechmeter.core.protocols import ORDINARY, Meter, Phase
from speechmeter.core.types import Case

MAIN, SHAPES, PROFILED = "main", "shapes", "profiled"
"""Names of processes in the scopes of a record: the timed one, the one on shapes alone, the one of the profilers."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """One measuring process of a case: its name in scopes, and its meters in the order they run."""

    name: str
    meters: tuple[Meter, ...]

    @property
    def observes(self) -> bool:
        """Whether it watches the subject in a way of its own: if it fails, only its own figures are missing."""
        return self.name in (SHAPES, PROFILED)

    @property
    def environ(self) -> Mapping[str, str]:
        """Variables that it is started with: the timed process has none, so that no meter changes what is timed."""
        of_meters = () if self.name == MAIN else self.meters
        return {key: value for meter in of_meters for key, value in meter.environ.items()}


def processes_of(case: Case, meters: Sequence[Meter]) -> list[Process]:
    """The processes in the order they run: the timed one, those of memory, the count, the profilers."""
    if case.live is not None:  # one process holds the conversations, and meters watch it
        return [Process(name=MAIN, meters=tuple(in_order(meters)))]
    groups: dict[str, list[Meter]] = {}
    for meter in in_order(meters):
        groups.setdefault(_process_of(meter, case, meters), []).append(meter)
    turns = {MAIN: 0, SHAPES: 2, PROFILED: 3}
    ordered = sorted(groups, key=lambda name: (turns.get(name, 1), name))
    return [Process(name=name, meters=tuple(groups[name])) for name in ordered]


def in_order(meters: Iterable[Meter]) -> list[Meter]:
    """Meters of one process as they run: latency, memory, what else reads the subject as it runs, counts, profilers.

    Memory comes before the rest because libraries keep what other passes allocate (cuBLAS its workspace, say). Meters
    of one phase run in the order of their names.
    """
    turns = {Phase.MEMORY: 1, Phase.TIMING: 2, Phase.COUNT: 3, Phase.PROFILE: 4}

    def turn(meter: Meter) -> tuple[int, str]:
        is_latency = meter.phase is Phase.TIMING and metrics.LATENCY in meter.metrics
        return (0 if is_latency else turns[meter.phase], meter.name)

    return sorted(meters, key=turn)


def _process_of(meter: Meter, case: Case, meters: Sequence[Meter]) -> str:
    if meter.phase is Phase.PROFILE:
        return PROFILED
    if meter.phase is Phase.MEMORY:  # CUDA's counters can be reset in any process
        return MAIN if case.device.is_cuda else meter.name
    # A meter with ways on shapes alone starts no process for itself: it joins the one that counts, or the timed one.
    counts = any(other.phase is Phase.COUNT for other in meters) or all(other.ways != ORDINARY for other in meters)
    return SHAPES if meter.phase is Phase.COUNT or (meter.ways != ORDINARY and counts) else MAIN
