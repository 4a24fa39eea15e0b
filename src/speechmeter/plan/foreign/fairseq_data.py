"""What the chain of a fairseq benchmark is fed: the items of its list, else synthetic ones of the same number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from speechmeter.core.errors import PlanError
from speechmeter.plan.foreign.draft import Draft
from speechmeter.plan.foreign.fairseq_tasks import StandIn
from speechmeter.plan.source import KeyPath

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
    file = _file(draft, str(path))
    if raw and not reads:
        listed = None if file is None else _listed(file, count)
        if listed is None:
            return _put_synthetic(draft, first, count, f"dataset_path {str(path)!r} lists no file that is here: ")
        draft.put("data", {"manifest": str(file), "format": "fairseq", "count": listed}, _ORIGIN)
        return listed
    if file is None or raw:
        why = "is a list of sound, which this model does not take" if raw else "is not here"
        return _put_synthetic(draft, first, count, f"dataset_path {str(path)!r} {why}: ")
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
        what = f"normal features of {least} to {most} frames"
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
    draft.note(f"{why}{number} synthetic examples{default}: {what}", _ORIGIN if why else ("general",))
    return number


def _file(draft: Draft, name: str) -> Path | None:
    """A file seen from the plan's folder, or from here."""
    base = draft.foreign.base or Path()
    return next((path for path in (base / name, Path(name)) if path.is_file()), None)


def _listed(manifest: Path, most: int | None) -> int | None:
    """How many items a manifest lists, up to `most`; None when none of their files is here."""
    if manifest.stat().st_size > _LARGEST_MANIFEST_BYTES:
        return None
    try:
        root, *lines = manifest.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError, ValueError):
        return None
    names = [line.partition("\t")[0].strip() for line in lines if line.strip()][:most]
    places = (manifest.parent / root.strip(), Path(root.strip()))
    here = any((place / item).is_file() for item in names for place in places)
    return len(names) if here else None
