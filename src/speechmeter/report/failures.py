"""Cases that failed, in lines: what a reader must know before any figure."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.warnings import in_words
from speechmeter.core.types import FAILED, Record
from speechmeter.report.grids import case_labels
from speechmeter.report.tables import by_case

_MOST = 10
"""So many reasons are listed; a grid that fails often fails alike."""


def failure_lines(records: Sequence[Record]) -> list[str]:
    """A line for each reason, with the cases that it is about and how many of their rounds failed."""
    labels = case_labels(records)
    cases: dict[tuple[str, str], list[str]] = {}
    for case_id, group in by_case(records).items():
        failed = [record for record in group if record.status in FAILED]
        for reason in dict.fromkeys(f"{record.status}: {record.reason}" for record in failed):
            rounds = "" if len(failed) == len(group) == 1 else in_words(group).partition(":")[0]
            cases.setdefault((rounds, reason), []).append(labels[case_id])
    lines = []
    for (rounds, reason), names in cases.items():
        some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        lines.append(f"failed: {some}: {f'{rounds}, ' if rounds else ''}{reason}")
    return lines[:_MOST] + ([f"and {len(lines) - _MOST} more reasons"] if len(lines) > _MOST else [])
