"""`rate:`, `arrivals:` and `ramp:` of a plan: conversations that begin at moments of their own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from speechmeter.core.errors import Origin, PlanError
from speechmeter.core.protocol import CONSTANT, GAMMA, POISSON, RECORDED, LiveProtocol
from speechmeter.plan.schema import Plan
from speechmeter.plan.source import Source

_TRACE_FIX = "use a text file with one start time in seconds per line"
_FIX = "use constant, poisson, gamma:0.5, trace:FILE or a list of start times"
_MOST_OFFSETS = 5000
_MOST_BYTES = 1 << 20


def check_arrivals(plan: Plan, source: Source) -> None:
    """Raise PlanError for arrivals that cannot be, or that no case has. A trace is read when its path is known."""
    if isinstance(plan.arrivals, list | tuple):
        _check_moments(plan.arrivals, source.origin(("arrivals",)))
        return
    kind, more = _kind_of(plan)
    rated = plan.find == "max-rate" or "rate" in source.data or any("rate" in entry.axes for entry in plan.models)
    given = "arrivals" if plan.arrivals is not None else "ramp"
    where = source.origin((given,))
    if kind == RECORDED and more:
        return
    if not rated and (plan.arrivals is not None or plan.ramp):
        raise PlanError(f"`{given}` applies only if conversations arrive at a rate", where=where, fix="add `rate: 2`")
    gamma = kind == GAMMA and _is_positive(more)
    if not gamma and (kind not in (CONSTANT, POISSON) or more):
        raise PlanError(f"unknown kind of arrivals {plan.arrivals!r}", where=where, fix=_FIX)


def is_trace(plan: Plan) -> bool:
    """Whether conversations begin at moments that the plan names."""
    return _kind_of(plan)[0] == RECORDED


def arriving(live: LiveProtocol, plan: Plan, level: Mapping[str, Any]) -> LiveProtocol:
    """The protocol of a case: with arrivals where it has a rate, or where the plan has a trace.

    Raises PlanError for a rate beside several streams or a trace.
    """
    kind, more = _kind_of(plan)
    rate = level.get("rate")
    if kind != RECORDED and rate is None:
        return live
    if level["streams"] != 1:
        raise PlanError(
            "conversations arrive at a rate, so `streams` cannot be set", key="streams", fix="remove `streams`"
        )
    if kind == RECORDED and rate is not None:
        raise PlanError("the trace sets the start times, so `rate` cannot be set", key="rate", fix="remove `rate`")
    if kind == RECORDED:
        offsets_s = read_trace(Path(more)) if more else _offsets(plan.arrivals)
        return replace(live, arrivals=RECORDED, offsets_s=offsets_s, ramp_s=plan.ramp)
    text = f"{GAMMA}:{float(more):g}" if kind == GAMMA else kind
    return replace(live, arrivals=text, ramp_s=plan.ramp)


def _kind_of(plan: Plan) -> tuple[str, str]:
    """(kind of arrivals, what follows it); start times that the plan lists are a trace without a file."""
    if isinstance(plan.arrivals, list | tuple):
        return RECORDED, ""
    kind, _, more = str(plan.arrivals or POISSON).partition(":")
    return kind, more


def read_trace(path: Path) -> tuple[float, ...]:
    """Moments of a file, a number of seconds a line, ascending; counted from the first. PlanError for any other."""
    try:
        with path.open(encoding="utf-8") as file:
            lines = file.read(_MOST_BYTES).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise PlanError(f"the trace cannot be read: {reason}", where=str(path), fix=_TRACE_FIX) from None
    moments: list[float] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            moments.append(float(text))
        except ValueError:
            raise PlanError(f"{text[:40]!r} is not a number of seconds", where=f"{path}:{number}") from None
    _check_moments(moments, str(path))
    return _offsets(moments)


def _offsets(moments: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(moment - moments[0], 6) for moment in moments)


def _check_moments(moments: Sequence[Any], where: Origin | str | None) -> None:
    if not moments or len(moments) > _MOST_OFFSETS:
        raise PlanError(f"a trace takes 1 to {_MOST_OFFSETS} start times, not {len(moments)}", where=where)
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in moments)
    if not numbers or not all(map(math.isfinite, moments)) or any(later < one for one, later in pairwise(moments)):
        raise PlanError("the start times of a trace must be ascending, finite numbers", where=where, fix="sort them")


def _is_positive(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False
