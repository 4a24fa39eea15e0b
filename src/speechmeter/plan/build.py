"""From a source of keys to a validated Plan. Every error names the line or key, the reason and the fix."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from speechmeter.core import plugins
from speechmeter.core.axes import CORE_AXES, LIVE_AXES, Axis, Option
from speechmeter.core.errors import InputError, Origin, PlanError, SubjectError
from speechmeter.core.protocol import RECORDED
from speechmeter.core.quality import IMPORT, QUALITY, normaliser_id, read_scores
from speechmeter.plan.finding import searching
from speechmeter.plan.live import asks_live, check_live, is_live_model, only_live
from speechmeter.plan.schema import ModelEntry, Plan, QualityEntry, empty, explain
from speechmeter.plan.shorthand import CASCADE, STAGES, spelt_out
from speechmeter.plan.source import KeyPath, Source
from speechmeter.plan.tuning import tuned

SPECIAL_AUDIO = ("noise", "sample")
"""Values of `audio:` that are not files: generated noise, and the speech that ships with the package."""

HEARD_BY = "heard_by"
TRACE = "trace"
"""The meter that `trace:` asks for."""


def build_plan(source: Source, *, trust: bool = False) -> Plan:
    """Validate. Raises PlanError or SubjectError; nothing is imported from the models themselves."""
    source = spelt_out(source)
    structural = {key: value for key, value in source.data.items() if key in Plan.model_fields and key != "axes"}
    swept = {key: value for key, value in source.data.items() if key not in structural}
    try:
        body = Plan.model_validate(structural)
    except ValidationError as error:
        raise explain(error, source) from error
    if not body.meters and not only_live(source):
        raise empty("meters", source)
    _check_once([m.name for m in body.models], source, "models")
    _check_once(list(body.meters), source, "meters")
    for index, entry in enumerate(body.models):
        _check_plugin(entry.load, source, ("models", index))
        _check_model(entry, source, ("models", index), trust=trust)
        for number, stage in enumerate(stages_of(entry)):
            _check_model(stage, source, ("models", index, STAGES, number), trust=trust, is_stage=True)
    if body.heard_by is not None:
        _check_plugin(body.heard_by.load, source, (HEARD_BY,))
        _check_model(body.heard_by, source, (HEARD_BY,), trust=trust, is_stage=True)
    for name in body.meters:
        _named(lambda name=name: plugins.meter(name), source, ("meters",))
    _check_schedule(body, source)
    declared = declared_axes(body, source)
    if asks_live(source):
        declared |= {axis.name: axis for axis in LIVE_AXES}
    check_live(body, source)
    axes = _sweeps(swept, declared, source)
    own = [entry.model_copy(update={"axes": _own_axes(entry, body, source)}) for entry in body.models]
    body = body.model_copy(update={"models": tuple(own)})
    # whoever says how quality is taken or a trace recorded asks for the meter
    implied = {QUALITY: body.quality is not None, TRACE: body.trace is not False}
    meters = (*body.meters, *(name for name, wanted in implied.items() if wanted and name not in body.meters))
    plan = body.model_copy(update={"axes": axes, **_rebased(body, source), "meters": meters})
    plan = tuned(searching(plan, declared, source), declared, source)
    _check_scores(plan, source)
    asked = plan.quality or QualityEntry()
    if QUALITY not in plan.meters or asked.import_ is not None:
        return plan
    # the normaliser under its id: the run that keeps the plan means the same when there is a newer version
    quality = asked.model_copy(update={"normaliser": normaliser_id(asked.normaliser)})
    return plan.model_copy(update={"quality": quality})


def declared_axes(plan: Plan, source: Source) -> dict[str, Axis]:
    """Core axes, the workload's, and those of every subject in the plan."""
    workload = _named(lambda: plugins.workload(plan.workload.name), source, ("workload",))
    _check_options(plan.workload.model_extra, workload.options, source, ("workload",), plan.workload.name)
    declared = {axis.name: axis for axis in (*CORE_AXES, *workload.axes)}
    for entry in plan.models:
        declared.update({axis.name: axis for axis in axes_of(entry)})
    return declared


