"""What a measurement means for its test: failed cases, limits of the marker, and the comparison with the baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.metric_names import find_metric, metric_named
from speechmeter.api.comparing import Selection, compare, select
from speechmeter.core.errors import SpeechmeterError
from speechmeter.core.hosts import HOST
from speechmeter.core.metrics import OTHER_BUSY
from speechmeter.core.types import BASELINE, VARIANT, Record
from speechmeter.integrations.pytest.findings import Finding, of_failure, of_figure, of_limit, of_verdict, told
from speechmeter.integrations.pytest.marks import Asked
from speechmeter.integrations.pytest.settings import Settings
from speechmeter.launch.executors import THIS

_BUSY = 0.10
_NO_BASELINE = "no baseline to compare with; name one with --speechmeter-baseline RUN, or mark the test with a limit"


Judge = Callable[[Path, Settings, Asked], Iterator[Finding]]
"""From a run, the settings and what is asked for to the findings."""


def figures_of(part: Path, settings: Settings, asked: Asked) -> Iterator[Finding]:
    """The figures of the metrics that were asked for and of the meters, without a judgement; failed cases too."""
    for group in _measured(part, settings).groups:
        failure = of_failure(group)
        if failure is not None:
            yield failure
        else:
            names = dict.fromkeys([*asked.metrics, *group[0].case.meters])
            known = dict.fromkeys(filter(None, (find_metric(name, group) for name in names)))
            yield from (of_figure(group, metric, "MEASURED") for metric in known if estimate(group, metric) is not None)


def findings_of(part: Path, settings: Settings, asked: Asked) -> Iterator[Finding]:
    """One for each failed case, limit and comparison."""
    new = _measured(part, settings)
    for group in new.groups:
        failure = of_failure(group)
        if failure is not None:
            yield failure
        else:
            yield from (of_limit(group, limit, metric_named(limit.name, group)) for limit in asked.limits)
            yield from _against_baseline(part, replace(new, groups=(group,)), settings, asked)


def _measured(part: Path, settings: Settings) -> Selection:
    return select(f"{part}@{VARIANT}={THIS}" if settings.baseline_python else str(part))


def _against_baseline(part: Path, new: Selection, settings: Settings, asked: Asked) -> Iterator[Finding]:
    group = new.groups[0]
    if settings.update_baseline:
        yield from _unjudged(group, asked, "NEW BASELINE")
        return
    if asked.limits and settings.baseline is None and settings.baseline_python is None:
        return
    try:
        base = _baseline(part, new, settings)
        found = compare(base, new, dict.fromkeys(asked.metrics, asked.min_effect), allow_missing=True)
    except SpeechmeterError as error:
        rows = _unjudged(group, asked, "NOT COMPARED")
        yield from (replace(row, outcome="undecided", reason=told(error)) for row in rows)
        return
    doubt = _disturbed(base, new)
    for one in found.verdicts:
        finding = of_verdict(one)
        doubtful = doubt and not one.paired and not one.metric.exact and one.word != "SAME"
        yield replace(finding, reason="; ".join(filter(None, [finding.reason, doubt]))) if doubtful else finding


def _unjudged(group: Sequence[Record], asked: Asked, word: str) -> list[Finding]:
    return [of_figure(group, metric_named(name, group), word) for name in asked.metrics]


def _disturbed(base: Selection, new: Selection) -> str:
    """That the machine was busy otherwise, so that two sessions may differ by that alone; empty where it was not."""
    old, fresh = (_others(side) for side in (base, new))
    if max(old, fresh) <= _BUSY:
        return ""
    return (
        f"other processes used {fresh:.0%} of the cores, {old:.0%} in the baseline: measure on a quiet machine, "
        "or side by side with --speechmeter-baseline-python"
    )


def _others(side: Selection) -> float:
    """The share of the cores that others used, in the middle round; 0 where nobody knows."""
    found = [m.values[0] for group in side.groups for r in group if (m := r.find(OTHER_BUSY.id)) and m.values]
    return median(found) if found else 0.0


def _baseline(part: Path, new: Selection, settings: Settings) -> Selection:
    """The rounds of this very subject on the other side. Raises SpeechmeterError where there are none."""
    if settings.baseline_python:
        return select(f"{part}@{VARIANT}={BASELINE}")
    if settings.baseline is None:
        raise SpeechmeterError(_NO_BASELINE)
    if not settings.baseline.exists():
        raise SpeechmeterError(f"{settings.baseline} is not there yet; make it with --speechmeter-update-baseline")
    this = new.groups[0][0]
    base = select(str(settings.baseline))
    hosts = {group[0].host for group in base.groups}
    if len(hosts) > 1 and this.host in hosts:
        base = select(f"{settings.baseline}@{HOST}={this.host}")
    known = tuple(group for group in base.groups if group[0].case.subject == this.case.subject)
    if not known:
        raise SpeechmeterError(f"{settings.baseline} has no such case; add it with --speechmeter-update-baseline")
    return replace(base, groups=known)
