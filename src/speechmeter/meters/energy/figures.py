"""The calls that energy is measured over, and the figures of a domain: per call, gross, net, mean and idle power."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from speechmeter.core import metrics
from speechmeter.core.errors import SensorError
from speechmeter.core.metrics import Metric
from speechmeter.core.protocols import Session
from speechmeter.core.scope import SENSOR, Scope
from speechmeter.core.types import Measurement
from speechmeter.meters.energy.sensors import Domain
from speechmeter.meters.energy.tracks import SensorTrack, Span, Track

WINDOWS = 3
LEAST_CALLS = 2
SLOW_WINDOW_S = 20.0
"""A window that takes longer (two calls of more than 10 s, or one long pass) stays the only one."""


class DomainMetrics(NamedTuple):
    """The four figures of a domain."""

    gross: Metric
    net: Metric
    power: Metric
    idle: Metric


METRICS: Mapping[Domain, DomainMetrics] = MappingProxyType(
    {
        "cpu": DomainMetrics(metrics.ENERGY_CPU, metrics.ENERGY_CPU_NET, metrics.POWER_CPU, metrics.POWER_CPU_IDLE),
        "gpu": DomainMetrics(metrics.ENERGY_GPU, metrics.ENERGY_GPU_NET, metrics.POWER_GPU, metrics.POWER_GPU_IDLE),
        "system": DomainMetrics(
            metrics.ENERGY_SYSTEM, metrics.ENERGY_SYSTEM_NET, metrics.POWER_SYSTEM, metrics.POWER_SYSTEM_IDLE
        ),
    }
)


@dataclass(frozen=True, kw_only=True)
class Load:
    """Calls made back to back. `stamps_s`: the start, then the end of every pass. `edges`: which of them bound windows.

    Calls are counted by passes, not one by one, because batches may be unlike: a tick a few milliseconds into a short
    call would count it whole.
    """

    stamps_s: tuple[float, ...]
    edges: tuple[int, ...]
    calls_per_pass: int

    @property
    def windows_s(self) -> list[tuple[float, float]]:
        """(start, end) of each window."""
        return [(self.stamps_s[first], self.stamps_s[last]) for first, last in pairwise(self.edges)]

    @property
    def calls(self) -> int:
        """Calls in all windows."""
        return (self.edges[-1] - self.edges[0]) * self.calls_per_pass

    def calls_between(self, start_s: float, end_s: float) -> float:
        """Calls made between two moments; a pass that was under way counts by the share of its time."""
        return (self._passes_until(end_s) - self._passes_until(start_s)) * self.calls_per_pass

    def _passes_until(self, moment_s: float) -> float:
        done = min(max(bisect_right(self.stamps_s, moment_s) - 1, 0), len(self.stamps_s) - 2)
        begun_s, ended_s = self.stamps_s[done], self.stamps_s[done + 1]
        share = (moment_s - begun_s) / (ended_s - begun_s) if ended_s > begun_s else 1.0
        return done + min(max(share, 0.0), 1.0)


def run_load(session: Session, *, window_s: float, clock: Callable[[], float]) -> Load:
    """Whole passes over the batches until each window has its seconds and its calls."""
    session.sync()
    stamps_s, edges, per_pass = [clock()], [0], len(session.batches)
    while len(edges) <= WINDOWS:
        for batch in session.batches:
            session.call(batch)
        stamps_s.append(clock())
        spent_s, passes = stamps_s[-1] - stamps_s[edges[-1]], len(stamps_s) - 1 - edges[-1]
        if spent_s >= window_s and passes * per_pass >= LEAST_CALLS:
            edges.append(len(stamps_s) - 1)
            session.progress(f"energy: window {len(edges) - 1} of {WINDOWS}")
            if spent_s > SLOW_WINDOW_S:
                break
    return Load(stamps_s=tuple(stamps_s), edges=tuple(edges), calls_per_pass=per_pass)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One idle stretch and one load; `epoch_offset_s` turns their times into Unix time."""

    idle_s: tuple[float, float]
    load: Load
    epoch_offset_s: float


def domain_figures(domain: Domain, tracks: Sequence[Track], run: Run) -> list[Measurement]:
    """Sums over the domain's sensors; absent as a whole when one of them failed, since a part is not the total."""
    wanted = METRICS[domain]
    try:
        windows = [[track.energy(*window) for track in tracks] for window in run.load.windows_s]
    except SensorError as error:
        return [Measurement.absent(wanted.gross, str(error))]
    source = " + ".join(track.name for track in tracks)
    notes = _notes(source, windows, run)
    gross = [sum(span.energy_j / _calls(span, run.load) for span in window) for window in windows]
    power = [sum(span.mean_w for span in window) for window in windows]
    try:
        idle_w = [track.energy(*run.idle_s).mean_w for track in tracks]
    except SensorError as error:
        return [
            Measurement.of(wanted.gross, gross, source=source, notes=notes),
            Measurement.of(wanted.power, power, source=source, notes=notes),
            Measurement.absent(wanted.net, f"idle: {error}"),
        ]
    notes["idle_w"] = round(sum(idle_w), 4)
    net = [
        # less what the sensors would have shown over one call, had it not been made
        joules - sum(w * span.seconds / _calls(span, run.load) for w, span in zip(idle_w, window, strict=True))
        for joules, window in zip(gross, windows, strict=True)
    ]
    return [
        Measurement.of(wanted.gross, gross, source=source, notes=notes),
        Measurement.of(wanted.power, power, source=source, notes=notes),
        Measurement.of(wanted.net, net, source=source, notes=notes),
        Measurement.of(wanted.idle, [sum(idle_w)], source=source, notes=notes),
    ]


def side_rows(tracks: Sequence[SensorTrack], run: Run) -> list[Measurement]:
    """Gross energy of rails that are no part of a total."""
    found: list[Measurement] = []
    for track in tracks:
        if track.sensor.whole:
            continue
        metric, scope = METRICS[track.sensor.domain].gross, Scope.of(SENSOR, track.name)
        try:
            spans = [track.energy(*window) for window in run.load.windows_s]
        except SensorError as error:
            found.append(Measurement.absent(metric, str(error), scope=scope))
            continue
        notes = _notes(track.name, [[span] for span in spans], run)
        values = [span.energy_j / _calls(span, run.load) for span in spans]
        found.append(Measurement.of(metric, values, scope=scope, source=track.name, notes=notes))
    return found


def _calls(span: Span, load: Load) -> float:
    return load.calls_between(span.start_s, span.end_s)


def _notes(source: str, windows: Sequence[Sequence[Span]], run: Run) -> dict[str, Any]:
    """What a reader needs to judge a figure, and to lay an external log beside it later.

    `window_s` and `calls` are those of the first sensor, by window; `window_epoch` and `window_calls` of the calls.
    """
    stamps_s = run.load.stamps_s
    edges = (stamps_s[run.load.edges[0]], stamps_s[run.load.edges[-1]])
    return {
        "sensor": source,
        "window_s": [round(window[0].seconds, 4) for window in windows],
        "calls": [round(_calls(window[0], run.load), 3) for window in windows],
        "window_epoch": [round(edge + run.epoch_offset_s, 4) for edge in edges],
        "window_calls": run.load.calls,
    }
