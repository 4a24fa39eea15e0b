"""The YAML of fairseq's speech-to-speech benchmark: `general`, and up to three stages of a chain.

A stage's word counts before that of `general`, and both before a flag's: so it is in the original. Checkpoints are not
read, which takes fairseq itself. A stage's architecture is built from its configuration, with random weights, and the
plan keeps which files it replaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from speechmeter.core.errors import PlanError
from speechmeter.core.plugins import nearest
from speechmeter.plan.foreign.draft import Draft, Translation
from speechmeter.plan.foreign.fairseq_models import (
    EOS,
    GENERAL,
    GENERATION,
    NOT_READ,
    SIZES,
    TASKS,
    ForeignStage,
    StandIn,
    put_models,
    stand_in,
)
from speechmeter.plan.source import KeyPath, Override, parse_plan

_STAGES = ("stage1", "stage2", "stage3")
KEYS = frozenset({GENERAL, *_STAGES})
"""A file with one of these outermost keys is such a benchmark."""
_TYPES = {"S2S": 1, "TTS": 1, "S2UT": 1, "MT": 1, "S2T": 1, "2StageS2ST": 2, "3StageS2ST": 3}
"""Model types, and how many stages each needs at least; S2UT may have a vocoder as its second."""
_VOCODER = ("vocoder", "vocoder_cfg", "dur_prediction")
_DUMP, _DUMP_OPTIONS = "dump_speech_waveforms_dir", {"dump_waveform_file_prefix": "prefix", "target_sr": "rate"}
"""Where sound is written, and how: keys of the original and of `save_speech`."""
_USED = frozenset(
    {"task", "model_type", "cpu", "fp16", "target_is_code", *SIZES}
    | {"dataset_path", "dataset_type", "dataset_size", "read_using_sf", EOS, _DUMP, *_DUMP_OPTIONS}
    | {*GENERATION, *NOT_READ, *_VOCODER}
)


def translate(text: str, path: Path, overrides: Sequence[Override]) -> Translation:
    """The benchmark as a plan. Raises PlanError, with the line, for what cannot be a chain of models."""
    _check_twice(text, str(path))
    foreign = parse_plan(text, str(path), base=path.parent)
    draft = Draft(foreign, overrides)
    general = _mapping(draft, GENERAL)
    kind = str(general.get("model_type", ""))
    if kind and kind not in _TYPES:
        raise PlanError(
            f"there is no model_type {kind!r}",
            where=foreign.origin((GENERAL, "model_type")),
            fix=nearest(kind, list(_TYPES)),
        )
    there = [key for key in _STAGES if key in foreign.data]
    missing = next((key for key in _STAGES[: max(_TYPES.get(kind, 1), len(there))] if key not in there), None)
    if missing is not None:
        raise PlanError(
            f"{missing} is missing" + (f"; {kind} has {_TYPES[kind]} stages" if kind else ""),
            where=foreign.origin((there[-1] if there else GENERAL,)),
            fix="number the stages from stage1 on, without a gap",
        )
    stages = _stages(draft, general)
    if not draft.flagged("models"):
        put_models(draft, stages, str(general.get("model_type") or path.stem))
    _put_devices(draft, general)
    put_data(draft, general, stages[0].model if stages else None)
    draft.put("boundary", "model")
    draft.put("meters", ["latency", "memory", "flops"])
    _put_dump(draft, general, bool(stages) and stages[-1].model.speaks)
    _left_over(draft)
    return draft.translation()


def _check_twice(text: str, name: str) -> None:
    """Say of a stage that appears twice where both are: YAML would keep the last and forget the other."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(node, yaml.MappingNode)
    seen: dict[str, int] = {}
    for key, _ in node.value:
        if key.value not in _STAGES:
            continue
        line = key.start_mark.line + 1
        if key.value in seen:
            there = [other.value for other, _ in node.value]
            free = next((stage for stage in _STAGES if stage not in there), None)
            raise PlanError(
                f"{key.value} appears twice, on lines {seen[key.value]} and {line}; YAML would keep only the second",
                where=f"{name}:{line}",
                fix=f"rename the one on line {line} to {free}" if free else "remove one of them",
            )
        seen[key.value] = line


