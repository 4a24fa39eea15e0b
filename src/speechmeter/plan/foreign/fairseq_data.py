"""What the chain of a fairseq benchmark is fed: files that a manifest lists, else synthetic data of the same count."""

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
_WARMUP = 2
_LARGEST_MANIFEST_BYTES = 50_000_000
_MEAN_S = 5.5
"""The middle of the lengths of a synthetic set: 100 to 1000 frames of 10 ms."""
_OURS = ("audio", "data", "workload", "features", "text", "seconds")
"""Keys of ours that say what models are fed: a flag for one of them replaces the file's data."""


def put_data(draft: Draft, general: Mapping[str, Any], first: StandIn | None) -> None:
    """Workload, count and protocol: two warm-up calls, then as many as there are items, one item at a time."""
    count = whole(draft, ("general", "dataset_size"), general.get("dataset_size", _COUNT))
    if "dataset_size" not in general:
        draft.note(f"no dataset_size: {_COUNT} items, as in fairseq's synthetic set", ("general",))
    if not any(draft.flagged(key) for key in _OURS):
        count = _put_workload(draft, general, first, count)
    draft.put("batch", 1)
    if not draft.flagged("schedule"):
        draft.put("repeats", count, ("general", "dataset_size"))
        draft.put("discard", _WARMUP)


def whole(draft: Draft, origin: KeyPath, value: Any) -> int:
    """The value, which must be a whole number from 1 on; PlanError with its line when it is not."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise PlanError(
            f"{origin[-1]} takes a whole number from 1 on, not {value!r}",
            where=draft.foreign.place(origin),
            fix=f"mend {origin[-1]}",
        )
    return value


def _put_workload(draft: Draft, general: Mapping[str, Any], first: StandIn | None, count: int) -> int:
    """Put it and return how many calls see all of it."""
    origin: KeyPath = ("general", "dataset_path")
    path, raw = general.get("dataset_path"), general.get("dataset_type", "npy") == "raw"
    hears = first is None or first.fed == "sound"
    stands_in = f"{_MEAN_S:g} s of noise stand in" if hears else "random token ids stand in"
    if raw and hears:
        listed = _listed(draft, str(path), count if "dataset_size" in general else None)
        if listed is not None:
            return _put_files(draft, *listed)
        draft.note(f"dataset_path {str(path)!r} lists no file that is here: {stands_in}", origin)
    elif path is not None:
        draft.note(f"dataset_path {str(path)!r} is a pickle and is not read: {stands_in}", origin)
    if hears:
        draft.put("audio", "noise", origin)
        draft.put("seconds", _MEAN_S, origin)
    else:
        assert first is not None
        draft.put("text", {"vocabulary": first.vocabulary, "count": count}, origin)
    return count


def _listed(draft: Draft, name: str, most: int | None) -> tuple[Path, int] | None:
    """(the manifest, how many items it lists, up to `most`); None when none of their files is here."""
    base = draft.foreign.base or Path()
    manifest = next((path for path in (base / name, Path(name)) if path.is_file()), None)
    if manifest is None or manifest.stat().st_size > _LARGEST_MANIFEST_BYTES:
        return None
    try:
        root, *lines = manifest.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError, ValueError):
        return None
    names = [line.partition("\t")[0].strip() for line in lines if line.strip()][:most]
    places = (manifest.parent / root.strip(), Path(root.strip()))
    here = any((place / item).is_file() for item in names for place in places)
    return (manifest, len(names)) if here else None


def _put_files(draft: Draft, manifest: Path, count: int) -> int:
    """A dataset of the listed files; those that are not here are left out, and the record says so."""
    options = {"manifest": str(manifest), "format": "fairseq", "count": count}
    draft.put("data", options, ("general", "dataset_path"))
    return count
