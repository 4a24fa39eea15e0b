"""Live cases of a plan: the keys that they need, how conversations are held, and the levels that are swept."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from speechmeter.core import plugins
from speechmeter.core.axes import LIVE_AXES, OFFLINE, axis_names
from speechmeter.core.durations import seconds_of
from speechmeter.core.errors import InputError, PlanError
from speechmeter.core.finding import COARSE_ROUNDS, TARGETS
from speechmeter.core.live import CLIENT_VADS, TurnEnd
from speechmeter.core.protocol import LiveProtocol
from speechmeter.core.protocols import WatchingMeter
from speechmeter.core.quality import Quality
from speechmeter.core.slo import Slo, slo_of
from speechmeter.plan.arrivals import check_arrivals
from speechmeter.plan.schema import LIVE_KEYS, ModelEntry, Plan
from speechmeter.plan.source import Source

_STOP_S = 0.5
_TURN_END_FIX = "use system, oracle, oracle:200ms, or client-vad:energy:500ms"
_CALLS: tuple[Literal["repeats", "schedule"], ...] = ("repeats", "schedule")


def asks_live(source: Source) -> bool:
    """Whether a plan has a key that only live cases have."""
    return any(axis.name in source.data for axis in LIVE_AXES)


def is_live_model(entry: ModelEntry) -> bool:
    """Whether a model is live by axes of its own."""
    return any(axis.name in entry.axes for axis in LIVE_AXES)


def only_live(source: Source) -> bool:
    """Whether a plan has no other cases than live ones: these need no meter."""
    paces = source.data.get("pace")
    return asks_live(source) and OFFLINE not in (paces if isinstance(paces, list | tuple) else [paces])


def check_live(plan: Plan, source: Source) -> None:
    """Raise PlanError for keys of live cases in a plan without any, or that contradict each other."""
    given = next((key for key in LIVE_KEYS if key in source.data), None)
    if not asks_live(source):
        if any(map(is_live_model, plan.models)):
            turn_end_of(plan, source)
            check_arrivals(plan, source)
        elif given is not None:
            raise PlanError(
                f"`{given}` applies to live cases only", where=source.origin((given,)), fix="add `pace: realtime`"
            )
        return
    other = next((key for key in _CALLS if getattr(plan, key) is not None), None)
    if other is not None and only_live(source):
        raise PlanError(
            f"`{other}` counts calls of the model, but a live case feeds audio instead of calling the model",
            where=source.origin((other,)),
            fix="remove it",
        )
    turn_end_of(plan, source)
    check_arrivals(plan, source)
    slo_in(plan, source)
    if plan.answer_timeout < plan.silence:
        raise PlanError(
            f"answer_timeout {plan.answer_timeout:g} s is shorter than the silence of {plan.silence:g} s",
            where=source.origin(("answer_timeout",)) or source.origin(("silence",)),
            fix="raise `answer_timeout`",
        )


def slo_in(plan: Plan, source: Source | None = None) -> Slo | None:
    """The SLO of a plan; None without one. Raises PlanError for bounds that cannot be."""
    if plan.slo is None:
        return None
    searches = plan.find is not None and TARGETS[plan.find].live
    try:
        return slo_of(plan.slo, first_round=COARSE_ROUNDS if searches else 0)
    except InputError as error:
        where = None if source is None else source.origin(("slo",))
        raise PlanError(error.reason, where=where, fix=error.fix) from error


def turn_end_of(plan: Plan, source: Source | None = None) -> tuple[TurnEnd, str, float]:
    """(who ends a turn, detector, delay in seconds) of `turn_end`. Raises PlanError for what it cannot be."""
    kind, *rest = plan.turn_end.split(":")
    detector = rest.pop(0) if kind == "client-vad" and rest else ""
    delay_s = seconds_of(rest.pop(0)) if rest else _STOP_S if kind == "client-vad" else 0.0
    known = kind in ("oracle", "system") or (kind == "client-vad" and detector in CLIENT_VADS)
    if not known or rest or not isinstance(delay_s, float) or (kind == "system" and plan.turn_end != kind):
        where = None if source is None else source.origin(("turn_end",))
        raise PlanError(f"turn_end does not accept {plan.turn_end!r}", where=where, fix=_TURN_END_FIX)
    return cast(TurnEnd, kind), detector, delay_s


def live_protocol(plan: Plan, quality: Quality | None) -> LiveProtocol:
    """How the conversations of a plan's live cases are held."""
    turn_end, detector, delay_s = turn_end_of(plan)
    return LiveProtocol(
        seed=plan.seed,
        power_log=plan.power_log,
        filter=plan.filter,
        quality=quality,
        turn_end=turn_end,
        turn_delay_s=delay_s,
        turn_vad=detector,
        silence_s=plan.silence,
        quiet_s=plan.quiet,
        timeout_s=plan.answer_timeout,
        phase=plan.phase,
        turns=plan.turns,
        duration_s=plan.duration,
        warmup_turns=plan.warmup_turns,
        prebuffer_s=plan.prebuffer,
        interrupt_s=plan.interrupt,
        heard_by={} if plan.heard_by is None else plan.heard_by.model_dump(exclude={"axes", "interpreter"}),
        clients=plan.clients,
    )


def live_levels(axes: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Every combination of pace, chunk and streams; streams innermost."""
    names = axis_names(LIVE_AXES)
    left_out = {(axis.name, axis.default) for axis in LIVE_AXES if axis.late}
    for values in itertools.product(*(axes[name] for name in names)):
        level = {name: value for name, value in zip(names, values, strict=True) if (name, value) not in left_out}
        if level["pace"] != OFFLINE:
            yield level


def live_meters(plan: Plan) -> tuple[str, ...]:
    """The meters that can watch while others talk to the system. The metrics of conversations need none."""
    return tuple(name for name in plan.meters if isinstance(plugins.meter(name), WatchingMeter))


def unused_meters(plan: Plan) -> tuple[str, ...]:
    """A line for the meters of a plan that measure none of its cases, because all are live."""
    if OFFLINE in plan.axes.get("pace", (OFFLINE,)):
        return ()
    watching = live_meters(plan)
    unused = [name for name in plan.meters if name not in watching and name != "quality"]
    one = "this meter calls" if len(unused) == 1 else "these meters call"
    return (f"{', '.join(unused)}: not measured live, because {one} the model",) if unused else ()