def axes_of(entry: ModelEntry) -> tuple[Axis, ...]:
    """The axes of a model beyond the core's; those of a cascade are its stages'."""
    own = plugins.subject(plugin_of(entry.load)).axes
    staged = [axis for stage in stages_of(entry) for axis in axes_of(stage)]
    inner = {axis.name: axis for axis in sorted(staged, key=lambda axis: not axis.late)}  # late only where all are
    return (*own, *inner.values())


def stages_of(entry: ModelEntry) -> list[ModelEntry]:
    """The models that a cascade names; none for any other model."""
    if plugin_of(entry.load) != CASCADE:
        return []
    try:
        return [ModelEntry.model_validate(stage) for stage in (entry.model_extra or {}).get(STAGES, ())]
    except (ValidationError, TypeError) as error:
        raise PlanError(
            f"{entry.name!r} has invalid stages", fix="give each stage a `name` and a `load`, both strings"
        ) from error


def plugin_of(load: str) -> str:
    """The plug-in's name in `plugin:source`."""
    return load.partition(":")[0]


def _named(get: Any, source: Source, path: KeyPath) -> Any:
    try:
        return get()
    except InputError as error:
        raise type(error)(
            error.reason, where=error.where or source.origin(path), key=error.key, fix=error.fix
        ) from error


def _check_once(values: list[str], source: Source, key: str) -> None:
    example = ": `models: a=…` `models: b=…`" if source.is_override("models") else ""
    for index, value in enumerate(values):
        if value in values[:index]:
            raise PlanError(
                f"{key}: {value!r} is listed twice",
                where=source.origin((key, index)),
                fix="remove one" if key != "models" else "give each one a name of its own" + example,
            )


_PARTS: Mapping[str | int, str] = {"models": "a stage of a cascade", HEARD_BY: "the recogniser of `heard_by`"}


def _check_model(entry: ModelEntry, source: Source, path: KeyPath, *, trust: bool, is_stage: bool = False) -> None:
    """A stage of a cascade is a model that also sets its axes among its options, and so does `heard_by`."""
    subject = _named(lambda: plugins.subject(plugin_of(entry.load)), source, path)
    if entry.interpreter is not None and (is_stage or path[0] == HEARD_BY):
        raise PlanError(
            f"{entry.name!r} runs in the process of another model, so it has no `interpreter`",
            where=source.origin(path),
            fix="set `interpreter` of the model that is measured",
        )
    if is_stage and entry.axes:
        raise PlanError(
            f"{entry.name!r} is {_PARTS[path[0]]}, which has no key `axes`",
            where=source.origin(path),
            fix="write its axes beside `load`, for example `beam: 5`",
        )
    options = (*subject.options, *subject.axes) if is_stage else subject.options
    _check_options(entry.model_extra, options, source, path, plugin_of(entry.load))
    if source.base is None or source.is_override(str(path[0])) or trust:
        return
    if plugins.runs_code(plugin_of(entry.load), entry.model_extra or {}):
        raise SubjectError(
            f"{entry.load!r} runs code that the plan names",
            where=source.origin(path),
            fix="read that code, then add `trust`, or name the model on the command line",
        )
    if entry.interpreter is not None:
        raise SubjectError(
            f"{entry.name!r} is measured by a program that the plan names: {entry.interpreter}",
            where=source.origin((*path, "interpreter")),
            fix="check that it is a Python interpreter of yours, then add `trust`",
        )


def _check_plugin(load: str, source: Source, path: KeyPath) -> None:
    """Raise PlanError for a source that lacks the plug-in in front of it: a Python file, an ONNX file, a hub id."""
    named = plugin_of(load)
    if named in plugins.names(plugins.SUBJECTS):
        return
    plugin = {".py": "python", ".onnx": "onnx"}.get(Path(named).suffix, "transformers" if "/" in named else None)
    if plugin is not None:
        raise PlanError(
            f"{load!r} needs the name of the plug-in that loads it",
            where=source.origin(path),
            fix=f"write {plugin}:{load}"
            + ("" if ":" in load or plugin != "python" else ":FUNCTION, where FUNCTION returns the model"),
        )


