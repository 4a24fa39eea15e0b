"""Outputs against references, utterance by utterance: raw counts by jiwer and sacrebleu; rates are derived later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.quality import SPEAKERS, UTTERANCES
from speechmeter.core.types import Measurement
from speechmeter.meters.normalise import normaliser

_PACKAGES = {"wer": "jiwer", "cer": "jiwer", "bleu": "sacrebleu", "chrf": "sacrebleu"}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was made of one utterance, and what should have been."""

    name: str
    reference: str
    output: str
    speaker: str = ""


def missing(scores: Sequence[str]) -> str | None:
    """What these scores lack here and how to get it; None when all can be had."""
    absent = [package for package in dict.fromkeys(_PACKAGES[score] for score in scores) if find_spec(package) is None]
    return f"{absent[0]} is not installed: pip install 'speechmeter[quality]'" if absent else None


def score(
    answers: Sequence[Answer], scores: Sequence[str], normaliser_id: str, told: Sequence[str] = ()
) -> list[Measurement]:
    """One measurement a count, one value (or one row of values) an utterance. An empty output is all words deleted.

    `told` is what a table should say of the scores.
    """
    speakers = [answer.speaker for answer in answers]
    found = [
        Measurement.of(
            metrics.ANSWERED,
            [1.0 if answer.output.strip() else 0.0 for answer in answers],
            notes={
                UTTERANCES: [answer.name for answer in answers],
                **({SPEAKERS: speakers} if speakers and all(speakers) else {}),
                **({"notes": list(told)} if told else {}),
            },
        )
    ]
    if "wer" in scores or "cer" in scores:
        found += _errors(answers, scores, normaliser_id)
    if "bleu" in scores:
        found.append(_bleu(answers))
    if "chrf" in scores:
        found.append(_chrf(answers))
    return found


def _errors(answers: Sequence[Answer], scores: Sequence[str], normaliser_id: str) -> list[Measurement]:
    import jiwer

    rule = normaliser(normaliser_id)
    pairs = [(rule.apply(answer.reference), rule.apply(answer.output)) for answer in answers]
    notes = {"normaliser": rule.id}
    ways = {
        "wer": (jiwer.process_words, metrics.WORD_ERRORS, metrics.REFERENCE_WORDS),
        "cer": (jiwer.process_characters, metrics.CHARACTER_ERRORS, metrics.REFERENCE_CHARACTERS),
    }
    found = []
    for process, errors, size in (way for name, way in ways.items() if name in scores):
        counts = [process(reference, output) for reference, output in pairs]
        wrong = [float(c.substitutions + c.deletions + c.insertions) for c in counts]
        total = [float(c.hits + c.substitutions + c.deletions) for c in counts]
        found += [Measurement.of(errors, wrong, source="jiwer", notes=notes), Measurement.of(size, total, notes=notes)]
    return found


def _bleu(answers: Sequence[Answer]) -> Measurement:
    from sacrebleu.metrics import BLEU

    return _statistics(BLEU(), metrics.BLEU_STATISTICS, answers)


def _chrf(answers: Sequence[Answer]) -> Measurement:
    from sacrebleu.metrics import CHRF

    return _statistics(CHRF(), metrics.CHRF_STATISTICS, answers)


def _statistics(scorer: Any, metric: metrics.Metric, answers: Sequence[Answer]) -> Measurement:
    """sacrebleu's sufficient statistics, row after row; they add over utterances, and a score follows from sums."""
    outputs, references = [answer.output for answer in answers], [answer.reference for answer in answers]
    scorer.corpus_score(outputs, [references])  # the signature is not known before a score
    rows = scorer._extract_corpus_statistics(outputs, [references])
    values = [float(value) for row in rows for value in row]
    return Measurement.of(metric, values, source="sacrebleu", notes={"signature": str(scorer.get_signature())})
