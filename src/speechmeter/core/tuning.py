"""What can be tuned for, what a candidate must keep, and which values of an axis are worth trying."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from speechmeter.core import metrics
from speechmeter.core.axes import Axis
from speechmeter.core.durations import seconds_of
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.plugins import nearest
from speechmeter.core.quality import QUALITY

OUTPUTS = "outputs"
"""The meter of the guard that outputs agree, and its word in `keep`."""
TOLERANCE = 0.05
"""How far outputs that are not text may be from those of the default, as a share of their size."""
TUNED_AXES = ("dtype", "threads", "batch", "compile", "quantize", "beam")
"""The axes that are tuned where nothing else is said."""
EXAMPLE = "for example 'wer<=+0.3', 'memory<=4GiB' or 'latency_p95<=200ms'"


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What is made as small as possible (of `rtfx`: its inverse), from the first of these metrics that a case has.

    `shown` is the metric of the figures that are shown, where that is another one.
    """

    name: str
    metrics: tuple[Metric, ...]
    meters: tuple[str, ...]
    shown: Metric | None = None


GOALS: Mapping[str, Goal] = {
    goal.name: goal
    for goal in (
        Goal(name="rtfx", metrics=(metrics.RTF,), meters=("latency",), shown=metrics.RTFX),
        Goal(name="latency", metrics=(metrics.LATENCY,), meters=("latency",)),
        Goal(
            name="memory",
            metrics=(metrics.MEMORY_CUDA_RESERVED, metrics.MEMORY_CPU_TOTAL),
            meters=("latency", "memory"),
        ),
        Goal(name="energy", metrics=tuple(metrics.ENERGY_PER_AUDIO_HOUR.values()), meters=("latency", "energy")),
        Goal(name="cost", metrics=(metrics.RTF,), meters=("latency",), shown=metrics.MACHINE_COST),
    )
}


@dataclass(frozen=True, kw_only=True)
class Keep:
    """One bound. Of a score, and of outputs, it is relative to the default; of anything else it is absolute.

    `limit` is in the unit of the metric, of a score in percentage points (WER and CER may rise by so much, BLEU and
    chrF may fall by so much), of outputs a share. `statistic` is a percentile of latency. `metric` is None for outputs.
    """

    kind: Literal["outputs", "score", "limit"]
    text: str
    limit: float
    metric: Metric | None = None
    statistic: str = ""


