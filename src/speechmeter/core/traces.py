"""Trace files in the Trace Event format, as Chrome, Perfetto and TensorBoard read them: reading, writing, nesting."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError

SUFFIX = ".pt.trace.json.gz"
"""What TensorBoard's PyTorch plug-in looks for; Chrome and Perfetto open it as well."""
FOLDER = "trace"
"""The folder of a case's artifacts that holds its trace."""
STEP = "ProfilerStep#"
"""Begins the name of a slice that is one step; TensorBoard tells steps by it."""
OPERATOR, ANNOTATION = "cpu_op", "user_annotation"
KERNEL, COPIES = "kernel", ("gpu_memcpy", "gpu_memset")
MODULE = "module"
"""The argument of a slice: the path of the module that it is a call of, or whose work it does."""
DIRECTION = "direction"
"""The argument of an operator that does a module's work: forward, backward or recompute."""
_NAMED = (".json", ".json.gz")

Event = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Events, and everything that stands beside them in the file."""

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
    """A trace from a file. Raises InputError when it is not there or is none."""
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        data = json.loads(raw.decode("utf-8", "replace"), strict=False)  # torch may write a name that is no text
    except OSError as error:
        raise InputError(
            f"no trace can be read here: {error.strerror or error}", where=str(path), fix="name a trace"
        ) from error
    except (ValueError, EOFError, zlib.error) as error:
        raise InputError(f"this is no trace: {error}", where=str(path), fix="name a .json or .json.gz trace") from error
    events = data if isinstance(data, list) else data.get("traceEvents") if isinstance(data, dict) else None
    if not isinstance(events, list) or not all(_is_event(event) for event in events):
        raise InputError("this JSON is no trace", where=str(path), fix="name a file in the Trace Event format")
    facts = {key: value for key, value in data.items() if key != "traceEvents"} if isinstance(data, dict) else {}
    return Trace(events=events, facts=facts)


def _is_event(event: Any) -> bool:
    if not isinstance(event, dict) or "ph" not in event:
        return False
    return event["ph"] != "X" or all(isinstance(event.get(key), int | float) for key in ("ts", "dur"))


def write_trace(path: Path, trace: Trace) -> int:
    """Write it compressed and return the bytes; the file is whole or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**trace.facts, "traceEvents": list(trace.events)}, separators=(",", ":"))
    part = path.with_name(path.name + ".part")
    part.write_bytes(gzip.compress(text.encode(), compresslevel=6, mtime=0))
    part.replace(path)
    return path.stat().st_size


def find_trace(path: Path) -> Path:
    """The file itself, or the one trace below a folder. Raises InputError when there is none or several."""
    if not path.is_dir():
        return path
    found = sorted(file for file in path.rglob("*.json*") if file.name.endswith(_NAMED) and _looks_like(file))
    if not found:
        raise InputError("there is no trace in this folder", where=str(path), fix="run with `trace: true`")
    if len(found) > 1:
        names = ", ".join(str(file.relative_to(path)) for file in found[:4]) + (", …" if len(found) > 4 else "")
        raise InputError(f"there are {len(found)} traces in this folder", where=str(path), fix=f"name one: {names}")
    return found[0]


def _looks_like(file: Path) -> bool:
    return file.name.endswith(SUFFIX) or ".trace." in file.name
