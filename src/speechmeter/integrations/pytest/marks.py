"""What a test asks for by `@pytest.mark.speechmeter(…)`: metrics to compare, the smallest effect, and limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import pytest

from speechmeter.analysis.limits import Limit, limit_named
from speechmeter.analysis.metric_names import metric_named
from speechmeter.api.comparing import share
from speechmeter.core import plugins
from speechmeter.core.errors import InputError

MARK = "speechmeter"
_KEYS = ("metric", "min_effect", "rounds")
_MISSPELT = 0.8
"""A key that resembles one of these so closely is a misspelling, not a limit."""
_WHERE = "@pytest.mark.speechmeter"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a check is judged by. `plan` are keys of a plan that the marker gave."""

    metrics: tuple[str, ...] = ("latency",)
    min_effect: float = 0.05
    limits: tuple[Limit, ...] = ()
    plan: Mapping[str, Any] = field(default_factory=dict)

    @property
    def meters(self) -> list[str]:
        """Latency, and the meters whose names the metrics begin with."""
        words = [*self.metrics, *(limit.name for limit in self.limits)]
        named = [word.partition("_")[0] for word in words]
        return list(dict.fromkeys(["latency", *(name for name in named if name in plugins.names(plugins.METERS))]))

    def check_metrics(self) -> None:
        """Raise InputError for a metric that no meter has; only a study that is made knows those of all its meters."""
        for name in self.metrics:
            metric_named(name, where=f"{_WHERE} metric")


def asked_by(marks: Iterable[pytest.Mark]) -> Asked:
    """What the markers of a test, its class and its file ask for, the nearest first. Raises InputError."""
    given: dict[str, Any] = {}
    for mark in marks:
        if mark.args:
            raise InputError(f"{mark.args[0]!r} needs a keyword", where=_WHERE, fix="such as min_effect='5%'")
        given = {**mark.kwargs, **given}
    named = given.get("metric", "latency")
    names = tuple(named) if isinstance(named, list | tuple) else (named,)
    limits = [_limit(key, value) for key, value in given.items() if key not in _KEYS]
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"metric must be a name or a list of names, not {named!r}", where=_WHERE, fix="such as metric='latency'"
        )
    return Asked(
        metrics=tuple(dict.fromkeys(names)),
        min_effect=share(given.get("min_effect", "5%"), where=f"{_WHERE} min_effect"),
        limits=tuple(limits),
        plan={"rounds": given["rounds"]} if "rounds" in given else {},
    )


def _limit(key: str, value: Any) -> Limit:
    if not key.startswith(("max_", "min_")) or get_close_matches(key, _KEYS, cutoff=_MISSPELT):
        fix = plugins.nearest(key, [*_KEYS, "max_latency_ms", "max_memory_mib", "max_rtf", "min_rtfx"])
        raise InputError(f"the marker has no option {key!r}", where=_WHERE, fix=fix)
    return limit_named(key, value, where=_WHERE)
