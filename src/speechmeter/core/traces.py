"""Trace files in the Trace Event format, as Chrome, Perfetto and TensorBoard read them: reading, writing, nesting."""

from __future__ import annotations

import gzip
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.files import MIB, read_bytes, write_whole

SUFFIX = ".pt.trace.json.gz"
"""What TensorBoard's PyTorch plug-in looks for; Chrome and Perfetto open it as well."""
FOLDER = "trace"
"""The folder of a case's artifacts that holds its trace."""
STEP = "ProfilerStep#"
"""Begins the name of a slice that is one step; TensorBoard finds steps by it."""
OPERATOR, ANNOTATION = "cpu_op", "user_annotation"
KERNEL, COPIES = "kernel", ("gpu_memcpy", "gpu_memset")
MODULE = "module"
"""The argument of a slice: the path of the module that it is a call of, or whose work it does."""
DIRECTION = "direction"
"""The argument of an operator that does a module's work: forward, backward or recompute."""
LARGEST_FILE = 512 * MIB
"""Unpacked; parsed, it takes several times as much memory. Ours have at most 200,000 events in 100 MB."""
_NAMED = (".json", ".json.gz")
_MARK = re.compile(rf'"cat": "{ANNOTATION}",\s*"name": "{STEP}\d+",[^{{}}]*?"ts": ([\d.]+),\s*"dur": ([\d.]+)')
"""A step in a file as torch's profiler writes it, with its beginning and duration."""

Event = dict[str, Any]
_GONE: Event = {}
"""Takes the place of an event that is not kept."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Events, and everything else in the file."""

    events: Sequence[Event]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Slice:
    """Something with a beginning and a duration on one lane (process, thread), inside another slice or none.

    Times are microseconds, as the format has them; `own_us` is the duration without the slices directly inside.
    """

    event: Event
    start_us: float
    duration_us: float
    lane: tuple[Any, Any]
    parent: Slice | None = None
    own_us: float = 0.0

    @property
    def name(self) -> str:
        """What the slice is called."""
        return str(self.event.get("name", ""))

    @property
    def category(self) -> str:
        """What it is: `cpu_op`, `kernel`, `user_annotation`, …"""
        return str(self.event.get("cat", ""))

    @property
    def end_us(self) -> float:
        """Where it ends."""
        return self.start_us + self.duration_us

    @property
    def module(self) -> str | None:
        """The path of the module whose work it does, or of the innermost call that it lies in; None outside of all."""
        here: Slice | None = self
        while here is not None:
            path = here.event.get("args", {}).get(MODULE)
            if path is not None:
                return str(path)
            here = here.parent
        return None


def nested(events: Iterable[Event]) -> list[Slice]:
    """The slices of a trace by lane and start, each with the one it lies in; `own_us` set.

    A slice that reaches beyond the end of the one it began in is taken to lie in it.
    """
    found = [
        Slice(event=event, start_us=float(event["ts"]), duration_us=float(event["dur"]), lane=lane_of(event))
        for event in events
        if event.get("ph") == "X"
    ]
    found.sort(key=lambda one: (str(one.lane), one.start_us, -one.duration_us))
    open_: list[Slice] = []
    for one in found:
        while open_ and (open_[-1].lane != one.lane or open_[-1].end_us <= one.start_us):
            open_.pop()
        one.own_us = one.duration_us
        if open_:
            one.parent = open_[-1]
            one.parent.own_us -= min(one.duration_us, one.parent.end_us - one.start_us)
        open_.append(one)
    return found


def lane_of(event: Event) -> tuple[Any, Any]:
    """(process, thread) of an event; slices of one lane are nested."""
    return event.get("pid"), event.get("tid")


def read_trace(path: Path) -> Trace:
    """A trace from a file. Raises InputError when it is missing or not a trace."""
    return _read(path, lambda text: None)


