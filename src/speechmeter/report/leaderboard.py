"""The table of the Open ASR Leaderboard, with what it lacks: intervals, latency of one utterance, memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.explaining import definition_line
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table

Systems = Mapping[tuple[str, str], tuple[Record, Sequence[Record]]]
"""By model and dataset: the scored record, and those of the run that measured it."""
_AVERAGE = "average WER"
_NO_RUN = (
    "only runs have it: a manifest has no memory, and its times are those of whole batches divided by the batch size"
)


class Disagreement(NamedTuple):
    """An utterance that two normalisers score differently: errors and normalised texts (reference, output) of both."""

    model: str
    name: str
    ours: int
    theirs: int
    our_texts: tuple[str, str]
    their_texts: tuple[str, str]


def leaderboard_table(systems: Systems, normaliser: str) -> Table:
    """One row a model: RTFx, mean WER, WER of each dataset with its interval, latency at batch 1, memory."""
    models = list(dict.fromkeys(model for model, _ in systems))
    datasets = list(dict.fromkeys(dataset for _, dataset in systems))
    rows = tuple(_row(model, datasets, systems) for model in models)
    notes = (
        definition_line(metrics.WER_OPEN_ASR),
        f"normaliser: {normaliser}. [95 % interval over utterances].",
        f"{_AVERAGE}: plain mean over datasets, as on the leaderboard; its interval assumes that they are independent.",
        "RTFx: sum of seconds of audio / sum of seconds of computing, over all utterances of all datasets.",
        *(definition_line(metric) for metric in _memories(rows)),
        f"latency at batch 1: median over utterances. {_NO_RUN[0].upper()}{_NO_RUN[1:]}.",
    )
    columns = ("RTFx", _AVERAGE, *(f"{name} WER" for name in datasets), "latency at batch 1", "memory")
    return Table(title="Open ASR Leaderboard", metric=None, labels=("model",), columns=columns, rows=rows, notes=notes)


def _memories(rows: Sequence[Row]) -> list[Metric]:
    """What the column of memory shows: of older runs and of other devices something else."""
    return list(dict.fromkeys(row.cells[-1].estimate.metric for row in rows if row.cells[-1].estimate is not None))


def _row(model: str, datasets: Sequence[str], systems: Systems) -> Row:
    own = {name: systems[model, name] for name in datasets if (model, name) in systems}
    scores = {name: estimate([record], metrics.WER_OPEN_ASR) for name, (record, _) in own.items()}
    measured = [records for _, records in own.values() if records]
    cells = [
        _speed([record for record, _ in own.values()]),
        _cell(mean_of([one for one in scores.values() if one is not None])),
        *(_cell(scores.get(name)) for name in datasets),
        _batch_1([record for record, records in own.values() if records]),
        _memory(measured),
    ]
    return Row(labels=(model,), cells=tuple(cells))


def _cell(found: Estimate | None, reason: str = "not scored") -> Cell:
    return Cell(estimate=found) if found is not None else Cell(word=NOT_MEASURED, reason=reason)


def mean_of(scores: Sequence[Estimate]) -> Estimate | None:
    """The plain mean of scores of different datasets; each end of its interval from those of the scores (MOVER).

    No interval where one of them has none.
    """
    if not scores:
        return None
    mean = sum(one.value for one in scores) / len(scores)
    low = high = None
    if all(one.low is not None and one.high is not None for one in scores):
        low = mean - math.hypot(*(one.value - (one.low or 0.0) for one in scores)) / len(scores)
        high = mean + math.hypot(*((one.high or 0.0) - one.value for one in scores)) / len(scores)
    return replace(scores[0], value=mean, low=low, high=high)


def _speed(records: Sequence[Record]) -> Cell:
    """Seconds of audio / seconds of computing over all datasets; none where one of them has no times."""
    rates = [estimate([record], metrics.RTFX) for record in records]
    audio = [sum(found.values) for record in records if (found := record.find(metrics.AUDIO_SECONDS.id))]
    known = [one for one in rates if one is not None]
    if not known or len(known) < len(records):
        return Cell(word=NOT_MEASURED, reason="some utterances have no time or no duration")
    computing = sum(seconds / one.value for seconds, one in zip(audio, known, strict=True))
    return Cell(estimate=replace(known[0], value=sum(audio) / computing, low=None, high=None))


def _batch_1(records: Sequence[Record]) -> Cell:
    """The median time of an utterance, of cases whose calls held one each."""
    found = [estimate([record], metrics.LATENCY, statistic="p50") for record in records]
    return _cell(found[0] if len(found) == 1 else None, _NO_RUN)


def _memory(groups: Sequence[Sequence[Record]]) -> Cell:
    """The largest peak over the datasets, on the device of the case."""
    kinds = (metrics.MEMORY_CUDA_ALLOCATED, metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CPU_PEAK)
    found = [one for group in groups for one in [next(filter(None, (estimate(group, kind) for kind in kinds)), None)]]
    known = [one for one in found if one is not None]
    return _cell(max(known, key=lambda one: one.value) if known else None, _NO_RUN)


def difference_table(rows: Sequence[Disagreement], ours: str, theirs: str) -> Table:
    """One row an utterance: its errors after each normaliser, and what each made of reference and output."""
    made = tuple(
        Row(
            labels=(one.model, one.name),
            cells=tuple(
                Cell(word=text)
                for text in (str(one.ours), str(one.theirs), " / ".join(one.our_texts), " / ".join(one.their_texts))
            ),
        )
        for one in rows
    )
    notes = (
        "word errors of both are counted by kaldialign with merged compounds, so only the normalisers differ.",
        "texts: reference / output, after the normaliser.",
    )
    columns = (f"errors {ours}", "errors open-asr", f"texts {ours}", "texts open-asr")
    return Table(title=f"utterances that {ours} and {theirs} score differently", metric=None,
                 labels=("model", "utterance"), columns=columns, rows=made, notes=notes)  # fmt: skip
