"""`tune:` in a plan: the axes that are tuned, with the values that make sense here, and the meters that this needs."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.core.axes import Axis
from speechmeter.core.device import Device
from speechmeter.core.errors import InputError, PlanError
from speechmeter.core.machine import available_cores
from speechmeter.core.plugins import nearest
from speechmeter.core.quality import default_scores
from speechmeter.core.tuning import GOALS, TUNED_AXES, Keep, keep_of, meters_for, values_to_try
from speechmeter.plan.schema import Plan, QualityEntry
from speechmeter.plan.source import Source


def tuned(plan: Plan, declared: dict[str, Axis], source: Source) -> Plan:
    """The plan with its tuned axes filled in and its meters; as it is without `tune`.

    Raises PlanError for what cannot be tuned.
    """
    if plan.tune is None:
        return plan
    where = source.origin(("tune",))
    if len(plan.models) > 1:
        raise PlanError("`tune` takes one model", where=where, fix="tune each model in a run of its own")
    if plan.models[0].axes:
        raise PlanError("`tune` takes the axes of the plan", where=where, fix="remove `axes` of the model")
    if plan.find is not None or plan.is_live or plan.triangle:
        other = "find" if plan.find is not None else "triangle" if plan.triangle else "pace"
        raise PlanError(f"`tune` and `{other}` cannot be combined", where=where, fix=f"remove `{other}`")
    if plan.audio is not None and len(plan.audio) > 1:
        raise PlanError("`tune` takes one input", where=source.origin(("audio",)) or where, fix="name one sound")
    if plan.tune.goal == "cost" and plan.tune.price is None:
        raise PlanError("the goal `cost` needs a price", where=where, fix="add the price of one hour: `price: 1.50`")
    try:
        keeps = [keep_of(text) for text in plan.tune.keep]
    except InputError as error:
        raise PlanError(error.reason, where=where, key=error.key, fix=error.fix) from error
    over = _over(plan, declared, source)
    device = Device.read(str((plan.axes.get("device") or ("cpu",))[0] or "cpu"))
    cores = plan.axes.get("cores", (None,))[0] or len(available_cores())
    axes = dict(plan.axes)
    for name in over:
        if name not in source.data:
            axes[name] = values_to_try(declared[name], on_cuda=device.is_cuda, cores=cores)
    over = [name for name in over if len(axes[name]) > 1]
    if not over:
        raise PlanError(
            "there is nothing to tune: each axis has one value", where=where,
            fix="name axes with `over`, or give an axis several values",
        )  # fmt: skip
    wanted = meters_for(GOALS[plan.tune.goal], keeps)
    given = plan.meters if "meters" in source.data else ()
    return plan.model_copy(update={
        "axes": axes, "meters": tuple(dict.fromkeys([*wanted, *given])), "quality": _scored(plan, keeps),
        "tune": plan.tune.model_copy(update={"over": tuple(over)}),
    })  # fmt: skip


def _scored(plan: Plan, keeps: Sequence[Keep]) -> QualityEntry | None:
    """What is scored: also what a bound is about, unless the plan says which scores it wants."""
    bounded = [keep.metric.name for keep in keeps if keep.kind == "score" and keep.metric is not None]
    if not bounded or (plan.quality is not None and (plan.quality.scores is not None or plan.quality.import_)):
        return plan.quality
    scores = tuple(dict.fromkeys([*default_scores(plan.workload.name), *bounded]))
    return (plan.quality or QualityEntry()).model_copy(update={"scores": scores})


def _over(plan: Plan, declared: dict[str, Axis], source: Source) -> list[str]:
    """The axes to tune: those named, and those that were given several values. Usual ones may be absent."""
    assert plan.tune is not None
    named = plan.tune.over if plan.tune.over is not None else TUNED_AXES
    for name in named:
        if name not in declared and name not in TUNED_AXES:
            raise PlanError(
                f"`over` names {name!r}, which is not an axis of this model and workload",
                where=source.origin(("tune",)), fix=nearest(name, list(declared)),
            )  # fmt: skip
    several = [name for name, values in plan.axes.items() if len(values) > 1]
    missing = [name for name in several if plan.tune.over is not None and name not in named]
    if missing:
        raise PlanError(
            f"{missing[0]} has several values, but `over` does not name it",
            where=source.origin((missing[0],)), fix="give it one value, or name it in `over`",
        )  # fmt: skip
    return [name for name in dict.fromkeys([*named, *several]) if name in declared]
