"""Operators of a finished profile as text files: all of them, the named ranges alone, by module, and by stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from speechmeter.core.traces import ANNOTATION, DIRECTION, OPERATOR, STEP, Event, Trace, nested
from speechmeter.meters.modules import names

ALL_FILE, RANGES_FILE = "operators.txt", "ranges.txt"
MODULES_FILE, STACKS_FILE = "operators-by-module.txt", "operators-by-stack.txt"
_WIDTH = 100
_MOST = 200
_PLAIN = (names.MODULE, names.LABEL, names.STAGE)


def write_texts(folder: Path, finished: Any, trace: Trace) -> None:
    """The files of a finished profile and its trace, into a folder that is made when it is missing.

    Without a profile only those that the trace tells.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tables = {} if finished is None else {ALL_FILE: all_operators(finished), RANGES_FILE: ranges(finished)}
    for name, text in {
        **tables,
        MODULES_FILE: by_module(trace.events),
        STACKS_FILE: by_stack(trace.events),
    }.items():
        (folder / name).write_text(text, encoding="utf-8")


def all_operators(finished: Any) -> str:
    """Torch's own table of everything that ran, costliest first."""
    return _table([event for event in finished.key_averages() if not event.key.startswith(names.OURS)], finished)


def ranges(finished: Any) -> str:
    """The named ranges alone, what ran inside them included: modules, labels, and what `record_function` opened."""
    found = []
    for event in finished.key_averages():
        prefix = next((one for one in _PLAIN if event.key.startswith(one)), "")
        if prefix or (event.is_user_annotation and not event.key.startswith((*names.OURS, STEP))):
            times = event.cpu_time_total, event.device_time_total
            found.append((times, event.count, event.key.removeprefix(prefix)))
    rows = [
        (f"{cpu:.1f}", f"{device:.1f}", str(calls), name) for (cpu, device), calls, name in sorted(found, reverse=True)
    ]
    return "\n".join([*_aligned([("CPU µs", "GPU µs", "calls", "range"), *rows]), ""]) if rows else "nothing ran\n"


def _table(rows: Sequence[Any], finished: Any) -> str:
    averages = finished.key_averages()
    on_device = any(event.self_device_time_total for event in averages)
    listed = type(averages)(rows, use_device=averages._use_device, profile_memory=averages._profile_memory)
    order = "self_device_time_total" if on_device else "self_cpu_time_total"
    return str(listed.table(sort_by=order, row_limit=-1, max_name_column_width=_WIDTH)) if rows else "nothing ran\n"


def by_module(events: Sequence[Event]) -> str:
    """One line a module, direction and operator: calls and microseconds of the CPU without the operators inside."""
    sums: dict[tuple[str, ...], tuple[float, int]] = {}
    for one in nested(events):
        if one.category == OPERATOR:
            direction = str((one.event.get("args") or {}).get(DIRECTION, ""))
            _add(sums, (one.module or "(outside)", direction, one.name), one.own_us)
    return _lines(("module", "direction", "operator"), sums)


def by_stack(events: Sequence[Event]) -> str:
    """One line a stack, outermost first; the same columns."""
    from speechmeter.meters.traces.stacks import frames

    sums: dict[tuple[str, ...], tuple[float, int]] = {}
    for one in nested(event for event in events if event.get("cat") in (OPERATOR, ANNOTATION)):
        if one.category == OPERATOR:
            stack = [frame for frame in frames(one) if not frame.startswith(STEP)]
            _add(sums, (" > ".join(stack),), one.own_us)
    return _lines(("stack",), sums)


def _add(sums: dict[tuple[str, ...], tuple[float, int]], key: tuple[str, ...], own_us: float) -> None:
    time, calls = sums.get(key, (0.0, 0))
    sums[key] = (time + own_us, calls + 1)


def _lines(heads: tuple[str, ...], sums: Mapping[tuple[str, ...], tuple[float, int]]) -> str:
    whole = sum(time for time, _ in sums.values()) or 1.0
    ordered = sorted(sums.items(), key=lambda item: -item[1][0])[:_MOST]
    rows = [("own µs", "share", "calls", *heads)]
    rows += [(f"{time:.1f}", f"{time / whole:.1%}", str(calls), *key) for key, (time, calls) in ordered]
    left = len(sums) - len(ordered)
    return "\n".join([*_aligned(rows), *([f"{left} more with less"] if left else []), ""])


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [_line(row, widths) for row in rows]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    """Numbers to the right, words to the left."""
    cells = [
        cell.rjust(width) if place < 3 else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
