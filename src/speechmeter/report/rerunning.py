"""A case measured again, in words: what differs between then and now, and how much the figures changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from speechmeter.analysis.compare import Verdict
from speechmeter.report.numbers import counted, number

_ALIKE = "the environment is the same in everything that is recorded"
_STATES = {
    "load_1min": ("load", "1"),
    "memory_available_bytes": ("free memory", "bytes"),
    "cpu_mhz": ("clock", "MHz"),
}


def environment_notes(differences: Sequence[str], then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Every difference in a line, and one for what never stays the same."""
    count = f"{counted(len(differences), 'difference')} between the environments, BASE is the run:"
    state = "; ".join(_states(then, now))
    return [*([count, *differences] if differences else [_ALIKE]), *([f"at the time: {state}"] if state else [])]


def _states(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, (word, unit) in _STATES.items():
        if then.get(name) is not None and now.get(name) is not None:
            yield f"{word} {number(then[name], unit)} in BASE, {number(now[name], unit)} in NEW"


def ratios(verdicts: Sequence[Verdict]) -> str:
    """`NEW / BASE: latency 1.106, flops 1.000`; empty where there is none."""
    found = [f"{v.metric.name} {v.ratio:.3f}" for v in verdicts if v.ratio is not None]
    return f"NEW / BASE: {', '.join(found)}" if found else ""