def _check_options(
    given: Mapping[str, Any] | None, allowed: Sequence[Option], source: Source, path: KeyPath, plugin: str
) -> None:
    known = {option.name: option for option in allowed}
    for key, value in (given or {}).items():
        if key not in known:
            own = ["name", "load", "interpreter"] if path[0] == "models" else ["name"]
            raise PlanError(
                f"unknown key {key!r} for {plugin!r}",
                where=source.origin((*path, key)),
                fix=plugins.nearest(key, [*own, *known]),
            )
        if (wrong := known[key].check(value)) is not None:
            fix = known[key].help or None
            raise PlanError(f"{plugin}: {wrong}", where=source.origin((*path, key)), fix=fix)


def _check_schedule(plan: Plan, source: Source) -> None:
    if plan.repeats is not None and plan.schedule is not None:
        raise PlanError(
            "`repeats` and `schedule` cannot be combined",
            where=source.origin(("repeats",)),
            fix="keep one of the two",
        )
    if plan.min_rounds > plan.max_rounds:
        raise PlanError(
            f"min_rounds {plan.min_rounds} is more than max_rounds {plan.max_rounds}",
            where=source.origin(("max_rounds",)) or source.origin(("min_rounds",)),
            fix="raise max_rounds",
        )
    if plan.min_samples > plan.samples:
        raise PlanError(
            f"min_samples {plan.min_samples} is more than samples {plan.samples}",
            where=source.origin(("min_samples",)) or source.origin(("samples",)),
            fix="lower min_samples",
        )


def _sweeps(swept: Mapping[str, Any], declared: Mapping[str, Axis], source: Source) -> dict[str, tuple[Any, ...]]:
    axes: dict[str, tuple[Any, ...]] = {}
    for key, value in swept.items():
        where = source.origin((key,))
        if key not in declared:
            _refuse_axis_of_another(key, declared, where)
            choices = [*declared, *(name for name in Plan.model_fields if name != "axes")]
            raise PlanError(f"unknown key {key!r}", where=where, fix=plugins.nearest(str(key), choices))
        axes[key] = _sweep(declared[key], value, source)
    return {name: axes.get(name, (axis.default,)) for name, axis in declared.items()}


def _own_axes(entry: ModelEntry, plan: Plan, source: Source) -> dict[str, tuple[Any, ...]]:
    """The axes of one model alone, checked; those of live cases as a whole where it has one of them."""
    workload = plugins.workload(plan.workload.name)
    declared = {axis.name: axis for axis in (*CORE_AXES, *LIVE_AXES, *workload.axes, *axes_of(entry))}
    where = source.origin(("models", plan.models.index(entry), "axes"))
    found = {}
    for key, value in entry.axes.items():
        if key not in declared:
            raise PlanError(
                f"{entry.name}: unknown axis {key!r}", where=where, fix=plugins.nearest(key, list(declared))
            )
        found[key] = _sweep(declared[key], value, source)
    if is_live_model(entry):
        found = {axis.name: (axis.default,) for axis in LIVE_AXES} | found
    return found


def _refuse_axis_of_another(key: str, declared: Mapping[str, Axis], where: Origin | None) -> None:
    """Raise PlanError for an axis that only other workloads have."""
    owners = []
    for name in plugins.names(plugins.WORKLOADS):
        with contextlib.suppress(InputError):  # a broken plug-in is not what this is about
            owners += [name] if any(axis.name == key for axis in plugins.workload(name).axes) else []
    if owners:
        own = [name for name in declared if name not in {axis.name for axis in CORE_AXES}]
        raise PlanError(
            f"{key} is an axis of {' and '.join(f'`{name}:`' for name in owners)}, which this plan does not use",
            where=where,
            fix=f"leave it out; the workload of this plan has {', '.join(own) or 'no axes'}",
        )


def _example(axis: Axis) -> str:
    """What to write instead of a wrong value."""
    if axis.default is None:
        return f"{axis.name} means: {axis.help}"
    return f"for example `{axis.name}: {json.dumps(axis.default)}`"


def _sweep(axis: Axis, value: Any, source: Source) -> tuple[Any, ...]:
    values: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    checked: list[Any] = []
    for index, item in enumerate(map(axis.read, values)):
        where = source.origin((axis.name, index))
        if (wrong := axis.check(item)) is not None:
            raise PlanError(wrong, where=where, fix=_example(axis))
        if item in checked:
            raise PlanError(f"{axis.name}: {item!r} appears twice", where=where, fix="remove one of them")
        checked.append(float(item) if axis.kind is float and item is not None else item)
    if not checked:
        raise PlanError(
            f"{axis.name}: an empty list measures nothing",
            where=source.origin((axis.name,)),
            fix="list a value",
        )
    return tuple(checked)


