"""What a measurement means for its test: failed cases, limits of the marker, and the comparison with the baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Literal

from speechmeter.analysis.compare import Verdict
from speechmeter.analysis.derived import why_absent
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.limits import Judgement, Limit
from speechmeter.analysis.metric_names import find_metric, metric_named
from speechmeter.api.comparing import Selection, compare, select
from speechmeter.core import plugins
from speechmeter.core.errors import DeviceError, SpeechmeterError, UnavailableError, as_python
from speechmeter.core.hosts import HOST
from speechmeter.core.metrics import OTHER_BUSY, Metric
from speechmeter.core.types import BASELINE, FAILED, VARIANT, Record
from speechmeter.integrations.pytest.marks import Asked
from speechmeter.integrations.pytest.settings import Settings
from speechmeter.launch.executors import THIS
from speechmeter.report.numbers import figure, number

Outcome = Literal["passed", "failed", "undecided"]
_BUSY = 0.10
_NO_BASELINE = (
    "there is no baseline to compare with; set one with --speechmeter-baseline RUN, or mark the test with a limit"
)


Judge = Callable[[Path, Settings, Asked], Iterator["Finding"]]
"""Makes findings of a run, the settings and what the marker asks for."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A row of the summary: texts alone, so that a worker can send it."""

    case: str
    metric: str = ""
    figure: str = "–"
    against: str = "–"
    word: str
    outcome: Outcome = "passed"
    reason: str = ""

    def row(self) -> list[str]:
        """As plain data, in the order of the fields."""
        return [str(text) for text in astuple(self)]

    def line(self) -> str:
        """In a sentence, for the reason of a failure or a skip."""
        figures = " against ".join(text for text in (self.figure, self.against) if text != "–")
        parts = [" ".join(filter(None, [self.case, self.metric, self.word])), figures, self.reason]
        return ": ".join(part for part in parts if part)


def of_verdict(found: Verdict) -> Finding:
    """A comparison with the baseline: a regression fails, and CANNOT TELL is undecided."""
    open_ = found.word == "CANNOT TELL" or (found.corrected and found.tails is not None and found.tails[0] < 0.5)
    outcome: Outcome = "failed" if found.regression else "undecided" if open_ else "passed"
    bounds = f" ({found.low:.3f} to {found.high:.3f})" if found.low is not None and found.high is not None else ""
    return Finding(
        case=found.case.label,
        metric=found.metric.name,
        figure=figure(found.new) if found.new else "–",
        against=(figure(found.base) if found.base else "–")
        + (f", ratio {found.ratio:.3f}{bounds}" if found.ratio is not None else ""),
        word=found.text,
        outcome=outcome,
        reason=found.reason,
    )


def of_figure(records: Sequence[Record], metric: Metric, word: str) -> Finding:
    """A figure without a judgement; the word says why."""
    found = estimate(records, metric)
    shown = figure(found) if found else "–"
    return Finding(case=records[0].case.label, metric=metric.name, figure=shown, word=word)


def of_limit(records: Sequence[Record], limit: Limit, metric: Metric) -> Finding:
    """A figure beside a limit: the interval beyond it fails, one that crosses it is undecided."""
    case, found = records[0].case, estimate(records, metric)
    if found is None:
        reason = f"{limit.key}: {_why_none(records, metric)}"
        return Finding(case=case.label, metric=limit.name, word="NO VALUE", outcome="undecided", reason=reason)
    judged = limit.judge(found)
    reason = "" if judged != "undecided" else "the limit is inside the interval" if found.low is not None else _SINGLE
    return Finding(
        case=case.label,
        metric=found.metric.name,
        figure=figure(found),
        against=f"{'at most' if limit.is_most else 'at least'} {number(limit.value, found.metric.unit)}",
        word=_WORDS[judged][0],
        outcome=_WORDS[judged][1],
        reason=reason,
    )


_WORDS: dict[Judgement, tuple[str, Outcome]] = {
    "within": ("WITHIN", "passed"),
    "beyond": ("BEYOND", "failed"),
    "undecided": ("CANNOT TELL", "undecided"),
}
_NOT_ASKED = "it was not measured; add its meter with meters=[…]"
_SINGLE = "a single round has no interval; use more rounds"


