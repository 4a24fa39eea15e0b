"""Wall time of a call: `perf_counter_ns`, device sync at both edges of every stage, every raw sample kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import ceil
from time import perf_counter_ns
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.protocols import Meter, Session
from speechmeter.core.scope import STAGE, Scope
from speechmeter.core.stages import drain, is_stream
from speechmeter.core.types import SAMPLED, Batch, Measurement, Stage, by_turns

BLOCK_BELOW_NS = 50_000
"""Calls shorter than this are timed in blocks: the clock itself costs a few tenths of a microsecond."""
_SURELY_LONG_NS = 100 * BLOCK_BELOW_NS
"""A first call above this is not followed by one that needs blocks, so no trial is made."""


class LatencyMeter(Meter):
    """Latency of the whole call and of each stage, warm-up kept apart."""

    name = "latency"
    metrics = (
        metrics.LATENCY,
        metrics.LATENCY_WARMUP,
        metrics.LATENCY_FIRST_ITEM,
        metrics.LATENCY_ITEM,
        metrics.LATENCY_INSIDE,
    )

    def measure(self, session: Session) -> list[Measurement]:
        """Samples as the case's protocol asks; total is the sum of clocked stages."""
        trial = StageClock(session.stages, session.sync)
        clock = StageClock(session.stages, session.sync, block=_block(session, trial))
        inside: list[Mapping[str, float]] = []
        ask = session.prepared.inside

        def sample(batch: Batch) -> int:
            """A timed call, and what the model says of it, which is read outside the clock."""
            spent = clock.sample(batch)
            if ask is not None and clock.block == 1:
                inside.append(ask())
            return spent

        collected = session.collect(sample)
        turns = by_turns(session.batches) | ({SAMPLED: list(collected.indices)} if collected.indices else {})
        notes: dict[str, Any] = {"stop": collected.stop_reason, **turns}
        if clock.block > 1:
            notes["block"] = clock.block
        warmup = [*trial.totals_s(), *_kept(clock.totals_s(), collected.kept, False)]
        return [
            Measurement.of(metrics.LATENCY, _kept(clock.totals_s(), collected.kept, True), notes=notes),
            *([Measurement.of(metrics.LATENCY_WARMUP, warmup)] if warmup else []),
            *_stages(clock, collected.kept, turns),
            *clock.item_measurements(),
            *_inside(inside, collected.kept, turns),
        ]


class StageClock:
    """Times a chain stage by stage. `sample` makes one call and returns its nanoseconds over clocked stages."""

    def __init__(self, stages: Sequence[Stage], sync: Callable[[], None], *, block: int = 1) -> None:
        self.block = block
        self._sync = sync
        self._stages = tuple(stages)
        self._rows: list[list[int]] = [[] for _ in stages]
        self._links = [(s.name, s.fn, row, s.clocked) for s, row in zip(self._stages, self._rows, strict=True)]
        self._first_items: dict[str, list[float]] = {}
        self._item_gaps: dict[str, list[float]] = {}

    def sample(self, batch: Batch) -> int:
        """One call through the whole chain."""
        if self.block > 1:
            return self._sample_block(batch)
        sync, now, total = self._sync, perf_counter_ns, 0
        state: Any = batch
        for name, fn, row, clocked in self._links:
            sync()
            start = now()
            state = fn(state)
            if is_stream(state):
                stamps: list[int] = []
                state = drain(state, stamps)
                if stamps:
                    self._first_items.setdefault(name, []).append((stamps[0] - start) / 1e9)
                    gaps = [(after - before) / 1e9 for before, after in pairwise(stamps)]
                    self._item_gaps.setdefault(name, []).extend(gaps)
            sync()
            spent = now() - start
            row.append(spent)
            if clocked:
                total += spent
        return total

    def _sample_block(self, batch: Batch) -> int:
        """The clocked stage `block` times on one input; the row holds the mean of the block."""
        sync, now, total = self._sync, perf_counter_ns, 0
        state: Any = batch
        for _, fn, row, clocked in self._links:
            repeat = range(self.block if clocked else 1)
            sync()
            start = now()
            for _ in repeat:
                output = fn(state)
            sync()
            spent = now() - start
            row.append(spent // len(repeat))
            state = output
            if clocked:
                total += spent
        return total

    def totals_s(self) -> list[float]:
        """Seconds of each call over the clocked stages."""
        rows = [row for row, stage in zip(self._rows, self._stages, strict=True) if stage.clocked]
        return [sum(call) / 1e9 for call in zip(*rows, strict=True)]

    def rows_s(self) -> list[tuple[Stage, list[float]]]:
        """Seconds of each call by stage, unclocked ones included."""
        return [(s, [ns / 1e9 for ns in row]) for s, row in zip(self._stages, self._rows, strict=True)]

    def item_measurements(self) -> list[Measurement]:
        """Stamps of streamed items, warm-up calls included."""
        stamps = {metrics.LATENCY_FIRST_ITEM: self._first_items, metrics.LATENCY_ITEM: self._item_gaps}
        return [
            Measurement.of(metric, values, scope=Scope.of(STAGE, name))
            for metric, by_stage in stamps.items()
            for name, values in by_stage.items()
            if values
        ]


def _block(session: Session, trial: StageClock) -> int:
    """How many calls make one sample: one, unless a lone clocked stage is shorter than the clock can be trusted."""
    if sum(stage.clocked for stage in session.stages) != 1 or session.first_ns > _SURELY_LONG_NS:
        return 1
    shortest = min(trial.sample(session.batches[0]) for _ in range(2))
    if shortest >= BLOCK_BELOW_NS or trial.item_measurements():
        return 1
    return ceil(BLOCK_BELOW_NS / max(shortest, 100))


def _inside(rows: Sequence[Mapping[str, float]], kept: Sequence[bool], turns: Mapping[str, Any]) -> list[Measurement]:
    """What the model reported of every call that is a sample; nothing of what it left out of one."""
    samples = [row for row, keep in zip(rows, kept, strict=False) if keep]
    names = [name for name in (samples[0] if samples else ()) if all(name in row for row in samples)]
    return [
        Measurement.of(
            metrics.LATENCY_INSIDE, [row[name] for row in samples],
            scope=name if name == "total" else Scope.of(STAGE, name), source="the model's own clock", notes=turns,
        )
        for name in names
    ]  # fmt: skip


def _kept(values: Sequence[float], kept: Sequence[bool], wanted: bool) -> list[float]:
    return [value for value, keep in zip(values, kept, strict=True) if keep is wanted]


def _stages(clock: StageClock, kept: Sequence[bool], turns: Mapping[str, Any]) -> list[Measurement]:
    rows = clock.rows_s()
    if len(rows) == 1:
        return []
    return [
        Measurement.of(
            metrics.LATENCY,
            _kept(values, kept, True),
            scope=Scope.of(STAGE, stage.name),
            notes={"clocked": stage.clocked, **turns},
        )
        for stage, values in rows
    ]
