"""Why conversations of a case have no value of a live metric: withheld for a reason, or no answer came."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from speechmeter.analysis.live.measure import MISSING, WITHHELD
from speechmeter.analysis.live.samples import POOLED, names_of
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record

_COUNTED = re.compile(r"(.*) \((\d+) of (\d+)\)")


def withheld(records: Sequence[Record], metric: Metric) -> list[tuple[str, int, int]]:
    """(reason, conversations without a value for it, all conversations) over all rounds of a case."""
    counts: Counter[str] = Counter()
    for record in records:
        found = record.find(metric.id)
        for line in () if found is None else found.notes.get(WITHHELD, ()):
            match = _COUNTED.fullmatch(line)
            if match is not None:
                counts[match[1]] += int(match[2])
    held = sum(len(names_of(record)) for record in records)
    return [(reason, count, held) for reason, count in counts.items()]


def unanswered(records: Sequence[Record], metric: Metric) -> int:
    """Conversations in which an answer was awaited in vain.

    Of a ratio these are the ones that failed or have no final text: they count in it.
    """
    found = [m for record in records if (m := record.find(metric.id)) is not None]
    missing = sum(len(m.notes.get(MISSING, ())) for m in found)
    if missing or metric.combined != POOLED or not found:
        return missing
    answers = [m for record in records if (m := record.find(metrics.LIVE_ANSWERED.id)) is not None]
    return sum(one == 0 for m in answers for one in m.values)


def outdated(records: Sequence[Record], metric: Metric) -> bool:
    """Whether a round holds the figure by an earlier definition alone."""
    return any(
        record.find(metric.id) is None and any(m.metric.rpartition(".")[0] == metric.name for m in record.measurements)
        for record in records
    )


def outdated_note(records: Sequence[Record], shown: Sequence[Metric]) -> str:
    """Which of these metrics were made by an earlier definition, and what to type; empty where none was."""
    old = [metric.title for metric in shown if outdated(records, metric)]
    if not old:
        return ""
    return f"{', '.join(old)}: computed with an earlier definition; to compute it again: speechmeter recompute RUN"