_FORM = re.compile(r"\s*(?P<name>\w+?)(?:_(?P<percentile>p\d\d))?\s*(?P<sign><=|>=)\s*(?P<value>\S.*?)\s*")
_SCORES = {"wer": metrics.WER, "cer": metrics.CER, "bleu": metrics.BLEU, "chrf": metrics.CHRF}
_RISING = ("bleu", "chrf")
_LIMITS = {"latency": metrics.LATENCY, "memory": metrics.MEMORY_CPU_TOTAL, "rtf": metrics.RTF}
_BYTES = {"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
PERCENTILES = ("p50", "p90", "p95", "p99")


def keep_of(text: str) -> Keep:
    """The bound that a text says. Raises InputError for one that cannot be."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a bound", key="keep", fix=EXAMPLE)
    name, percentile, sign, value = match["name"], match["percentile"], match["sign"], match["value"]
    if name not in (*_SCORES, *_LIMITS, OUTPUTS):
        raise InputError(f"`keep` cannot bound {name!r}", key="keep", fix=nearest(name, [*_SCORES, *_LIMITS, OUTPUTS]))
    if percentile and name != "latency":
        raise InputError(f"{name} has no percentiles here", key="keep", fix=f"write {name}, or latency_{percentile}")
    if percentile and percentile not in PERCENTILES:
        raise InputError(f"{percentile} is not a supported percentile", key="keep", fix="use p50, p90, p95 or p99")
    if (sign == ">=") is not (name in _RISING):
        other = ">=" if name in _RISING else "<="
        raise InputError(f"{text!r} bounds {name} on the wrong side", key="keep", fix=f"write {name}{other}…")
    if name in _SCORES:
        wanted = "-" if name in _RISING else "+"
        if not value.startswith(wanted):
            raise InputError(
                f"{text!r}: the bound of a score is relative to the default, in percentage points",
                key="keep", fix=f"for example '{name}{sign}{wanted}0.3'",
            )  # fmt: skip
        return Keep(kind="score", text=text.strip(), limit=_number(value[1:], text), metric=_SCORES[name])
    if name == OUTPUTS:
        share = value.endswith("%")
        return Keep(kind="outputs", text=text.strip(), limit=_number(value.rstrip("% "), text) / (100 if share else 1))
    if name == "memory":
        found = re.fullmatch(r"([0-9.]+)\s*([A-Za-z]+)", value)
        if found is None or found[2].lower() not in _BYTES:
            raise InputError(f"{text!r} has no unit of memory", key="keep", fix="for example 'memory<=4GiB'")
        limit = _number(found[1], text) * _BYTES[found[2].lower()]
    else:
        limit = _number(str(seconds_of(value)), text)
    return Keep(kind="limit", text=text.strip(), limit=limit, metric=_LIMITS[name], statistic=percentile or "")


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What was asked for: the goal, the bounds, the tuned axes with their values (the default first), and when to stop.

    `min_effect` is the smallest difference that matters, a share. `price` is that of one hour of the machine.
    """

    goal: Goal
    keeps: tuple[Keep, ...]
    axes: Mapping[str, tuple[Any, ...]]
    min_effect: float = 0.05
    within_s: float | None = None
    price: float | None = None

    @property
    def delta(self) -> float:
        """The smallest difference of logarithms that matters."""
        return math.log1p(self.min_effect)

    @property
    def tolerance(self) -> float:
        """How far outputs that are not text may be from those of the default."""
        return next((keep.limit for keep in self.keeps if keep.kind == OUTPUTS), TOLERANCE)

    @property
    def scores(self) -> tuple[Keep, ...]:
        """The bounds on scores."""
        return tuple(keep for keep in self.keeps if keep.kind == "score")

    @property
    def limits(self) -> tuple[Keep, ...]:
        """The bounds that are absolute."""
        return tuple(keep for keep in self.keeps if keep.kind == "limit")


def tuning_of(plan: Mapping[str, Any]) -> Tuning | None:
    """The tuning that a resolved plan asks for, as plain data; None where it asks for none, or cannot be read."""
    asked = plan.get("tune")
    if not isinstance(asked, Mapping) or asked.get("goal") not in GOALS:
        return None
    axes = {name: tuple(plan[name]) for name in asked.get("over") or () if isinstance(plan.get(name), list | tuple)}
    return Tuning(
        goal=GOALS[asked["goal"]],
        keeps=tuple(keep_of(text) for text in asked.get("keep") or ()),
        axes={name: values for name, values in axes.items() if len(values) > 1},
        min_effect=float(asked.get("min_effect") or 0.05),
        within_s=asked.get("within"),
        price=asked.get("price"),
    )


def _number(text: str, whole: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found < 0:
        raise InputError(f"{whole!r} has no number of at least 0", key="keep", fix=EXAMPLE)
    return found


def meters_for(goal: Goal, keeps: Sequence[Keep]) -> tuple[str, ...]:
    """The meters that a goal and its bounds need; outputs are always compared."""
    scored = any(keep.kind == "score" for keep in keeps)
    in_memory = any(keep.metric == metrics.MEMORY_CPU_TOTAL for keep in keeps)
    more = [OUTPUTS, *([QUALITY] if scored else []), *(["memory"] if in_memory else [])]
    return tuple(dict.fromkeys([*goal.meters, *more]))


def values_to_try(axis: Axis, *, on_cuda: bool, cores: int) -> tuple[Any, ...]:
    """The values of an axis that make sense on a device, the default first; a single one where there is no choice."""
    if axis.tries:
        found: Sequence[Any] = axis.tries
    elif axis.kind is bool:
        found = (False, True)
    elif axis.choices:
        found = axis.choices
    else:
        found = ()
    if axis.name == "dtype" and not on_cuda:  # half precision has no fast kernels on most CPUs
        found = [value for value in found if value != "float16"]
    if axis.name == "threads":
        found = () if on_cuda else [cores, *(count for count in (cores // 2, 1) if 0 < count < cores)]
    if axis.name == "batch" and on_cuda:
        found = [*found, 16, 32]
    default = axis.default if axis.default is not None or axis.name != "threads" else cores
    return tuple(dict.fromkeys([default, *found]))
