"""The summary table of a study: a row a case, what varies in columns, what does not said once above."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from speechmeter.analysis.derived import lacking
from speechmeter.analysis.intervals import Quantity
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.quality import IMPORTED
from speechmeter.core.types import Record
from speechmeter.report.charts.figure import six
from speechmeter.report.labels import TEXT_PACE, batching, label, setting
from speechmeter.report.numbers import counted, number
from speechmeter.report.overview import summary_metrics
from speechmeter.report.quality import scores_in
from speechmeter.report.sources import Source
from speechmeter.report.tables import Cell, cell_of

MODEL, OUTCOME = "model", "outcome"
_ONE_ROUND = "one round: no interval"
_LIVE = (
    metrics.FINAL_DELAY, metrics.REQUEST_LATENCY, metrics.WORD_LAG, metrics.FIRST_PARTIAL_FROM_ONSET,
    metrics.VOICE_TO_VOICE, metrics.FIRST_SOUND, metrics.SPEECH_RTF, metrics.ROUND_TRIP_WER, metrics.LIVE_WER,
    metrics.LIVE_COMPLETENESS, metrics.LIVE_RTF,
)  # fmt: skip
"""Figures of live cases, delays in the middle of all conversations."""
_FIRST = (
    *_LIVE,
    metrics.WER, metrics.CER, metrics.BLEU, metrics.CHRF, metrics.RTF, metrics.LATENCY, metrics.MEMORY_CPU_TOTAL,
    metrics.MEMORY_CUDA_ALLOCATED, metrics.MEMORY_NEEDED, *metrics.ENERGY_PER_AUDIO_HOUR.values(), metrics.FLOPS,
    metrics.PARAMETERS,
)  # fmt: skip
"""The figures that matter, in this order; then the others."""
_USUAL: tuple[Any, ...] = (None, "", "none", "auto")
"""Values of settings that are not worth a word."""


def shown_metrics(records: Sequence[Record]) -> list[Metric]:
    """The columns of figures, the most important ones first."""
    costs = summary_metrics(records)
    scored = [[record] for record in records if record.find(metrics.ANSWERED.id)]
    held = {m.metric for record in records if record.case.live is not None for m in record.measurements if m.values}
    live = [metric for metric in _LIVE if metric.id in held]
    found = list(dict.fromkeys([*live, *(scores_in(scored) if scored else ()), *costs]))
    return [*(metric for metric in _FIRST if metric in found), *(metric for metric in found if metric not in _FIRST)]


def raw_metrics(shown: Sequence[Metric]) -> list[Metric]:
    """What the shown figures are made from: themselves, or what was measured for them."""
    return list(dict.fromkeys(source for metric in shown for source in lacking([], metric)))


def table_data(source: Source, shown: Sequence[Metric]) -> dict[str, Any]:
    """The table as the page holds it; its rows are in the order of the cases."""
    groups = list(source.cases.values())
    settings = [_settings(group) for group in groups]
    if any(TEXT_PACE in own for own in settings):
        for own in settings:
            own[TEXT_PACE] = setting(TEXT_PACE, own[TEXT_PACE]) if TEXT_PACE in own else "at once"
    names = list(dict.fromkeys(name for own in settings for name in own))
    varying = [name for name in names if name == MODEL or len({_key(own[name]) for own in settings if name in own}) > 1]
    outcomes = [", ".join(dict.fromkeys(record.status for record in group)) for group in groups]
    told = [OUTCOME] if set(outcomes) - {"ok"} else []
    cells = [[_cell(cell_of(group, metric)) for metric in shown] for group in groups]
    measured = [row for row in cells if any(cell[1] is not None for cell in row)]
    order = sorted(range(len(shown)), key=lambda at: _rank(shown[at], [row[at][1] is not None for row in measured]))
    rows = [
        [[*(_plain(own.get(name)) for name in varying), *([outcome] if told else [])], [row[at] for at in order]]
        for own, outcome, row in zip(settings, outcomes, cells, strict=True)
    ]
    return {
        "constants": list(_constants(settings, names, varying)),
        "labels": [*varying, *told],
        "columns": [
            {"id": shown[at].id, "title": shown[at].title, "raw": [one.id for one in raw_metrics([shown[at]])]}
            for at in order
        ],
        "rows": rows,
        "text": table_words([cell for row in cells for cell in row]),
    }


def _settings(group: Sequence[Record]) -> dict[str, Any]:
    """What a case was measured with, by name: the model, its size, then its axes."""
    case = group[0].case
    rule = batching(case)
    size = {"seconds": case.axes["seconds"]} if "seconds" in case.axes else {}
    batch = {"batch": case.axes.batch if rule == f"batch {case.axes.batch}" else rule} if rule else {}
    others = {name: value for name, value in case.axes.items() if name not in ("seconds", "batch", "device")}
    return {
        MODEL: case.subject.name,
        **size,
        **batch,
        "device": case.axes.device,
        "input": case.workload.name,
        **others,
    }


def _rank(metric: Metric, has: Sequence[bool]) -> int:
    """For an order of columns: what matters and most cases have, what matters and some have, others, what none has."""
    if not any(has):
        return 3
    return int(2 * sum(has) < len(has)) if metric in _FIRST else 2


def _key(value: Any) -> str:
    return repr(_plain(value))


def _plain(value: Any) -> Any:
    """Numbers stay numbers, so that they sort as such."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return "" if value is None else str(value)


def _constants(
    settings: Sequence[Mapping[str, Any]], names: Sequence[str], varying: Sequence[str]
) -> Iterator[list[str]]:
    """[name, value] of what all cases share and what is not the usual."""
    for name in names:
        value = settings[0].get(name)
        if name not in varying and value is not False and value not in _USUAL and all(name in own for own in settings):
            yield [name, label(value)]


def _cell(cell: Cell) -> list[Any]:
    """[text, value, interval or why there is none, rounds, samples, whether it is one]; or [word, null, why]."""
    found = cell.estimate
    if found is None:
        return [cell.word, None, cell.reason]
    bounds = [number(bound, found.metric.unit) for bound in (found.low, found.high) if bound is not None]
    interval = f"95 % interval {' to '.join(bounds)}" if bounds else _why_no_interval(found)
    return [cell.text(), six(found.value), interval, found.rounds, found.samples_per_round, bool(bounds)]


def _why_no_interval(found: Quantity) -> str:
    if found.statistic == IMPORTED:
        return "no interval: the imported file has none"
    if found.statistic != "geomean":
        return f"no interval; computed over {counted(found.samples_per_round, 'utterance')}"
    if found.metric.exact:
        return "no interval: an exact count"
    return _ONE_ROUND


def table_words(cells: Sequence[Sequence[Any]]) -> str:
    """The sentence above the table: intervals are promised only where there are some."""
    figures = [cell for cell in cells if cell[1] is not None]
    if not figures:
        return "No case has a value. Click an outcome to see its reason and the command to measure it again."
    some = any(cell[5] for cell in figures)
    single = any(cell[2] == _ONE_ROUND for cell in figures)
    words = "Values with their 95 % intervals" if some else "Values without intervals"
    words += (
        ", which need more than one round" if some and single else ", because there was one round" if single else ""
    )
    return f"{words}. Click a value to see its protocol, environment, raw samples and the command to measure it again."
