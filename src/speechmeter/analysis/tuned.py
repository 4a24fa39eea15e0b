"""What records say about a tuning: which candidates do the job, how far it is, and the answer.

Everything follows from the records and from what was asked for, so that the terminal, the page and a resumed run agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from speechmeter.analysis import quality
from speechmeter.analysis.derived import round_value, sample_values, why_absent
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.screening import Cell
from speechmeter.analysis.tuning import (
    DEFAULT,
    FRESH,
    LIMIT_ROUNDS,
    Budget,
    Problem,
    Refusal,
    Step,
    next_step,
)
from speechmeter.core import metrics
from speechmeter.core.axes import LATE_DEFAULTS
from speechmeter.core.metrics import Metric
from speechmeter.core.tuning import Keep, Tuning
from speechmeter.core.types import FAILED, Case, Record

_ONE_SIDED = 0.05
_ROUNDING = 1 + 1e-9
"""The mean of equal figures may differ from them in its last digit."""


@dataclass(frozen=True, kw_only=True)
class State:
    """All candidates: the cells with their records, those that do not do the job and why, and the next step.

    `absent` are combinations that cannot be measured here, with the reason.
    """

    tuning: Tuning
    cells: tuple[Cell, ...]
    records: Mapping[int, Sequence[Record]]
    reasons: Mapping[int, str]
    problem: Problem
    step: Step
    absent: Mapping[Cell, str]

    def values(self, cell: int) -> dict[str, Any]:
        """The values of the tuned axes of a cell."""
        return {name: values[at] for (name, values), at in zip(self.tuning.axes.items(), self.cells[cell], strict=True)}

    def changes(self, cell: int) -> dict[str, Any]:
        """Those in which it differs from the default."""
        places = zip(self.values(cell).items(), self.cells[cell], strict=True)
        return {name: value for (name, value), at in places if at}

    def fresh(self, cell: int) -> list[Record]:
        """The fresh rounds of a cell."""
        return [record for record in self.records.get(cell, ()) if record.round >= self.step.fresh_from]

    @property
    def default_failure(self) -> str:
        """Why the default does not run; empty where it does. Nothing can be tuned then."""
        return self.reasons.get(DEFAULT, "") if self.problem.refused.get(DEFAULT) == "failed" else ""


def cell_of(case: Case, tuning: Tuning) -> Cell | None:
    """The cell that a case is; None for a case with other values."""
    found = []
    for name, values in tuning.axes.items():
        value = case.axes.get(name, LATE_DEFAULTS.get(name))
        if value not in values:
            return None
        found.append(values.index(value))
    return tuple(found)


def state_of(records: Sequence[Record], tuning: Tuning, guards: dict[str, str] | None = None) -> State:
    """How far a tuning is. `guards` keeps what the guard said of each case, for whoever asks again with more rounds."""
    guards = {} if guards is None else guards
    levels = tuple(len(values) for values in tuning.axes.values())
    by_cell: dict[Cell, list[Record]] = {}
    absent: dict[Cell, str] = {}
    for record in records:
        cell = cell_of(record.case, tuning)
        if cell is None:
            continue
        if record.status in ("unavailable", "skipped"):
            absent[cell] = record.reason
        else:
            by_cell.setdefault(cell, []).append(record)
    cells = tuple(cell for cell in product(*map(range, levels)) if cell not in absent or cell in by_cell)
    held = {index: by_cell[cell] for index, cell in enumerate(cells) if cell in by_cell}
    logs: dict[int, dict[int, float]] = {}
    walls: dict[int, dict[int, float]] = {}
    refused: dict[int, Refusal] = {}
    reasons: dict[int, str] = {}
    unproven = set()
    for index, own in held.items():
        logs[index] = logs_of(own, tuning)
        walls[index] = {record.round: record.wall_s for record in own}
        kind, reason = _refusal(own, held.get(DEFAULT, ()), logs[index], tuning, guards, is_default=index == DEFAULT)
        if kind is not None:
            refused[index], reasons[index] = kind, reason
        elif tuning.limits and index != DEFAULT and _open(own, tuning):
            unproven.add(index)
    order = {index: {record.round: record.sequence for record in own} for index, own in held.items()}
    problem = Problem(
        levels=levels, cells=cells, delta=tuning.delta, logs=logs, refused=refused, unproven=frozenset(unproven),
        order=order, budget=Budget(within_s=tuning.within_s or math.inf, walls=walls),
    )  # fmt: skip
    is_stopped = refused.get(DEFAULT) == "failed" or (0,) * len(levels) in absent
    step = Step(stage="done") if is_stopped else next_step(problem)
    return State(tuning=tuning, cells=cells, records=held, reasons=reasons, problem=problem, step=step, absent=absent)


def goal_metric(records: Sequence[Record], tuning: Tuning) -> Metric:
    """The metric of the goal that these records have."""
    for metric in tuning.goal.metrics:
        if any(round_value(record, metric) for record in records):
            return metric
    return tuning.goal.metrics[0]


def logs_of(records: Sequence[Record], tuning: Tuning) -> dict[int, float]:
    """The logarithm of the goal in each round that has it."""
    metric = goal_metric(records, tuning)
    found = {}
    for record in records:
        value = round_value(record, metric, "total", records) if record.status == "ok" else None
        if value is not None and value[0] > 0:
            found[record.round] = math.log(value[0])
    return found


def _refusal(
    own: Sequence[Record],
    default: Sequence[Record],
    logs: Mapping[int, float],
    tuning: Tuning,
    guards: dict[str, str],
    *,
    is_default: bool,
) -> tuple[Refusal | None, str]:
    """Whether a candidate does the job, and if not why."""
    failed = next((record for record in own if record.status in FAILED), None)
    if failed is not None:
        return "failed", f"{failed.status}: {failed.reason}"
    without = next((record for record in own if record.round not in logs), None)
    if without is not None:
        metric = goal_metric(own, tuning)
        return "failed", why_absent(without, metric) or f"it has no {metric.title}"
    if is_default:
        return None, ""
    known = own[0].case.id
    if known not in guards:  # outputs are compared once: they are kept of the first round alone
        guards[known] = guard(own, default, tuning)
    if reason := guards[known]:
        return "guard", reason
    for keep in tuning.limits:
        if reason := _broken(own, keep):
            return "limit", reason
    return None, ""


def guard(new: Sequence[Record], default: Sequence[Record], tuning: Tuning) -> str:
    """Why a candidate's outputs are not those that are wanted; empty where they are."""
    count = next((m.values[0] for r in new if (m := r.find(metrics.OUTPUT_NOT_FINITE.id)) and m.values), 0.0)
    if count:
        return f"{count:,.0f} values of the outputs are infinite or not a number"
    distance, why, is_text = _distance(new, default)
    if distance == 0 or (distance is not None and not is_text and distance <= tuning.tolerance):
        return ""
    if not tuning.scores:
        if is_text:
            return f"{why}, and no bound on a score was given"
        return f"{why}, more than {tuning.tolerance:.1%}" if distance is not None else why
    return next((reason for keep in tuning.scores if (reason := _score(new, default, keep, why))), "")


