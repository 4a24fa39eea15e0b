"""From tracks of power and energy to the figures of a domain: per call, gross, net, mean power and idle power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.errors import SensorError
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import SENSOR, Scope
from speechmeter.core.types import Measurement
from speechmeter.meters.energy.load import Load
from speechmeter.meters.energy.sensors.base import Domain
from speechmeter.meters.energy.tracks import SensorTrack, Span, Track


@dataclass(frozen=True, kw_only=True)
class DomainMetrics:
    """The four figures of a domain."""

    gross: Metric
    net: Metric
    power: Metric
    idle: Metric


METRICS: Mapping[Domain, DomainMetrics] = MappingProxyType(
    {
        "cpu": DomainMetrics(
            gross=metrics.ENERGY_CPU,
            net=metrics.ENERGY_CPU_NET,
            power=metrics.POWER_CPU,
            idle=metrics.POWER_CPU_IDLE,
        ),
        "gpu": DomainMetrics(
            gross=metrics.ENERGY_GPU,
            net=metrics.ENERGY_GPU_NET,
            power=metrics.POWER_GPU,
            idle=metrics.POWER_GPU_IDLE,
        ),
        "system": DomainMetrics(
            gross=metrics.ENERGY_SYSTEM,
            net=metrics.ENERGY_SYSTEM_NET,
            power=metrics.POWER_SYSTEM,
            idle=metrics.POWER_SYSTEM_IDLE,
        ),
    }
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One idle stretch and one load, and how to tell their times as Unix time."""

    idle_s: tuple[float, float]
    load: Load
    epoch_offset_s: float


def domain_figures(domain: Domain, tracks: Sequence[Track], run: Run) -> list[Measurement]:
    """Sums over the domain's sensors; absent as a whole when one of them failed, since a part is not the total."""
    wanted = METRICS[domain]
    try:
        windows = [[track.energy(*window) for track in tracks] for window in run.load.windows_s]
    except SensorError as error:
        return [absent(domain, str(error))]
    idle_w, why_no_idle = _idle_w(tracks, run)
    source = " + ".join(track.name for track in tracks)
    notes = _notes(source, windows, run)
    if not why_no_idle:
        notes["idle_w"] = round(sum(idle_w), 4)
    gross = [sum(_per_call_j(span, run.load) for span in window) for window in windows]
    power = [sum(span.mean_w for span in window) for window in windows]
    found = [
        Measurement.of(wanted.gross, gross, source=source, notes=notes),
        Measurement.of(wanted.power, power, source=source, notes=notes),
    ]
    if why_no_idle:
        return [*found, Measurement.absent(wanted.net, why_no_idle)]
    net = [joules - _idle_j(window, idle_w, run.load) for joules, window in zip(gross, windows, strict=True)]
    return [
        *found,
        Measurement.of(wanted.net, net, source=source, notes=notes),
        Measurement.of(wanted.idle, [sum(idle_w)], source=source, notes=notes),
    ]


def side_rows(tracks: Sequence[SensorTrack], run: Run) -> list[Measurement]:
    """Gross energy of rails that are no part of a total."""
    return [_side_row(track, run) for track in tracks if not track.sensor.whole]


def absent(domain: Domain, reason: str) -> Measurement:
    """The domain's energy, which cannot be had."""
    return Measurement.absent(METRICS[domain].gross, reason)


def _side_row(track: SensorTrack, run: Run) -> Measurement:
    metric, scope = METRICS[track.sensor.domain].gross, Scope.of(SENSOR, track.name)
    try:
        spans = [track.energy(*window) for window in run.load.windows_s]
    except SensorError as error:
        return Measurement.absent(metric, str(error), scope=scope)
    notes = _notes(track.name, [[span] for span in spans], run)
    values = [_per_call_j(span, run.load) for span in spans]
    return Measurement.of(metric, values, scope=scope, source=track.name, notes=notes)


def _idle_w(tracks: Sequence[Track], run: Run) -> tuple[list[float], str]:
    try:
        return [track.energy(*run.idle_s).mean_w for track in tracks], ""
    except SensorError as error:
        return [], f"idle: {error}"


def _idle_j(window: Sequence[Span], idle_w: Sequence[float], load: Load) -> float:
    """What the sensors would have shown over one call, had it not been made."""
    return sum(w * span.seconds / _calls(span, load) for w, span in zip(idle_w, window, strict=True))


def _per_call_j(span: Span, load: Load) -> float:
    return span.energy_j / _calls(span, load)


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
