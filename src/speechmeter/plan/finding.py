"""`find:` in a plan: which axis is searched, from where, and what a trial is fed."""

from __future__ import annotations

from speechmeter.core.axes import OFFLINE, Axis
from speechmeter.core.errors import PlanError
from speechmeter.core.finding import TARGETS, TRIAL_METERS, Target
from speechmeter.core.protocol import SearchProtocol
from speechmeter.plan.arrivals import is_trace
from speechmeter.plan.live import asks_live
from speechmeter.plan.schema import Plan
from speechmeter.plan.source import Source

_ONE_CALL = {"shapes": {"steps": 1}}
"""Options with which a workload makes one batch; a trial is one call."""
_RIVALS = {"batch": ("max_frames", "batch_seconds"), "streams": ("rate",)}
"""Axes that set the same thing as a searched axis in another way, so they cannot be given with the search."""


def searching(plan: Plan, declared: dict[str, Axis], source: Source) -> Plan:
    """The plan with its searched axis at the start, its meters and its input cut to one call; as it is without `find`.

    Raises PlanError where what is fed has no such axis, or several values are given for the one to start from.
    """
    if plan.find is None:
        for key in ("find_most", "find_within"):
            if getattr(plan, key) is not None:
                raise PlanError(
                    f"{key} applies to a search only, and this plan has none",
                    where=source.origin((key,)),
                    fix="add `find`",
                )
        return plan
    target = TARGETS[plan.find]
    where = source.origin(("find",))
    if target.live:
        return _searching_levels(plan, target, declared, source)
    if asks_live(source):
        raise PlanError(
            f"`find: {plan.find}` needs a model that is called, but the plan feeds it live",
            where=where,
            fix="use max-streams or max-rate, or remove `pace`",
        )
    if target.axis not in declared:
        fit = [word for word, other in TARGETS.items() if other.axis in declared and not other.live]
        raise PlanError(
            f"{plan.find} searches the axis {target.axis}, which `{plan.workload.name}:` does not have",
            where=where,
            fix=f"use {' or '.join(fit)}" if fit else "feed audio or shapes",
        )
    _check_alone(plan, target, source)
    (given,) = plan.axes[target.axis]
    start = target.value(max(1, target.steps(target.start if given is None else given)))
    most = plan.find_most or target.most
    if start > most:
        raise _beyond_most(plan, target, start, source)
    meters = tuple(name for name in plan.meters if name in TRIAL_METERS) or TRIAL_METERS[:1]
    options = {**_ONE_CALL.get(plan.workload.name, {}), **(plan.workload.model_extra or {})}
    workload = plan.workload.model_copy(update=options)
    axes = {**plan.axes, target.axis: (start,)}
    return plan.model_copy(update={"axes": axes, "meters": meters, "workload": workload})


def _searching_levels(plan: Plan, target: Target, declared: dict[str, Axis], source: Source) -> Plan:
    """The plan of a search for a level of load: ordinary live cases, each line from its lowest level on."""
    where = source.origin(("find",))
    if target.axis not in declared or OFFLINE in plan.axes.get("pace", ()):
        raise PlanError(
            f"`find: {plan.find}` works only if every case is live", where=where,
            fix="use `pace: realtime` or `pace: fast`",
        )  # fmt: skip
    if plan.slo is None:
        raise PlanError(
            f"{plan.find} needs an SLO", where=where,
            fix="for example `slo: {final_delay_p95_s: 0.8, live_completeness: 99%}`",
        )  # fmt: skip
    if is_trace(plan):
        raise PlanError("a trace sets the load, so `find` cannot change it", where=where, fix="remove `arrivals`")
    _check_alone(plan, target, source)
    (given,) = plan.axes[target.axis]
    start = target.value(max(1, target.steps(given or target.start)))
    if start > (plan.find_most or target.most):
        raise _beyond_most(plan, target, start, source)
    return plan.model_copy(update={"axes": {**plan.axes, target.axis: (start,)}})


def _beyond_most(plan: Plan, target: Target, start: float, source: Source) -> PlanError:
    most = plan.find_most or target.most
    return PlanError(
        f"find_most {target.value(target.steps(most)):,} is less than the {start:,} that the search starts from",
        where=source.origin(("find_most" if plan.find_most else target.axis,)),
        fix=f"raise it, or lower {target.axis}",
    )


def _check_alone(plan: Plan, target: Target, source: Source) -> None:
    """Raise PlanError for keys that cannot be combined with a search."""
    given = len(plan.axes[target.axis])
    if given > 1:
        raise PlanError(
            f"`find` searches {target.axis}, so it takes one value to start from, not {given}",
            where=source.origin((target.axis,)),
            fix="give one value, or leave it out",
        )
    for rival in _RIVALS.get(target.axis, ()):
        if any(value is not None for value in plan.axes.get(rival, ())):
            raise PlanError(
                f"`find` searches {target.axis}, so {rival} cannot be set",
                where=source.origin((rival,)),
                fix=f"drop {rival}",
            )
    if plan.triangle:
        raise PlanError(
            "`triangle` and `find` cannot be combined",
            where=source.origin(("triangle",)),
            fix="keep one of the two",
        )


def fits_memory(plan: Plan) -> bool:
    """Whether a plan searches the largest that fits into memory."""
    return plan.find is not None and not TARGETS[plan.find].live


def search_protocol(plan: Plan) -> SearchProtocol:
    """The protocol of the trials that a plan asks for."""
    assert plan.find is not None
    return SearchProtocol(find=plan.find, seed=plan.seed, margin=plan.find_margin, memory_gib=plan.limits.memory_gib)