def read_steps(path: Path, most: int) -> Trace:
    """The first steps of a trace and nothing before, after or between them; all of it where no step is marked.

    What is left out is never held: a recording may have many times as many events as one step. Raises as `read_trace`.
    """
    marks: list[tuple[float, float]] = []

    def chosen(text: str) -> Keep | None:
        for mark in _MARK.finditer(text):
            start, duration = map(float, mark.groups())
            marks.append((start, start + duration))
        return _during(marks, most)

    trace = _read(path, chosen)
    if marks:
        return trace
    steps = [one for one in trace.events if one.get("cat") == ANNOTATION and str(one.get("name")).startswith(STEP)]
    keep = _during([(one["ts"], one["ts"] + one["dur"]) for one in steps], most)  # a file that is written otherwise
    return trace if keep is None else Trace(events=list(filter(keep, trace.events)), facts=trace.facts)


Keep = Callable[[Event], bool]


def _during(steps: Sequence[tuple[float, float]], most: int) -> Keep | None:
    spans = sorted(steps)[:most]
    starts = [start for start, _ in spans]

    def keep(event: Event) -> bool:
        at_us = event.get("ts")
        if event.get("ph") == "M" or not isinstance(at_us, int | float):
            return True  # names of threads and processes; whatever else is no event
        index = bisect_right(starts, at_us) - 1
        return index >= 0 and at_us <= spans[index][1]

    return keep if spans else None


def _read(path: Path, chosen: Callable[[str], Keep | None]) -> Trace:
    try:
        text = read_bytes(path, LARGEST_FILE).decode("utf-8", "replace")
        keep = chosen(text)
        hook = None if keep is None else lambda event: event if "ph" not in event or keep(event) else _GONE
        data = json.loads(text, strict=False, object_hook=hook)  # torch may write a name that is no text
    except OSError as error:
        raise InputError(
            f"the trace cannot be read: {error.strerror or error}", where=str(path), fix="use a trace"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"this is not a trace: {error}", where=str(path), fix="use a .json or .json.gz trace"
        ) from error
    events = data if isinstance(data, list) else data.get("traceEvents") if isinstance(data, dict) else None
    events = [event for event in events if event is not _GONE] if isinstance(events, list) else events
    if not isinstance(events, list) or not all(_is_event(event) for event in events):
        raise InputError("this JSON file is not a trace", where=str(path), fix="use a file in the Trace Event format")
    facts = {key: value for key, value in data.items() if key != "traceEvents"} if isinstance(data, dict) else {}
    return Trace(events=events, facts=facts)


def _is_event(event: Any) -> bool:
    if not isinstance(event, dict) or "ph" not in event:
        return False
    return event["ph"] != "X" or all(isinstance(event.get(key), int | float) for key in ("ts", "dur"))


def write_trace(path: Path, trace: Trace) -> int:
    """Write it, compressed where the name ends in .gz, and return the bytes; the file is whole or absent."""
    text = json.dumps({**trace.facts, "traceEvents": list(trace.events)}, separators=(",", ":"))
    data = text.encode(errors="replace")
    write_whole(path, gzip.compress(data, compresslevel=6, mtime=0) if path.name.endswith(".gz") else data)
    return path.stat().st_size


def find_trace(path: Path) -> Path:
    """The file itself, or the one trace below a folder. Raises InputError when there is none or several."""
    found = _below(path)
    if len(found) > 1:
        raise InputError(f"there are {len(found)} traces in this folder", where=str(path), fix=_name_one(found, path))
    return found[0]


def find_traces(path: Path) -> list[Path]:
    """The file itself, or all traces below a folder that lie side by side: those of one function's steps.

    Raises InputError when there is none, and when they lie in several folders: those are of different things.
    """
    found = _below(path)
    folders = list(dict.fromkeys(file.parent for file in found))
    if len(folders) > 1:
        raise InputError(
            f"there are traces in {len(folders)} folders below this one", where=str(path), fix=_name_one(folders, path)
        )
    return found


def _below(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = (file for file in path.rglob("*.json*") if file.name.endswith(_NAMED))
    found = sorted(file for file in files if ".trace." in file.name)
    if not found:
        raise InputError("there is no trace in this folder", where=str(path), fix="run with `trace: true`")
    return found


def _name_one(found: Sequence[Path], folder: Path) -> str:
    names = ", ".join(str(one.relative_to(folder)) for one in found[:4])
    return f"choose one: {names}{', …' if len(found) > 4 else ''}"
