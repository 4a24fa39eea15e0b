"""Lines that commands print beside tables: how cases ended, what an example costs, what differs on a rerun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from speechmeter.analysis.compare import Verdict
from speechmeter.analysis.derived import why_absent
from speechmeter.analysis.estimate import estimate, mean_of_calls
from speechmeter.analysis.readings import part_names
from speechmeter.analysis.utterances import by_utterance
from speechmeter.analysis.warnings import in_words
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import PART, Scope
from speechmeter.core.types import FAILED, Record
from speechmeter.report.labels import labelled
from speechmeter.report.numbers import counted, number

_MOST_REASONS = 10
_EXAMPLE_FIGURES = {"run time": metrics.LATENCY, "memory": metrics.MEMORY_NEEDED, "FLOPs": metrics.FLOPS}
_STATES = {
    "load_1min": ("load", "1"),
    "memory_available_bytes": ("free memory", "bytes"),
    "cpu_mhz": ("clock", "MHz"),
}


_HEADLINES = (metrics.LATENCY, metrics.FLOPS, metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CUDA_ALLOCATED)
"""The first of these that a record has is shown while a run goes on."""


def outcome(record: Record) -> str:
    """How a record ended, in a few words: its first figure, or its status and reason."""
    if record.status != "ok":
        return f"{record.status}: {record.reason}"
    found = [figure for metric in _HEADLINES if (figure := estimate([record], metric)) is not None]
    if not found:
        return "ok"
    shown = number(found[0].value, found[0].metric.unit)
    rtf = estimate([record], metrics.RTF)
    return shown if rtf is None else f"{shown}, RTF {number(rtf.value, '1')}"


def summary(records: Sequence[Record]) -> str:
    """One line on how the cases ended: `15 ok, 1 oom`."""
    counts: dict[str, int] = {}
    for record in records:
        counts[record.status] = counts.get(record.status, 0) + 1
    return ", ".join(f"{count:,} {status}" for status, count in counts.items()) or "no records"


_ADVICE = {
    "oom": "out of memory: use a smaller batch or shorter audio, or raise the limit with --set limits.memory_gib=…",
    "timeout": "timeout: raise the limit with --set limits.time_s=…, or use a smaller batch or shorter audio",
}
"""What helps against a failure that is not the model's own."""


def failure_lines(records: Sequence[Record]) -> list[str]:
    """A line for each reason, with its cases and how many of their rounds failed; then what helps."""
    cases: dict[tuple[str, str], list[str]] = {}
    for name, group in labelled(records):
        failed = [record for record in group if record.status in FAILED]
        for reason in dict.fromkeys(f"{record.status}: {record.reason}" for record in failed):
            rounds = "" if len(failed) == len(group) == 1 else in_words(group).partition(":")[0]
            cases.setdefault((rounds, reason), []).append(name)
    lines = []
    for (rounds, reason), names in cases.items():
        some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        lines.append(f"failed: {some}: {f'{rounds}, ' if rounds else ''}{reason}")
    more = [f"and {len(lines) - _MOST_REASONS} more reasons"] if len(lines) > _MOST_REASONS else []
    statuses = {record.status for record in records}
    return lines[:_MOST_REASONS] + more + [text for status, text in _ADVICE.items() if status in statuses]


def example_lines(records: Sequence[Record]) -> list[str]:
    """What an example costs on average, of each cascade and each dataset with one utterance a call.

    A line for each model of the cascade and one for the total. Times and FLOPs add up to the total; memory is that of
    the model which needs most.
    """
    lines = []
    for label, group in labelled(records):
        parts = part_names(group)
        examples = len(by_utterance(group, metrics.LATENCY))
        if mean_of_calls(group, metrics.LATENCY, "total") is None or not (parts or examples > 1):
            continue
        lines.append(f"{label}: mean over {f'{examples} examples' if examples > 1 else 'all calls'}")
        for name, scope in {**{part: Scope.of(PART, part) for part in parts}, "total": "total"}.items():
            figures = {word: _mean(group, metric, scope) for word, metric in _EXAMPLE_FIGURES.items()}
            if scope == "total":
                figures["peak of the process"] = _mean(group, metrics.MEMORY_CPU_TOTAL, scope, absent="")
            lines.append(f"  {name}: " + ", ".join(f"{word} {text}" for word, text in figures.items() if text))
    return lines


def _mean(group: Sequence[Record], metric: Metric, scope: str, absent: str = "unavailable") -> str:
    """The mean over calls as text; `absent` where a record has a reason for its absence, else empty."""
    found = estimate(group, metric, scope) if metric == metrics.MEMORY_NEEDED else mean_of_calls(group, metric, scope)
    if found is not None:
        return number(found.value, found.metric.unit)
    return absent if any(why_absent(record, metric, scope) for record in group) else ""


def environment_notes(differences: Sequence[str], then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """A line for each difference between the environments of a run and its rerun, and one for what always changes."""
    if differences:
        lines = [f"{counted(len(differences), 'difference')} between the environments (BASE is the run):", *differences]
    else:
        lines = ["the environments are the same, as far as they are recorded"]
    states = [
        f"{word} {number(then[name], unit)} in BASE, {number(now[name], unit)} in NEW"
        for name, (word, unit) in _STATES.items()
        if then.get(name) is not None and now.get(name) is not None
    ]
    return [*lines, *([f"at the time: {'; '.join(states)}"] if states else [])]


def ratios(verdicts: Sequence[Verdict]) -> str:
    """`NEW / BASE: latency 1.106, flops 1.000`; empty where there is none."""
    found = [f"{v.metric.name} {v.ratio:.3f}" for v in verdicts if v.ratio is not None]
    return f"NEW / BASE: {', '.join(found)}" if found else ""
