"""Quality of a model's outputs: counts of one pass outside every clock, or scores that were taken elsewhere.

The counts are raw, utterance by utterance, by jiwer and sacrebleu; rates are derived later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.machine import other_interpreter
from speechmeter.core.normalise import normaliser
from speechmeter.core.outputs import Output
from speechmeter.core.protocols import Meter, Session
from speechmeter.core.quality import (
    IMPORTED,
    OPEN_ASR,
    QUALITY,
    SPEAKERS,
    UTTERANCES,
    ScoreRow,
    quality_of,
    read_scores,
    score_for,
)
from speechmeter.core.types import Batch, Case, Measurement
from speechmeter.meters import open_asr

_IMPORTED = {"wer": metrics.WER, "cer": metrics.CER, "bleu": metrics.BLEU, "chrf": metrics.CHRF}
_COUNTING = "jiwer"
_GAPS = re.compile(r"\s\s+")
_PACKAGES = {"wer": _COUNTING, "cer": _COUNTING, "bleu": "sacrebleu", "chrf": "sacrebleu"}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was made of one utterance, and what should have been."""

    name: str
    reference: str
    output: str
    speaker: str = ""


class QualityMeter(Meter):
    """Counts of errors against the workload's references, utterance by utterance; or imported scores."""

    name = QUALITY
    metrics = (
        metrics.ANSWERED,
        metrics.WORD_ERRORS,
        metrics.REFERENCE_WORDS,
        metrics.WORD_ERRORS_OPEN_ASR,
        metrics.REFERENCE_WORDS_OPEN_ASR,
        metrics.CHARACTER_ERRORS,
        metrics.REFERENCE_CHARACTERS,
        metrics.BLEU_STATISTICS,
        metrics.CHRF_STATISTICS,
        *_IMPORTED.values(),
    )

    def unavailable(self, case: Case) -> str | None:
        """Needs the scorer's package; imported scores need a row about the case."""
        path = _import_path(case)
        if path is None:
            return missing(quality_of(case.protocol.quality, case.workload.plugin)[1])
        try:
            row = _row(case, path)
        except InputError as error:
            return str(error)
        return None if row is not None else f"{path} has no row for {case.subject.name} for this input size and batch"

    def measure(self, session: Session) -> list[Measurement]:
        """Raw counts, in the first round alone; the reason where outputs cannot be scored."""
        path = _import_path(session.case)
        row = _row(session.case, path) if path is not None else None
        if row is not None:
            return _imported(row, str(path))
        normaliser_id, scores = quality_of(session.case.protocol.quality, session.case.workload.plugin)
        batches = session.all_batches
        if not any(batch.references for batch in batches):
            return [Measurement.absent(metrics.ANSWERED, "the workload has no references to score against")]
        answers = answers_of(batches, session.outputs())
        if isinstance(answers, str):
            return [Measurement.absent(metrics.ANSWERED, answers)]
        total = sum(batch.items for batch in batches)
        without = sum(batch.items for batch in batches if not batch.references)
        alone = all(batch.items == 1 for batch in batches)
        why = "they have no reference" if alone else "a reference is missing in their batch"
        notes = [f"{without} of {total} utterances are not scored: {why}"] if without else []
        return score(answers, scores, normaliser_id, notes=notes)


def answers_of(batches: Sequence[Batch], outputs: Sequence[Output]) -> list[Answer] | str:
    """References and outputs side by side, utterances without a reference left out; or why there are none."""
    if not any(output.is_text for output in outputs):
        if any(output.lines for output in outputs):
            return "the model's output is token ids, not text, so it cannot be scored"
        if any(output.speech for output in outputs):
            return "the model's output is sound, not text, so it cannot be scored"
        return "the model's output is not text, so it cannot be scored"
    found: list[Answer] = []
    for batch, output in zip(batches, outputs, strict=True):
        lines = (" ".join(output.lines),) if batch.items == 1 else output.lines or ("",) * batch.items
        if len(lines) != batch.items:
            return f"the model gave {len(lines)} texts for {batch.items} items"
        names = batch.ids or tuple(map(str, range(len(found), len(found) + batch.items)))
        speakers = batch.speakers or ("",) * batch.items
        found += [
            Answer(name=name, reference=reference, output=line, speaker=speaker)
            for name, reference, line, speaker in zip(names, batch.references, lines, speakers, strict=False)
        ]
    return found


def _import_path(case: Case) -> Path | None:
    asked = case.protocol.quality
    return None if asked is None or asked.import_ is None else Path(asked.import_)


def _row(case: Case, path: Path) -> ScoreRow | None:
    return score_for(read_scores(path), case.subject.name, {**case.axes, "workload": case.workload.name})


def _imported(row: ScoreRow, path: str) -> list[Measurement]:
    return [
        Measurement.of(
            _IMPORTED[name],
            [found.value],
            source=IMPORTED,
            notes={"file": path, **({} if found.low is None else {"low": found.low, "high": found.high})},
        )
        for name, found in row.scores.items()
    ]


