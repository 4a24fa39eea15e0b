"""Keys that are short for others: `cascades:`, `losses:` and `train:` for models, `text:`, `features:`, `data:` and
`shapes:` for the workload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from speechmeter.core.errors import Origin, PlanError
from speechmeter.plan.source import KeyPath, Source

CASCADE, STAGES = "cascade", "stages"
LOSS, SHAPES = "transducer-loss", "shapes"
TRAIN, TRAIN_PYTHON = "train", "train-python"
_WORKLOADS = ("text", "features", "data", "shapes")
_WORD_FOR = {"data": "manifest", "shapes": "file"}
"""The option that a key means when it is given a word."""
_EXAMPLES = {
    "text": "for example `text: {vocabulary: 1000}`",
    "features": "for example `features: {bands: 80}`",
    "data": "for example `data: {manifest: test.tsv, count: 20}`; one list per run",
    "shapes": "for example `shapes: {steps: 20}`",
}
_LOSSES_FORM = "for example `losses: [ours, torchaudio, {name: pruned-10, load: ours-pruned, states: 10}]`"
_TRAIN_FORM = "for example `train: [conformer-transducer, {name: mine, load: python:model.py:make}]`"
Spell = Callable[[Any, "Origin | None"], dict[str, Any]]
_FORM = "for example `cascades: [{name: two, stages: [{name: asr, load: …}, {name: mt, load: …}]}]`"


def spelt_out(source: Source) -> Source:
    """The same plan in long form; messages still name the short keys."""
    data, origins = dict(source.data), dict(source.origins)
    _models(data, origins, source)
    _listed(data, origins, source, "losses", _loss, _LOSSES_FORM)
    _listed(data, origins, source, "train", _step, _TRAIN_FORM)
    for key in _WORKLOADS:
        if key in data:
            _workload(key, data, origins, source)
    return Source(data=data, origins=origins, base=source.base)


def _models(data: dict[str, Any], origins: dict[KeyPath, Origin], source: Source) -> None:
    if "cascades" not in data:
        return
    cascades, models = data.pop("cascades"), data.get("models", [])
    models = list(models) if isinstance(models, list | tuple) else [models]
    if not isinstance(cascades, list | tuple) or not cascades:
        raise PlanError("cascades takes a list", where=source.origin(("cascades",)), fix=_FORM)
    for index, cascade in enumerate(cascades):
        where = source.origin(("cascades", index))
        stages: Any = cascade.get(STAGES) if isinstance(cascade, Mapping) and "name" in cascade else None
        whole = isinstance(stages, list | tuple) and len(stages) > 1
        if not whole or not all(isinstance(one, Mapping) and {"name", "load"} <= one.keys() for one in stages):
            raise PlanError("a cascade needs a name and at least two stages", where=where, fix=_FORM)
        if where is not None:
            origins["models", len(models)] = where
        models.append({"load": CASCADE, **cascade})
    data["models"] = models


def _listed(
    data: dict[str, Any], origins: dict[KeyPath, Origin], source: Source, key: str, one: Spell, form: str
) -> None:
    """Losses and training steps are models, and are fed shapes unless the plan says otherwise."""
    if key not in data:
        return
    entries, models = data.pop(key), data.get("models", [])
    entries, models = (list(given) if isinstance(given, list | tuple) else [given] for given in (entries, models))
    if not entries:
        raise PlanError(f"{key} takes a list of names", where=source.origin((key,)), fix=form)
    for index, entry in enumerate(entries):
        path: KeyPath = (key, index)
        here: KeyPath = ("models", len(models))
        where = source.origin(path)
        if where is not None:
            origins[here] = where
        origins.update({(*here, *known[2:]): origin for known, origin in source.origins.items() if known[:2] == path})
        models.append(one(entry, where))
    data["models"] = models
    if "workload" not in data and not any(other in data for other in _WORKLOADS):
        data["workload"] = {"name": SHAPES, **({"frames": "raw"} if key == TRAIN else {})}


def _loss(loss: Any, where: Origin | None) -> dict[str, Any]:
    entry = {"name": loss} if isinstance(loss, str) else loss
    if not isinstance(entry, Mapping) or not isinstance(entry.get("load", entry.get("name")), str):
        raise PlanError("a loss must be a name, or a mapping with `name`", where=where, fix=_LOSSES_FORM)
    source = str(entry.get("load", entry.get("name"))).removeprefix(f"{LOSS}:")
    return {"name": source, **entry, "load": f"{LOSS}:{source}"}


def _step(step: Any, where: Origin | None) -> dict[str, Any]:
    entry = {"name": step, "load": step} if isinstance(step, str) else step
    if not isinstance(entry, Mapping) or not isinstance(entry.get("load", entry.get("name")), str):
        raise PlanError("a training step must be a name, or a mapping with `name`", where=where, fix=_TRAIN_FORM)
    load = str(entry.get("load", entry.get("name")))
    name = str(entry.get("name", load)).rpartition("/")[2].removeprefix("python:")
    if load.startswith("python:"):
        return {**entry, "name": name, "load": f"{TRAIN_PYTHON}:{load.removeprefix('python:')}"}
    return {**entry, "name": name, "load": f"{TRAIN}:{load.removeprefix(f'{TRAIN}:')}"}


def _workload(key: str, data: dict[str, Any], origins: dict[KeyPath, Origin], source: Source) -> None:
    options = data.pop(key)
    if isinstance(options, str) and key in _WORD_FOR:
        options = {_WORD_FOR[key]: options}
    where = source.origin((key,))
    if "workload" in data:
        raise PlanError(f"{key} and workload cannot be combined", where=where, fix="keep one of the two")
    if data.get("audio") is not None:
        raise PlanError(f"{key} and audio cannot be combined", where=where, fix="keep one of the two")
    if not isinstance(options, Mapping):
        raise PlanError(f"{key} takes a mapping of its options", where=where, fix=_EXAMPLES[key])
    data["workload"] = {"name": key, **options}
    origins.update({("workload", *path[1:]): origin for path, origin in source.origins.items() if path[0] == key})
