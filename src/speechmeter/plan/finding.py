"""`find:` in a plan: which axis is searched, from where, and what a trial is fed."""

from __future__ import annotations

from speechmeter.core.axes import Axis
from speechmeter.core.errors import PlanError
from speechmeter.core.finding import TARGETS, TRIAL_METERS, Target
from speechmeter.core.protocol import SearchProtocol
from speechmeter.plan.schema import Plan
from speechmeter.plan.source import Source

_ONE_CALL = {"shapes": {"steps": 1}}
"""Options with which a workload makes one batch; a trial is one call."""
_RIVALS = {"batch": ("max_frames", "batch_seconds")}
"""Axes that set the same thing as a searched axis in another way, so they cannot be given with the search."""


def searching(plan: Plan, declared: dict[str, Axis], source: Source) -> Plan:
    """The plan with its searched axis at the start, its meters and its input cut to one call; as it is without `find`.

    Raises PlanError where what is fed has no such axis, or several values stand where one is the start.
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
    if target.axis not in declared:
        fit = [word for word, other in TARGETS.items() if other.axis in declared]
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
        raise PlanError(
            f"find_most {target.value(target.steps(most)):,} is less than the {start:,} that the search starts from",
            where=source.origin(("find_most" if plan.find_most else target.axis,)),
            fix=f"raise it, or lower {target.axis}",
        )
    meters = tuple(name for name in plan.meters if name in TRIAL_METERS) or TRIAL_METERS[:1]
    options = {**_ONE_CALL.get(plan.workload.name, {}), **(plan.workload.model_extra or {})}
    workload = plan.workload.model_copy(update=options)
    axes = {**plan.axes, target.axis: (start,)}
    return plan.model_copy(update={"axes": axes, "meters": meters, "workload": workload})


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


def search_protocol(plan: Plan) -> SearchProtocol:
    """The protocol of the trials that a plan asks for."""
    assert plan.find is not None
    return SearchProtocol(find=plan.find, seed=plan.seed, margin=plan.find_margin, memory_gib=plan.limits.memory_gib)
