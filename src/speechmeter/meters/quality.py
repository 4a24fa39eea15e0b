"""Quality of what a model puts out: one pass outside every clock, or scores that were taken elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.outputs import Output
from speechmeter.core.protocols import ORDINARY, Phase, Session
from speechmeter.core.quality import IMPORTED, QUALITY, quality_of
from speechmeter.core.score_file import ScoreRow, read_scores, score_for
from speechmeter.core.types import Batch, Case, Measurement
from speechmeter.meters.scoring import Answer, missing, score

_IMPORTED = {"wer": metrics.WER, "cer": metrics.CER, "bleu": metrics.BLEU, "chrf": metrics.CHRF}


class QualityMeter:
    """Counts of errors against the workload's references, utterance by utterance; or imported scores."""

    name = QUALITY
    metrics = (
        metrics.ANSWERED,
        metrics.WORD_ERRORS,
        metrics.REFERENCE_WORDS,
        metrics.CHARACTER_ERRORS,
        metrics.REFERENCE_CHARACTERS,
        metrics.BLEU_STATISTICS,
        metrics.CHRF_STATISTICS,
        *_IMPORTED.values(),
    )
    environ: Mapping[str, str] = MappingProxyType({})
    ways = ORDINARY
    phase = Phase.TIMING

    def unavailable(self, case: Case) -> str | None:
        """Needs the scorer's package; imported scores need a row about the case."""
        path = _import_path(case)
        if path is None:
            return missing(quality_of(case.protocol.quality, case.workload.plugin)[1])
        try:
            row = _row(case, path)
        except InputError as error:
            return str(error)
        return None if row is not None else f"{path} has no row for {case.subject.name} in this cell"

    def measure(self, session: Session) -> list[Measurement]:
        """Raw counts, in the first round alone; the reason where outputs cannot be scored."""
        path = _import_path(session.case)
        row = _row(session.case, path) if path is not None else None
        if row is not None:
            return _imported(row, str(path))
        normaliser_id, scores = quality_of(session.case.protocol.quality, session.case.workload.plugin)
        if not any(batch.references for batch in session.all_batches):
            return [Measurement.absent(metrics.ANSWERED, "the workload has no references to score against")]
        outputs = session.outputs()
        answers = answers_of(session.all_batches, outputs)
        if isinstance(answers, str):
            return [Measurement.absent(metrics.ANSWERED, answers)]
        return score(answers, scores, normaliser_id, told=_unscored(session.all_batches))


def answers_of(batches: Sequence[Batch], outputs: Sequence[Output]) -> list[Answer] | str:
    """References and outputs side by side, utterances without a reference left out; or why there are none."""
    if not any(output.is_text for output in outputs):
        ids = any(output.lines for output in outputs)
        return f"the model puts out {'token ids' if ids else 'sound' if _sound(outputs) else 'no text'}, not words"
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


def _unscored(batches: Sequence[Batch]) -> list[str]:
    """How many utterances are left out of the scores, in words; nothing where all are in."""
    total = sum(batch.items for batch in batches)
    without = sum(batch.items for batch in batches if not batch.references)
    alone = all(batch.items == 1 for batch in batches)
    whose = "have no reference" if alone else "stand in a batch where a reference is missing"
    return [f"{without} of {total} utterances {whose} and are not scored"] if without else []


def _sound(outputs: Sequence[Output]) -> bool:
    return any(output.speech for output in outputs)


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