def missing(scores: Sequence[str]) -> str | None:
    """What these scores lack here and how to install it; None when all can be computed.

    In the environment of another interpreter errors are counted without jiwer.
    """
    other = other_interpreter()
    packages = dict.fromkeys(_PACKAGES[score] for score in scores if score in _PACKAGES)
    absent = [one for one in packages if find_spec(one) is None and (one != _COUNTING or other is None)]
    if absent:
        install = "pip install 'speechmeter[quality]'" if other is None else f"{other} -m pip install {absent[0]}"
        return f"{absent[0]} is not installed: {install}"
    return open_asr.lacking() if OPEN_ASR in scores else None


def score(
    answers: Sequence[Answer], scores: Sequence[str], normaliser_id: str, notes: Sequence[str] = ()
) -> list[Measurement]:
    """One measurement a count, one value (or one row of values) an utterance. An empty output is all words deleted.

    `notes` are for the table of the scores.
    """
    speakers = [answer.speaker for answer in answers]
    found = [
        Measurement.of(
            metrics.ANSWERED,
            [1.0 if answer.output.strip() else 0.0 for answer in answers],
            notes={
                UTTERANCES: [answer.name for answer in answers],
                **({SPEAKERS: speakers} if speakers and all(speakers) else {}),
                **({"notes": list(notes)} if notes else {}),
            },
        )
    ]
    if "wer" in scores or "cer" in scores:
        found += _errors(answers, scores, normaliser_id)
    if OPEN_ASR in scores:
        found += open_asr.measured([(answer.reference, answer.output) for answer in answers])
    if "bleu" in scores:
        from sacrebleu.metrics import BLEU

        found.append(_statistics(BLEU(), metrics.BLEU_STATISTICS, answers))
    if "chrf" in scores:
        from sacrebleu.metrics import CHRF

        found.append(_statistics(CHRF(), metrics.CHRF_STATISTICS, answers))
    return found


def _errors(answers: Sequence[Answer], scores: Sequence[str], normaliser_id: str) -> list[Measurement]:
    normalised = normaliser(normaliser_id)
    pairs = [(normalised(answer.reference), normalised(answer.output)) for answer in answers]
    notes = {"normaliser": normaliser_id}
    ways = {
        "wer": (metrics.WORD_ERRORS, metrics.REFERENCE_WORDS),
        "cer": (metrics.CHARACTER_ERRORS, metrics.REFERENCE_CHARACTERS),
    }
    source, count = _counting()
    found = []
    for unit, (errors, size) in ways.items():
        if unit in scores:
            wrong, total = zip(*(count(unit, *pair) for pair in pairs), strict=True)
            found += [
                Measurement.of(errors, wrong, source=source, notes=notes), Measurement.of(size, total, notes=notes)
            ]  # fmt: skip
    return found


Count = Callable[[str, str, str], tuple[float, float]]
"""(errors, length of the reference) of `wer` or `cer` for a reference and an output."""


def _counting() -> tuple[str, Count]:
    """How errors are counted, by name: with jiwer, or alike in the environment of another interpreter that lacks it."""
    try:
        import jiwer
    except ImportError:
        if other_interpreter() is None:
            raise
        return "speechmeter", counted_errors
    process = {"wer": jiwer.process_words, "cer": jiwer.process_characters}

    def counted(unit: str, reference: str, output: str) -> tuple[float, float]:
        c = process[unit](reference, output)
        return float(c.substitutions + c.deletions + c.insertions), float(c.hits + c.substitutions + c.deletions)

    return "jiwer", counted


def counted_errors(unit: str, reference: str, output: str) -> tuple[float, float]:
    """The least number of words or characters to replace, delete and insert, and the length of the reference."""
    wanted, made = (_split(unit, text) for text in (reference, output))
    row = list(range(len(made) + 1))
    for index, one in enumerate(wanted, 1):
        diagonal, row[0] = row[0], index
        for column, other in enumerate(made, 1):
            diagonal, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, diagonal + (one != other))
    return float(row[-1]), float(len(wanted))


def _split(unit: str, text: str) -> list[str]:
    """As jiwer does: words between spaces, or all characters of the stripped text."""
    return [word for word in _GAPS.sub(" ", text).strip().split(" ") if word] if unit == "wer" else list(text.strip())


def _statistics(scorer: Any, metric: metrics.Metric, answers: Sequence[Answer]) -> Measurement:
    """sacrebleu's sufficient statistics, row after row; they add over utterances, and a score follows from sums."""
    outputs, references = [answer.output for answer in answers], [answer.reference for answer in answers]
    scorer.corpus_score(outputs, [references])  # the signature is not known before a score
    rows = scorer._extract_corpus_statistics(outputs, [references])
    values = [float(value) for row in rows for value in row]
    return Measurement.of(metric, values, source="sacrebleu", notes={"signature": str(scorer.get_signature())})