def _rebased(plan: Plan, source: Source) -> dict[str, Any]:
    """Paths of a plan file start from its own folder; a path that exists only here is left as it is."""
    if source.base is None:
        return {}
    base = source.base
    changes: dict[str, Any] = {}
    if not source.is_override("models"):
        changes["models"] = tuple(_rebase_model(entry, base) for entry in plan.models)
    if plan.heard_by is not None and not source.is_override(HEARD_BY):
        changes[HEARD_BY] = _rebase_model(plan.heard_by, base)
    if plan.audio is not None and not source.is_override("audio"):
        changes["audio"] = tuple(one if one in SPECIAL_AUDIO else _rebase(one, base) for one in plan.audio)
    kind, _, trace = plan.arrivals.partition(":") if isinstance(plan.arrivals, str) else ("", "", "")
    if kind == RECORDED and not source.is_override("arrivals"):
        changes["arrivals"] = f"{kind}:{_rebase(trace, base)}"
    if plan.power_log is not None and not source.is_override("power_log"):
        changes["power_log"] = _rebase(plan.power_log, base)
    if plan.quality is not None and plan.quality.import_ is not None and not source.is_override(QUALITY, IMPORT):
        changes[QUALITY] = plan.quality.model_copy(update={"import_": _rebase(plan.quality.import_, base)})
    given = plan.workload.model_extra or {}
    paths = {
        name: _rebase(given[name], base)
        for name in _path_options(plugins.workload(plan.workload.name).options, given)
        if not source.is_override("workload", name)
    }
    if paths:
        changes["workload"] = plan.workload.model_copy(update=paths)
    return changes


def _rebase_model(entry: ModelEntry, base: Path) -> ModelEntry:
    plugin, colon, source = entry.load.partition(":")
    path, factory_colon, factory = source.partition(":")
    changes: dict[str, Any] = {"load": f"{plugin}{colon}{_rebase(path, base)}{factory_colon}{factory}"}
    given = entry.model_extra or {}
    paths = _path_options(plugins.subject(plugin).options, given)
    changes |= {name: _rebase(given[name], base) for name in paths}
    if entry.interpreter is not None:
        changes["interpreter"] = _rebase(entry.interpreter, base)
    if stages := stages_of(entry):
        changes[STAGES] = [_rebase_model(stage, base).model_dump(exclude_defaults=True) for stage in stages]
    return entry.model_copy(update=changes)


def _path_options(options: Iterable[Option], given: Mapping[str, Any]) -> list[str]:
    """The options that are given and name a file or folder."""
    return [option.name for option in options if Path in option.kinds and isinstance(given.get(option.name), str)]


def _rebase(path: str, base: Path) -> str:
    moved = base / path
    return os.path.relpath(moved) if path and not Path(path).is_absolute() and moved.exists() else path


def _check_scores(plan: Plan, source: Source) -> None:
    """The file must be sound and about models and axes of this plan; with it nothing is left to be scored here."""
    asked = plan.quality
    if asked is None or asked.import_ is None:
        return
    where = source.origin((QUALITY, IMPORT)) or source.origin((QUALITY,))
    if asked.normaliser is not None or asked.scores is not None:
        raise PlanError(
            "`import` cannot be combined with `normaliser` or `scores`", where=where, fix="keep only `import`"
        )
    rows = read_scores(Path(asked.import_))
    columns = sorted({name for row in rows for name in row.axes})
    known = [*plan.axes, "workload"]
    for name in columns:
        if name not in known:
            raise PlanError(
                f"{asked.import_}: column {name!r} is not an axis", where=where, fix=plugins.nearest(name, known)
            )
    models = [entry.name for entry in plan.models]
    if not any(row.model in models for row in rows):
        raise PlanError(
            f"{asked.import_} has no row for any model of the plan",
            where=where,
            fix=f"use the names of the plan: {', '.join(models)}",
        )
