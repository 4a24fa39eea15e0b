"""Rounds of a case that were tried and did not finish: how many, and in which way."""

from __future__ import annotations

import re
from collections.abc import Sequence

from speechmeter.core.types import FAILED, Record

_NAMED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b|SIG[A-Z]+\b")
"""What tells one error or crash from another: the exception's name, or the signal's."""


def kind_of(record: Record) -> str:
    """`timeout`, `oom`, `error (ValueError)`, `crashed (SIGSEGV)`; empty where the round did not fail."""
    if record.status not in FAILED:
        return ""
    named = _NAMED.search(record.reason) if record.status in ("error", "crashed") else None
    return f"{record.status} ({named.group()})" if named else record.status


def failed_rounds(records: Sequence[Record]) -> dict[str, int]:
    """Kind of failure → rounds that ended with it."""
    found: dict[str, int] = {}
    for kind in filter(None, map(kind_of, records)):
        found[kind] = found.get(kind, 0) + 1
    return found


def in_words(records: Sequence[Record]) -> str:
    """`3 of 8 rounds failed: timeout`; empty where none did."""
    found = failed_rounds(records)
    return f"{sum(found.values())} of {len(records)} rounds failed: {', '.join(found)}" if found else ""
