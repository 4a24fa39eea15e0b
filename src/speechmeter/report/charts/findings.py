"""What a chart found, in the words of its title, as far as the intervals allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from speechmeter.analysis.estimate import Estimate
from speechmeter.analysis.leading import Lead, lead
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.report.numbers import figure

_FAST = (metrics.LATENCY, metrics.RTF, metrics.RTFX)
_MOST_NAMED = 3
ONE_ROUND = " (one round)"


def named(names: Sequence[str], most: int = _MOST_NAMED) -> str:
    """`a`, `a and b`, `a, b and c`, `a, b and 4 others`."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} others"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def superlative(metric: Metric) -> str:
    """`is fastest`, `has the lowest peak memory`: what is said of the best figure of a metric."""
    if metric in _FAST:
        return "is fastest"
    return f"has the {'highest' if metric.direction == 'higher' else 'lowest'} {metric.title}"


def best_words(figures: Mapping[str, Estimate]) -> str:
    """Which of the names has the best figure; empty for fewer than two."""
    found = lead(figures)
    if found is None:
        return ""
    if len({one.value for one in figures.values()}) == 1:
        metric = found.figure.metric
        every = "Both" if len(figures) == 2 else f"All {len(figures)}"
        return f"{every} have the same {metric.title}: {figure(found.figure)}"
    return _words(found)


def _words(found: Lead) -> str:
    metric = found.figure.metric
    if found.close:
        verb = superlative(metric).replace("is ", "are ", 1).replace("has ", "have ", 1)
        reason = "their intervals overlap" if found.figure.low is not None else "their values are equal"
        return f"{named([found.best, *found.close])} {verb}: {reason}"
    rounds = "" if found.certain else ONE_ROUND if found.figure.rounds == 1 else " (some without interval)"
    return f"{found.best} {superlative(metric)}{rounds}: {figure(found.figure)}"


def in_all(leads: Sequence[Lead | None]) -> tuple[str, str]:
    """(who leads in all comparisons, what limits that: ` (one round)`); empty where nobody does, or it is not shown."""
    known = [one for one in leads if one is not None]
    names = {one.best for one in known}
    if len(names) != 1 or len(known) < len(leads) or any(one.close for one in known):
        return "", ""
    if all(one.certain for one in known):
        return known[0].best, ""
    return (known[0].best, ONE_ROUND) if all(one.figure.rounds == 1 for one in known) else ("", "")


def headline(finding: str, what: str) -> str:
    """A title: the finding and what is shown, or that alone."""
    start = f"{what[:1].upper()}{what[1:]}"
    return f"{finding}. {start}" if finding else start