def _score(new: Sequence[Record], default: Sequence[Record], keep: Keep, why: str) -> str:
    """Why the bound on a score is not proven; empty where it is."""
    assert keep.metric is not None
    found = quality.paired_difference(new, default, keep.metric)
    change = found.estimate
    if change is None:
        return f"{why}; {keep.text} is not proven: {found.reason}"
    if found.order == "same":
        return ""
    falls = keep.metric.direction == "higher"
    end = change.low if falls else change.high
    if end is not None and (-end if falls else end) <= keep.limit:
        return ""
    ends = "" if change.low is None else f" [{change.low:+.2f}, {change.high:+.2f}]"
    what = f"{keep.metric.title} {change.value:+.2f}{ends} percentage points against the default"
    is_worse = (change.value < -keep.limit) if falls else (change.value > keep.limit)
    return f"{what}: {keep.text} is {'broken' if is_worse else 'not proven'}"


def _distance(new: Sequence[Record], default: Sequence[Record]) -> tuple[float | None, str, bool]:
    """How far outputs are from those of the default as a share, that in words, and whether they are text.

    Of text it is the share of items that differ.
    """
    ours, kind, why = _sketches(new)
    theirs, _, other = _sketches(default)
    if ours is None or theirs is None:
        return None, why or other, False
    shared = [name for name in ours if name in theirs]
    if not shared:
        return None, "no item of the outputs is among those of the default", kind == "text"
    if kind == "text":
        differ = sum(ours[name] != theirs[name] for name in shared)
        return differ / len(shared), f"{differ} of {len(shared)} texts differ from those of the default", True
    if any(ours[name][0] != theirs[name][0] for name in shared):
        return None, "the outputs have another size than those of the default, such as by padding", False
    above = sum((a - b) ** 2 for name in shared for a, b in zip(ours[name][1:], theirs[name][1:], strict=True))
    below = sum(b**2 for name in shared for b in theirs[name][1:])
    share = math.sqrt(above / below) if below else (0.0 if not above else math.inf)
    return share, f"the outputs differ from those of the default by {share:.1%}", False


