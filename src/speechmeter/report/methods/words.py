"""What the sentences are made of: lists in words, rounds by case, and what is known of where they were taken."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from speechmeter.core.metrics import Metric
from speechmeter.core.printable import one_line
from speechmeter.core.types import LEFT_OUT, Record

Environments = Mapping[str, Mapping[str, Any]]
Groups = Sequence[Sequence[Record]]
"""The rounds of each case."""
Facts = Sequence[tuple[Record, Mapping[str, Any]]]
"""Each measured record with what is known of where it was taken, which may be nothing."""
_MOST_NAMED = 8
"""So many things are named one by one."""
_LONGEST = 160


def listed(words: Iterable[str], joint: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`, each once; a long list is cut and says so."""
    found = list(dict.fromkeys(words))
    if len(found) > _MOST_NAMED:
        found = [*found[: _MOST_NAMED - 1], f"{len(found) - _MOST_NAMED + 1} others"]
    return f" {joint} ".join(filter(None, [", ".join(found[:-1]), *found[-1:]]))


_ALWAYS = ("speechmeter", "torch", "transformers", "numpy", "scipy", "soundfile", "soxr", "triton", "onnxruntime")


def capital(text: str) -> str:
    """The text as the beginning of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def cut(text: str) -> str:
    """A reason that fits into a sentence."""
    return textwrap.shorten(one_line(text), _LONGEST, placeholder=" …")


def facts_of(records: Sequence[Record], environments: Environments) -> Facts:
    """The facts behind every record that was measured."""
    return [
        (record, environments.get(record.environment, {}).get("facts", {}))
        for record in records
        if record.status not in LEFT_OUT
    ]


def packages(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Versions by name; empty where none are known.

    Of all that was imported, those that a reader looks for: what nothing else requires, and what computes.
    """
    found, leading = facts.get("packages"), facts.get("leading_packages")
    if not isinstance(found, Mapping):
        return {}
    if not isinstance(leading, list):  # records of earlier versions name a few alone
        return found
    return {name: version for name, version in found.items() if name in _ALWAYS or name in leading}


def has_values(groups: Groups, metric: Metric) -> bool:
    """Whether some record holds a value of a metric, in any scope."""
    return any(m.metric == metric.id and m.values for group in groups for record in group for m in record.measurements)