def _mapping(draft: Draft, key: str) -> Mapping[str, Any]:
    value = draft.foreign.data.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise PlanError(f"{key} takes a mapping of keys", where=draft.foreign.origin((key,)), fix="indent its keys")
    return value


def _stages(draft: Draft, general: Mapping[str, Any]) -> list[ForeignStage]:
    """The chain up to the first stage that cannot be had; the others need what that one would put out."""
    found: list[ForeignStage] = []
    for key in (key for key in _STAGES if key in draft.foreign.data):
        own = _mapping(draft, key)
        merged = {**general, **own}
        if "task" not in merged and not _is_vocoder(own):
            raise PlanError(
                f"{key} has no task",
                where=draft.foreign.origin((key,)),
                fix=f"add `task`: {', '.join(TASKS)}",
            )
        for size in SIZES:
            if size in merged:
                whole(draft, (key if size in own else GENERAL, size), merged[size])
        # a vocoder must know as many units as the stage before it makes
        sizes = [one.merged["target_code_size"] for one in found if "target_code_size" in one.merged]
        units = {"target_code_size": sizes[-1]} if sizes else {}
        model = stand_in({**units, **own} if _is_vocoder(own) else merged)
        if model is None:
            what = f"{key}: the task {str(merged['task'])!r} is not supported"
            if not found and not draft.flagged("models"):  # else there is nothing to measure
                fix = f"known are {', '.join(TASKS)}"
                raise PlanError(what, where=draft.foreign.origin((key, "task")), fix=fix)
            draft.note(f"{what}; this stage and those after it are left out", (key,))
            break
        found.append(ForeignStage(key=key, own=own, merged=merged, model=model))
    return found


def _is_vocoder(stage: Mapping[str, Any]) -> bool:
    """Whether a stage turns units into sound: it names a vocoder and no task."""
    return "task" not in stage and any(key in stage for key in _VOCODER)


def _put_devices(draft: Draft, general: Mapping[str, Any]) -> None:
    for key, ours, yes, no in (("cpu", "device", "cpu", "cuda"), ("fp16", "dtype", "float16", "float32")):
        if key not in general:
            continue
        if not isinstance(general[key], bool):
            where = draft.foreign.origin((GENERAL, key))
            raise PlanError(f"{key} takes true or false, not {general[key]!r}", where=where, fix=f"correct {key}")
        draft.put(ours, yes if general[key] else no, (GENERAL, key))
        draft.overrule(ours, (GENERAL, key))


def _put_dump(draft: Draft, general: Mapping[str, Any], speaks: bool) -> None:
    asked = {ours: general[key] for key, ours in _DUMP_OPTIONS.items() if general.get(key) not in (None, "")}
    if not general.get(_DUMP):
        for key in _DUMP_OPTIONS:
            if key in general:
                draft.note(f"{key}: ignored without {_DUMP}", (GENERAL, key))
        return
    origin: KeyPath = (GENERAL, _DUMP)
    what = "speech is saved in artifacts/ of the run" if speaks else "no remaining stage generates speech"
    draft.put("save_speech", asked or True, origin)
    for key, ours in _DUMP_OPTIONS.items():
        draft.trace(("save_speech", ours), (GENERAL, key))
    draft.note(f"{_DUMP}: {what}", origin)


def _left_over(draft: Draft) -> None:
    """A line for each key that says something we do not do."""
    for outer, inner in draft.foreign.data.items():
        if outer not in KEYS:
            draft.note(f"{outer!r} has no equivalent here and is ignored", (str(outer),))
        for key in inner if outer in KEYS and isinstance(inner, dict) else ():
            if key not in _USED:
                draft.note(f"{key!r} has no equivalent here and is ignored", (outer, str(key)))


_COUNT = 100
"""Items of fairseq's own synthetic set."""
_FRAMES = (100, 1000)
"""How long they are, in frames of 10 ms."""
_WARMUP = 2
_LARGEST_MANIFEST_BYTES = 50_000_000
_OURS = ("audio", "data", "workload", "features", "text", "seconds")
"""Keys of ours that say what models are fed: a flag for one of them replaces the file's data."""
_ORIGIN: KeyPath = ("general", "dataset_path")


