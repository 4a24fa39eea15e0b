"""What was found for one figure of a test, and what becomes of the test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Literal

from speechmeter.analysis.compare import Verdict
from speechmeter.analysis.derived import why_absent
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.limits import Judgement, Limit
from speechmeter.core import plugins
from speechmeter.core.errors import DeviceError, SpeechmeterError, UnavailableError
from speechmeter.core.metrics import Metric
from speechmeter.core.types import FAILED, Record
from speechmeter.report.numbers import figure, number

Outcome = Literal["passed", "failed", "undecided"]


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
    """A comparison with the baseline: a regression fails, what cannot be told is undecided."""
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
    """A figure that nobody judges; the word says why not."""
    found = estimate(records, metric)
    shown = figure(found) if found else "–"
    return Finding(case=records[0].case.label, metric=metric.name, figure=shown, word=word)


def of_limit(records: Sequence[Record], limit: Limit, metric: Metric) -> Finding:
    """A figure beside a limit: the interval beyond it fails, one that crosses it is undecided."""
    case, found = records[0].case, estimate(records, metric)
    if found is None:
        reason = f"{limit.key}: {_why_none(records, metric)}"
        return Finding(case=case.label, metric=limit.name, word="NO FIGURE", outcome="undecided", reason=reason)
    judged = limit.judge(found)
    reason = "" if judged != "undecided" else "its interval crosses the limit" if found.low is not None else _SINGLE
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
_NOT_ASKED = "it was not measured; name its meter with meters=[…]"
_SINGLE = "a single round has no interval; ask for more rounds"


def _why_none(records: Sequence[Record], metric: Metric) -> str:
    """What the records say of the metric, or of the first one of its meter: there a meter tells that it has nothing."""
    meters = [plugins.meter(name) for name in records[0].case.meters]
    asked = [meter for meter in meters if metric in meter.metrics]
    sources = [metric, *(meter.metrics[0] for meter in asked)]
    reasons = (why for source in sources for record in records if (why := why_absent(record, source)))
    return next(reasons, f"the meter {asked[0].name} gave none" if asked else _NOT_ASKED)


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
    """Something that was refused before it was measured: what this machine does not have is no fault of the test."""
    if isinstance(error, UnavailableError | DeviceError):
        return Finding(case=case, word="UNAVAILABLE", outcome="undecided", reason=told(error))
    return Finding(case=case, word="REFUSED", outcome="failed", reason=told(error))


def told(error: SpeechmeterError) -> str:
    """An error with options of the command line as a test suite has them."""
    text = str(error)
    for option, here in _OPTIONS.items():
        text = text.replace(option, here)
    return text


_OPTIONS = {
    "--baseline-python": "--speechmeter-baseline-python",
    "add --allow-different": "make a new baseline with --speechmeter-update-baseline",
}


def overall(findings: Sequence[Finding]) -> Outcome:
    """Failed if any failed; else undecided if any is; else passed."""
    outcomes = {finding.outcome for finding in findings}
    return "failed" if "failed" in outcomes else "undecided" if "undecided" in outcomes else "passed"