def _why_none(records: Sequence[Record], metric: Metric) -> str:
    """What the records say of the metric, or of the first one of its meter, which holds the reason for all."""
    meters = [plugins.meter(name) for name in records[0].case.meters]
    asked = [meter for meter in meters if metric in meter.metrics]
    sources = [metric, *(meter.metrics[0] for meter in asked)]
    reasons = (why for source in sources for record in records if (why := why_absent(record, source)))
    return next(reasons, f"the meter {asked[0].name} returned no value" if asked else _NOT_ASKED)


def of_failure(records: Sequence[Record]) -> Finding | None:
    """A case of which a round was tried and did not finish, or could not be tried; None for one that was measured."""
    unmeasured = [record for record in records if record.status != "ok"]
    if not unmeasured:
        return None
    failed = [record for record in unmeasured if record.status in FAILED]
    first = (failed or unmeasured)[0]
    return Finding(
        case=first.case.label,
        word=first.status.upper(),
        outcome="failed" if failed else "undecided",
        reason=first.reason,
    )


def of_error(case: str, error: SpeechmeterError) -> Finding:
    """Something that was refused before it was measured. The test is not at fault if this machine lacks something."""
    if isinstance(error, UnavailableError | DeviceError):
        return Finding(case=case, word="UNAVAILABLE", outcome="undecided", reason=error.message(as_in_tests))
    return Finding(case=case, word="REFUSED", outcome="failed", reason=error.message(as_in_tests))


def as_in_tests(key: str, value: str) -> str:
    """How a key of a message is typed in a test suite: an option of pytest, or an argument of `check`."""
    if key == "allow_different":  # a test compares with its baseline or not at all
        return "a new baseline with --speechmeter-update-baseline"
    return "--speechmeter-baseline-python" if key == "baseline_python" else as_python(key, value)


def overall(findings: Sequence[Finding]) -> Outcome:
    """Failed if any failed; else undecided if any is; else passed."""
    outcomes = {finding.outcome for finding in findings}
    return "failed" if "failed" in outcomes else "undecided" if "undecided" in outcomes else "passed"


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
        yield from (replace(row, outcome="undecided", reason=error.message(as_in_tests)) for row in rows)
        return
    old, fresh = (_others(side) for side in (base, new))
    doubt = ""
    if max(old, fresh) > _BUSY:  # which alone may make two sessions differ
        doubt = (
            f"other processes used {fresh:.0%} of the cores, compared with {old:.0%} in the baseline: "
            "measure on a quiet machine, "
            "or side by side with --speechmeter-baseline-python"
        )
    for one in found.verdicts:
        finding = of_verdict(one)
        doubtful = doubt and not one.paired and not one.metric.exact and one.word != "SAME"
        yield replace(finding, reason="; ".join(filter(None, [finding.reason, doubt]))) if doubtful else finding


def _unjudged(group: Sequence[Record], asked: Asked, word: str) -> list[Finding]:
    return [of_figure(group, metric_named(name, group), word) for name in asked.metrics]


def _others(side: Selection) -> float:
    """The share of the cores that other programs used, median over rounds; 0 where it is not known."""
    found = [m.values[0] for group in side.groups for r in group if (m := r.find(OTHER_BUSY.id)) and m.values]
    return median(found) if found else 0.0


def _baseline(part: Path, new: Selection, settings: Settings) -> Selection:
    """The rounds of the same subject in the baseline. Raises SpeechmeterError where there are none."""
    if settings.baseline_python:
        return select(f"{part}@{VARIANT}={BASELINE}")
    if settings.baseline is None:
        raise SpeechmeterError(_NO_BASELINE)
    if not settings.baseline.exists():
        raise SpeechmeterError(
            f"the baseline {settings.baseline} does not exist yet; make it with --speechmeter-update-baseline"
        )
    this = new.groups[0][0]
    base = select(str(settings.baseline))
    hosts = {group[0].host for group in base.groups}
    if len(hosts) > 1 and this.host in hosts:
        base = select(f"{settings.baseline}@{HOST}={this.host}")
    known = tuple(group for group in base.groups if group[0].case.subject == this.case.subject)
    if not known:
        raise SpeechmeterError(f"{settings.baseline} has no such case; add it with --speechmeter-update-baseline")
    return replace(base, groups=known)