def put_data(draft: Draft, general: Mapping[str, Any], first: StandIn | None) -> None:
    """Workload, count and protocol: two warm-up calls, then every item once, one item at a time."""
    size = general.get("dataset_size")
    count = None if size is None else whole(draft, ("general", "dataset_size"), size)
    if not any(draft.flagged(key) for key in _OURS):
        count = _put_workload(draft, general, first, count)
    draft.put("batch", 1)
    if not draft.flagged("schedule"):
        # samples are whole passes over the items, so that one is enough where their number is not known here
        draft.put("repeats", count or 1, ("general", "dataset_size"))
        draft.put("discard", _WARMUP)


def whole(draft: Draft, origin: KeyPath, value: Any) -> int:
    """The value, which must be a whole number from 1 on; PlanError with its line when it is not."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise PlanError(
            f"{origin[-1]} takes a whole number from 1 on, not {value!r}",
            where=draft.foreign.origin(origin),
            fix=f"for example {origin[-1]}: 5",
        )
    return value


def _put_workload(draft: Draft, general: Mapping[str, Any], first: StandIn | None, count: int | None) -> int | None:
    """Put it and return how many calls see all of it; None where the list alone knows."""
    path, raw = general.get("dataset_path"), general.get("dataset_type", "npy") == "raw"
    reads = first is not None and first.fed == "text"
    if path is None:
        return _put_synthetic(draft, first, count, "")
    beside, here = (draft.foreign.base or Path()) / str(path), Path(str(path))  # from the plan's folder, or from here
    file = beside if beside.is_file() else here if here.is_file() else None
    if raw and not reads:
        listed = None if file is None else _listed(file, count)
        if listed is None:
            return _put_synthetic(
                draft, first, count, f"dataset_path {str(path)!r} lists no file that exists. Therefore, "
            )
        draft.put("data", {"manifest": str(file), "format": "fairseq", "count": listed}, _ORIGIN)
        return listed
    if file is None or raw:
        why = "is a list of audio files, but this model needs text" if raw else "is not here"
        return _put_synthetic(draft, first, count, f"dataset_path {str(path)!r} {why}. Therefore, ")
    some = {} if count is None else {"count": count}
    if reads:
        draft.put("text", {"ids": str(file), **some}, _ORIGIN)
    else:
        draft.put("data", {"manifest": str(file), "format": "npy", **some}, _ORIGIN)
    return count


def _put_synthetic(draft: Draft, first: StandIn | None, count: int | None, why: str) -> int:
    """As many items as the file asks for, of the lengths of fairseq's own synthetic set, each another one."""
    number = count or _COUNT
    least, most = _FRAMES
    fed = "sound" if first is None or (first.fed == "features" and draft.flagged("models")) else first.fed
    if fed == "features":
        assert first is not None
        what = f"random features of {least} to {most} frames"
        draft.put("features", {"count": number, "frames": [least, most], "bands": first.bands}, _ORIGIN)
    elif fed == "sound":
        what = f"noise of {least / 100:g} to {most / 100:g} s"
        draft.put("audio", "noise", _ORIGIN)
        draft.put("workload", {"name": "audio", "count": number, "shortest": least / 100, "longest": most / 100})
    else:
        assert first is not None
        what = "random token ids"
        draft.put("text", {"vocabulary": first.vocabulary, "count": number}, _ORIGIN)
    default = "" if count is not None else ", as many as in fairseq's synthetic set"
    draft.note(f"{why}{number} synthetic examples are used{default}: {what}", _ORIGIN if why else ("general",))
    return number


def _listed(manifest: Path, most: int | None) -> int | None:
    """How many items a manifest lists, up to `most`; None when none of their files is here."""
    if manifest.stat().st_size > _LARGEST_MANIFEST_BYTES:
        return None
    try:
        root, *lines = manifest.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError, ValueError):
        return None
    names = [line.partition("\t")[0].strip() for line in lines if line.strip()][:most]
    folders = (manifest.parent / root.strip(), Path(root.strip()))
    here = any((folder / item).is_file() for item in names for folder in folders)
    return len(names) if here else None