def _sketches(records: Sequence[Record]) -> tuple[dict[str, tuple[float, ...]] | None, str, str]:
    for record in records:
        found = record.find(metrics.OUTPUT_SKETCH.id)
        if found is not None and found.values:
            width, names = int(found.notes["width"]), found.notes["items"]
            rows = [found.values[start : start + width] for start in range(0, len(found.values), width)]
            return dict(zip(map(str, names), rows, strict=False)), str(found.notes["kind"]), ""
        if found is not None and found.unavailable:
            return None, "", found.unavailable
    return None, "", "its outputs were not compared"


def _judged(own: Sequence[Record]) -> list[Record]:
    """The rounds that limits are judged by."""
    return sorted((record for record in own if record.round < FRESH), key=lambda record: record.round)[:LIMIT_ROUNDS]


def _open(own: Sequence[Record], tuning: Tuning) -> bool:
    """Whether it takes more rounds to say that all limits hold."""
    return len(_judged(own)) < LIMIT_ROUNDS and bool(tuning.limits)


def _broken(own: Sequence[Record], keep: Keep) -> str:
    """Why a limit does not hold, or is not proven by all of its rounds; empty as long as it may hold."""
    judged = _judged(own)
    low, high, value = bounds_of(judged, keep)
    unit = keep.metric.unit if keep.metric is not None else ""
    if low is not None and low > keep.limit * _ROUNDING:
        return f"{_amount(value, unit)}: {keep.text} is broken"
    if len(judged) < LIMIT_ROUNDS or (high is not None and high <= keep.limit * _ROUNDING):
        return ""
    if high is None:
        return f"{keep.text} is not proven: there are too few samples"
    return f"{_amount(value, unit)}, at most {_amount(high, unit)}: {keep.text} is not proven"


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "bytes":
        return f"{value / 2**30:.3g} GiB"
    return f"{value * 1000:.4g} ms" if unit == "s" else f"{value:.3g}"


def bounds_of(records: Sequence[Record], keep: Keep) -> tuple[float | None, float | None, float | None]:
    """(lower, upper, figure) of what a limit is about, each bound at 95 %; None where there is none."""
    metric = keep.metric
    if metric == metrics.MEMORY_CPU_TOTAL and records and records[0].case.device.is_cuda:
        metric = metrics.MEMORY_CUDA_RESERVED
    assert metric is not None
    if keep.statistic:
        values = sorted(value for record in records for value in sample_values(record, metric, "total", records))
        share = int(keep.statistic[1:]) / 100
        return percentile_bounds(values, share)
    found = estimate(records, metric)
    if found is None:
        return None, None, None
    return found.low, found.high, found.value


def percentile_bounds(values: Sequence[float], share: float) -> tuple[float | None, float | None, float | None]:
    """(lower, upper, figure) of a percentile of sorted values, by order statistics, one-sided at 95 % each."""
    from scipy.special import bdtr

    count = len(values)
    if not count:
        return None, None, None
    below = [float(bdtr(at, count, share)) for at in range(count)]
    upper = next((values[at] for at in range(count) if below[at] >= 1 - _ONE_SIDED), None)
    lower = next((values[at] for at in reversed(range(count)) if below[at] <= _ONE_SIDED), None)
    return lower, upper, values[min(count - 1, math.ceil(share * count) - 1)]
