"""The answers of a study in words: large figures with their intervals, a sentence, and what cannot be told yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speechmeter.analysis.answers import answers
from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.frontier import Size
from speechmeter.analysis.live.resampling import LEAST_UTTERANCES
from speechmeter.analysis.quality import paired_difference
from speechmeter.analysis.settling import (
    MOST_ROUNDS,
    rounds_to_decide,
    rounds_to_separate,
    utterances_to_separate,
)
from speechmeter.analysis.study import Answer, best_of, shared
from speechmeter.analysis.tuned import state_of
from speechmeter.analysis.tuning_answer import answer_of
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.report.charts.findings import named
from speechmeter.report.large_figures import OF_ALL, Finding, at_size, finding_of, no_interval
from speechmeter.report.lines import failure_lines, summary
from speechmeter.report.sources import Source
from speechmeter.report.studies import settings_of, study_of
from speechmeter.report.tuning import answer_lines

MOST = 3
"""Large figures of a study."""
_MOST_LETTERS = 40
"""Of a name in a sentence."""
_MOST_DOUBTS = 2
_MOST_UTTERANCES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Top:
    """What the page says of a study first. `doubts` are what the intervals leave open, and what would settle it."""

    headline: str
    findings: tuple[Finding, ...] = ()
    doubts: tuple[str, ...] = ()


def top_of(source: Source) -> Top:
    """The answers of a study."""
    if not any(record.status == "ok" for record in source.records):
        held = summary(source.records)
        headline = f"Nothing was measured: {held}." if source.records else "There are no records yet."
        return Top(headline=headline, doubts=(*_left(source), *failure_lines(source.records)[:MOST]))
    if source.tuning is not None:
        lines = answer_lines(answer_of(state_of(source.records, source.tuning)))
        return Top(headline=f"{lines[0][:1].upper()}{lines[0][1:]}.", doubts=tuple(lines[1:]))
    found = answers(study_of(source))[:MOST]
    told = [finding_of(answer) for answer in found]
    doubts = [*dict.fromkeys(doubt for answer in found for doubt in _doubts(answer))]
    headline = _headline(found, told)
    if source.unfinished and headline:
        headline = f"Unfinished ({source.unfinished}): {headline}"
    return Top(headline=headline, findings=tuple(told), doubts=(*_left(source), *doubts[:_MOST_DOUBTS]))


def _left(source: Source) -> tuple[str, ...]:
    """That the run is unfinished, and what continues it."""
    again = "`speechmeter run --resume -o RUN` continues it."
    return (f"This run is unfinished: {source.unfinished}. {again}",) if source.unfinished else ()


def best_finding(source: Source, metric: Metric) -> Finding | None:
    """The best figure of one metric, at the size that most models share; None where no case has it."""
    usual = settings_of([record for record in source.records if record.status != "skipped"])
    found = next(best_of("best", shared(usual, metric), metric), None)
    return None if found is None else finding_of(found)


def _headline(found: Sequence[Answer], told: Sequence[Finding]) -> str:
    """One sentence: what is said of a name together, names one after another; and that a figure is of one round."""
    limits = [_limit(answer) for answer in found]
    one_limit = limits[0] if len(set(limits)) == 1 else ""
    clauses: dict[str, list[str]] = {}
    for answer, finding, limit in zip(found, told, limits, strict=True):
        name = "" if answer.rule in OF_ALL else named([_short(name) for name in answer.names])
        clauses.setdefault(name, []).append(f"{finding.clause}{'' if one_limit else limit}")
    text = "; ".join(f"{name} {_listed(own)}".strip() for name, own in clauses.items()) + one_limit
    text = text.replace(") (", "; ")
    if clauses and not next(iter(clauses)):
        text = f"{text[:1].upper()}{text[1:]}"
    return f"{text}." if text else ""


def _limit(answer: Answer) -> str:
    """` (one round)`: why the figure of an answer has no interval; empty where it has one, or needs none."""
    why = no_interval(answer)
    return f" ({why})" if why else ""


def _short(name: str) -> str:
    """The name without its middle where it is long: names often differ at their ends alone."""
    half = _MOST_LETTERS // 2
    return name if len(name) <= _MOST_LETTERS else f"{name[: half - 1]}…{name[-half:]}"


def _listed(clauses: Sequence[str]) -> str:
    """Clauses one after another; words that one begins with as the one before it are not repeated."""
    made: list[str] = []
    before: list[str] = []
    for clause in clauses:
        words = clause.split(" ")
        same = next((at for at, pair in enumerate(zip(words[:-1], before, strict=False)) if pair[0] != pair[1]), None)
        same = min(len(words) - 1, len(before)) if same is None else same
        if same:
            made[-1] += f" and {' '.join(words[same:])}"
        else:
            made.append(clause)
        before = words
    return " and ".join(filter(None, [", ".join(made[:-1]), made[-1]]))


def _doubts(answer: Answer) -> list[str]:
    """What the intervals of an answer leave open, and what would settle it."""
    found = answer.figure
    if isinstance(found, Size):
        return []
    bare = not answer.certain or bool(no_interval(answer))
    if bare and isinstance(found, Estimate) and found.is_resampled:
        return [f"Fewer than {LEAST_UTTERANCES} utterances have no interval, so small differences may be chance."]
    if bare and found.rounds == 1 and not found.metric.exact and answer.rule != "accuracy":
        return ["One round has no interval, so small differences may be chance. `--rounds 5` gives intervals."]
    if answer.rule == "too slow" and not answer.certain:
        return [
            _open(f"whether {_short(answer.names[0])} is faster than real time{at_size(answer)}", _to_decide(answer))
        ]
    if answer.rule in _MINOR and len(answer.names) == answer.of:
        return []
    if len(answer.names) > 1 and isinstance(found, Estimate):
        what = f"which of {named([_short(name) for name in answer.names])} {_SUPERLATIVE.get(answer.rule, 'is best')}"
        return [_open(what, _to_separate(answer))]
    return []


_MINOR = ("memory", "energy")
"""Rules whose answer may be that all are alike."""
_SUPERLATIVE = {
    "accuracy": "is most accurate", "fastest": "is fastest", "memory": "needs the least memory",
    "energy": "needs the least energy", "loss": "is fastest", "step": "is fastest", "module": "takes the largest share",
    "loss memory": "needs the least memory",
}  # fmt: skip


def _open(what: str, needed: str) -> str:
    return f"The intervals do not show {what}. {needed}".strip()


def _to_decide(answer: Answer) -> str:
    rtf = estimate(answer.rounds, metrics.RTF)
    return _rounds(rounds_to_decide(rtf, 1.0)) if rtf is not None else ""


def _to_separate(answer: Answer) -> str:
    """What would distinguish the best from the nearest of those that are close to it."""
    if not isinstance(answer.figure, Estimate) or not answer.close:
        return ""
    if answer.rule == "accuracy":
        pairs = [paired_difference(answer.rounds, other, answer.figure.metric).estimate for other in answer.close]
        needed = [n for pair in pairs if pair is not None and (n := utterances_to_separate(pair)) is not None]
        most = max(needed, default=_MOST_UTTERANCES)
        return f"About {most:,} utterances are needed." if most < _MOST_UTTERANCES else _ALIKE
    if answer.figure.is_resampled:
        return (
            "More utterances or rounds are needed. `speechmeter compare` can show smaller differences, "
            "because it compares the systems utterance by utterance."
        )
    others = [estimate(rounds, answer.figure.metric) for rounds in answer.close]
    counts = [rounds_to_separate(answer.figure, other) for other in others if other is not None]
    return _rounds(None if None in counts else max((n for n in counts if n is not None), default=None))


_ALIKE = "Treat them as equal."


def _rounds(count: int | None) -> str:
    if count is None:
        return f"More than {MOST_ROUNDS} rounds would be needed, so treat them as equal."
    return f"About {count} rounds are needed: `--rounds {count}`."
