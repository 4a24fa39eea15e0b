"""Keys that are short for others: `cascades:` and `losses:` for models, `text:`, `features:`, `data:` and `shapes:` for
the workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from speechmeter.core.errors import PlanError
from speechmeter.plan.source import KeyPath, Source

CASCADE, STAGES = "cascade", "stages"
LOSS, SHAPES = "transducer-loss", "shapes"
_WORKLOADS = ("text", "features", "data", "shapes")
_WORD_FOR = {"data": "manifest", "shapes": "file"}
"""The option that a key means when it is given a word."""
_EXAMPLES = {
    "text": "for example `text: {vocabulary: 1000}`",
    "features": "for example `features: {bands: 80}`",
    "data": "for example `data: {manifest: test.tsv, count: 20}`; one list a run",
    "shapes": "for example `shapes: {steps: 20}`",
}
_LOSSES_FORM = "for example `losses: [ours, torchaudio, {name: pruned-10, load: ours-pruned, states: 10}]`"
_FORM = "for example `cascades: [{name: two, stages: [{name: asr, load: …}, {name: mt, load: …}]}]`"


def spelt_out(source: Source) -> Source:
    """The same plan in long form; places of the short keys still lead to where they stand."""
    data, places = dict(source.data), dict(source.places)
    _models(data, places, source)
    _losses(data, places, source)
    for key in _WORKLOADS:
        if key in data:
            _workload(key, data, places, source)
    return Source(data=data, places=places, base=source.base)


def _models(data: dict[str, Any], places: dict[KeyPath, str], source: Source) -> None:
    if "cascades" not in data:
        return
    cascades, models = data.pop("cascades"), data.get("models", [])
    models = list(models) if isinstance(models, list | tuple) else [models]
    if not isinstance(cascades, list | tuple) or not cascades:
        raise PlanError("cascades takes a list", where=source.place(("cascades",)), fix=_FORM)
    for index, cascade in enumerate(cascades):
        where = source.place(("cascades", index))
        if not isinstance(cascade, Mapping) or not _has_stages(cascade.get(STAGES)) or "name" not in cascade:
            raise PlanError("a cascade has a name and at least two stages", where=where, fix=_FORM)
        if where is not None:
            places["models", len(models)] = where
        models.append({"load": CASCADE, **cascade})
    data["models"] = models


def _losses(data: dict[str, Any], places: dict[KeyPath, str], source: Source) -> None:
    """Losses are models, and are fed shapes unless the plan says otherwise."""
    if "losses" not in data:
        return
    losses, models = data.pop("losses"), data.get("models", [])
    losses, models = (list(given) if isinstance(given, list | tuple) else [given] for given in (losses, models))
    if not losses:
        raise PlanError("losses takes a list of names", where=source.place(("losses",)), fix=_LOSSES_FORM)
    for index, loss in enumerate(losses):
        path: KeyPath = ("losses", index)
        here: KeyPath = ("models", len(models))
        where = source.place(path)
        if where is not None:
            places[here] = where
        places.update({(*here, *known[2:]): place for known, place in source.places.items() if known[:2] == path})
        models.append(_loss(loss, where))
    data["models"] = models
    if "workload" not in data and not any(key in data for key in _WORKLOADS):
        data["workload"] = {"name": SHAPES}


def _loss(loss: Any, where: str | None) -> dict[str, Any]:
    entry = {"name": loss} if isinstance(loss, str) else loss
    if not isinstance(entry, Mapping) or not isinstance(entry.get("load", entry.get("name")), str):
        raise PlanError("a loss is a name, or a mapping with one", where=where, fix=_LOSSES_FORM)
    source = str(entry.get("load", entry.get("name"))).removeprefix(f"{LOSS}:")
    return {"name": source, **entry, "load": f"{LOSS}:{source}"}


def _has_stages(stages: Any) -> bool:
    return (
        isinstance(stages, list | tuple)
        and len(stages) > 1
        and all(isinstance(stage, Mapping) and "name" in stage and "load" in stage for stage in stages)
    )


def _workload(key: str, data: dict[str, Any], places: dict[KeyPath, str], source: Source) -> None:
    options = data.pop(key)
    if isinstance(options, str) and key in _WORD_FOR:
        options = {_WORD_FOR[key]: options}
    where = source.place((key,))
    if "workload" in data:
        raise PlanError(f"{key} and workload exclude each other", where=where, fix="keep one of them")
    if data.get("audio") is not None:
        raise PlanError(f"{key} and audio exclude each other", where=where, fix="keep one of them")
    if not isinstance(options, Mapping):
        raise PlanError(f"{key} takes a mapping of its options", where=where, fix=_EXAMPLES[key])
    data["workload"] = {"name": key, **options}
    places.update({("workload", *path[1:]): place for path, place in source.places.items() if path[0] == key})
