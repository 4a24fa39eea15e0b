"""Live cases as tables: delays and texts of each model, chunk and number of streams; one live metric in detail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.live.delta import live_wer_delta, offline_partner
from speechmeter.analysis.live.figures import least_utterances
from speechmeter.analysis.live.reasons import outdated_note, unanswered, withheld
from speechmeter.analysis.live.resampling import LEAST_ROUNDS, LEAST_UTTERANCES
from speechmeter.analysis.live.samples import CONVERSATIONS, samples_of
from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.core.axes import LIVE_AXES
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Case, Record
from speechmeter.report.grids import warning_notes
from speechmeter.report.labels import case_labels, setting
from speechmeter.report.numbers import counted, number
from speechmeter.report.quality import FRONT, front_cell, front_cost, front_groups, fronts
from speechmeter.report.tables import UNAVAILABLE, Cell, Row, Table, cell_of, list_table

Column = tuple[str, Metric, str]
"""A heading, a metric and its statistic."""
_DELAYS: tuple[Column, ...] = (
    ("final delay p50", metrics.FINAL_DELAY, "p50"),
    ("final delay p95", metrics.FINAL_DELAY, "p95"),
    ("first text p50", metrics.FIRST_PARTIAL_FROM_ONSET, "p50"),
    ("word lag p50", metrics.WORD_LAG, "p50"),
    ("late sends p99", metrics.CLIENT_SLIP_P99, "max"),
)
_TEXTS: tuple[Column, ...] = (
    ("complete", metrics.LIVE_COMPLETENESS, "geomean"),
    ("rewritten words", metrics.PARTIAL_CHURN, "geomean"),
    ("live WER", metrics.LIVE_WER, "geomean"),
    ("− offline WER", metrics.LIVE_WER_DELTA, "geomean"),
)
SHOWN: tuple[Metric, ...] = tuple(dict.fromkeys(metric for _, metric, _ in (*_DELAYS, *_TEXTS)))
"""What these tables show."""
_PERCENTILES = ("p50", "p90", "p95", "p99")
_BESIDE = {metrics.ENDPOINT_DELAY: metrics.EARLY_ENDPOINT, metrics.WORD_LAG: metrics.WORD_COVERAGE}
"""A metric that says how much of another one can be believed: the two are always shown together."""
_LABELS = ("system", "chunk", "streams")
TEXT = "text"
"""The workload of systems that are given text."""
_LOAD = "load"
"""In place of streams, where conversations of some case begin at a rate."""
_CLIENT = (metrics.CLIENT_SLIP_P50, metrics.CLIENT_SLIP_P99, metrics.CLIENT_SLIP_MAX)

Groups = dict[str, list[Record]]


def live(records: Sequence[Record]) -> list[Table]:
    """A row for each model, chunk and number of streams: its delays, and in a second table its texts."""
    groups = hearing_groups(records)
    if not groups:
        return []
    labels = live_labels(groups)
    made = [
        live_table("live: delays", groups, labels, _DELAYS, records),
        _with_front(live_table("live: texts", groups, labels, _TEXTS, records), groups),
    ]
    return [made[0], with_more(made[1], warning_notes(list(groups.values()), metrics.FINAL_DELAY, live_names(groups)))]


def live_groups(records: Sequence[Record]) -> Groups:
    """The live cases of these records, without those that were skipped."""
    tried = [record for record in records if record.case.live is not None and record.status != "skipped"]
    return by_case(tried)


def hearing_groups(records: Sequence[Record]) -> Groups:
    """The live cases of systems that are spoken to, not given text."""
    return {key: group for key, group in live_groups(records).items() if group[0].case.workload.plugin != TEXT}


def live_labels(groups: Groups) -> dict[str, tuple[str, ...]]:
    """(system, chunk, streams) of each case by its id; the pace stands behind the system where it varies."""
    cases = {key: group[0].case for key, group in groups.items()}
    names = case_labels([group[0] for group in groups.values()])
    axes = {axis.name for axis in LIVE_AXES}
    single = len({case.axes.device for case in cases.values()}) == 1
    paces = {case.axes.pace for case in cases.values()}
    found: dict[str, tuple[str, ...]] = {}
    for key, case in cases.items():
        said = {setting(name, case.axes[name]) for name in axes if case.axes.get(name) is not None}
        parts = [part for part in names[key].split(" · ") if part.partition(" ")[0] not in axes and part not in said]
        parts = [part for part in parts if not (single and part == case.axes.device)]
        parts += [case.axes.pace] if len(paces) > 1 else []
        found[key] = (" · ".join(parts), number(case.axes.chunk_s, "s"), _many(case))
    return found


def _many(case: Case) -> str:
    """How many conversations there were at once, or began per second."""
    if case.axes.rate is not None:
        return f"{case.axes.rate:g}/s"
    return str(case.axes.streams) if case.live is None or not case.live.arrivals else case.live.arrivals


def live_names(groups: Groups) -> dict[str, str]:
    """A name for each case that has only what tells it from the others: for charts and sentences."""
    labels = live_labels(groups)
    chunks, streams = ({label[place] for label in labels.values()} for place in (1, 2))
    paces = {key: group[0].case.axes.text_pace for key, group in groups.items()}
    split = [system.split(" · ")[1:] for system, _, _ in labels.values()]
    shared = set.intersection(*map(set, split)) if split else set()
    made = {}
    for key, (system, chunk, many) in labels.items():
        model, *others = system.split(" · ")
        parts = [model, *(part for part in others if part not in shared), *([chunk] if len(chunks) > 1 else [])]
        parts += [counted(int(many), "stream") if many.isdigit() else many] if len(streams) > 1 else []
        pace = paces[key]
        parts += ["at once" if pace is None else f"{pace:g} tokens/s"] if len(set(paces.values())) > 1 else []
        made[key] = " · ".join(parts)
    return made


def one_metric(records: Sequence[Record], metric: Metric, statistic: str = "geomean") -> list[Table]:
    """One live metric in detail: a row a case, with the percentiles that its utterances support."""
    groups = live_groups(records)
    if not groups:
        return []
    asked = _PERCENTILES if statistic == "geomean" else (statistic,)
    columns: list[Column] = [(metric.title, metric, statistic)]
    if metric.combined == CONVERSATIONS:
        most = max((samples.heard for group in groups.values() if (samples := samples_of(group, metric))), default=0)
        columns = [(name, metric, name) for name in asked if name == asked[0] or least_utterances(name) <= most]
    if metric in _BESIDE:
        columns.append((_BESIDE[metric].title, _BESIDE[metric], "geomean"))
    table = live_table(metric.title, groups, live_labels(groups), columns, records, counts=metric)
    return [with_more(table, warning_notes(list(groups.values()), metric, live_names(groups)))]


def _with_front(table: Table, groups: Groups) -> Table:
    """With a column that says which systems no other one beats, where there are several."""
    several = [keys for keys in front_groups(groups) if len(keys) > 1]
    found = fronts(groups, live_names(groups)) if several else {}
    standing = {key: found.get(key) for keys in several for key in keys}
    if not any(standing.values()):
        return table
    rows = [
        replace(row, cells=(*row.cells, front_cell(standing.get(key))))
        for row, key in zip(table.rows, groups, strict=True)
    ]
    costs = {front_cost([groups[key] for key in keys]).title for keys in several}
    note = (
        f"{FRONT}: the Pareto front of {metrics.LIVE_WER.title} and {' or '.join(sorted(costs))}, compared utterance "
        "by utterance. no: another system, named in the cell, is better in one of these and at least as good in the "
        "other."
    )
    return replace(table, columns=(*table.columns, FRONT), rows=tuple(rows), notes=(*table.notes, note))


def with_more(table: Table, notes: Iterable[str]) -> Table:
    """The table with further notes."""
    return replace(table, notes=(*table.notes, *notes))


def live_table(
    title: str,
    groups: Groups,
    labels: dict[str, tuple[str, ...]],
    columns: Sequence[Column],
    records: Sequence[Record],
    *,
    counts: Metric | None = None,
    headings: tuple[str, ...] = _LABELS,
) -> Table:
    """A row a case. `counts` adds how many utterances, rounds and missing answers there are of a metric."""
    everything = list(by_case(records).values())
    rows = []
    for key, group in groups.items():
        cells = [_cell(group, metric, statistic, everything) for _, metric, statistic in columns]
        cells += _counts(group, counts) if counts is not None else []
        rows.append(Row(labels=labels[key], cells=tuple(cells)))
    shown = list(dict.fromkeys(metric for _, metric, _ in columns))
    titles = [heading for heading, _, _ in columns]
    titles += ["utterances", "rounds", "no answer"] if counts is not None else []
    old = outdated_note([record for group in groups.values() for record in group], shown)
    notes = [*_interval_notes(rows), *_withheld_notes(groups, labels, shown), *([old] if old else [])]
    rated = any(group[0].case.axes.rate is not None for group in groups.values())
    return list_table(title, (*headings[:2], _LOAD) if rated else headings, shown, rows, notes, columns=titles)


def _cell(group: Sequence[Record], metric: Metric, statistic: str, everything: Sequence[Sequence[Record]]) -> Cell:
    if metric == metrics.LIVE_WER_DELTA:
        found = live_wer_delta(group, offline_partner(group[0].case, everything))
        return Cell(estimate=found.estimate, word="" if found.estimate else UNAVAILABLE, reason=found.reason)
    if metric in _CLIENT:
        return cell_of(group, metric, statistic="max")
    made = estimate(group, metric, statistic=statistic)
    if made is None and statistic.startswith("p") and (samples := samples_of(group, metric)) is not None:
        need = least_utterances(statistic)
        reason = f"{statistic} needs {need} distinct utterances"
        return Cell(word=f"too few (n={samples.heard})", reason=reason)
    is_mean = statistic.startswith("mean") and metric.combined == CONVERSATIONS
    if made is None and is_mean and unanswered(group, metric):
        return Cell(
            word=UNAVAILABLE, reason="answers are missing, and a mean without them would be too low; use p50 or p95"
        )
    return Cell(estimate=made) if made is not None else cell_of(group, metric, statistic=statistic)


def _counts(group: Sequence[Record], metric: Metric) -> list[Cell]:
    metric = metrics.LIVE_WER if metric == metrics.LIVE_WER_DELTA else metric
    samples = samples_of(group, metric)
    missing = unanswered(group, metric)
    numbers = (samples.heard if samples else 0, len(samples.rounds) if samples else 0, missing)
    return [Cell(word=f"{count:,}") for count in numbers]


def _interval_notes(rows: Sequence[Row]) -> list[str]:
    """What the intervals are over, and where there are none."""
    found = [cell.estimate for row in rows for cell in row.cells if isinstance(cell.estimate, Estimate)]
    found = [one for one in found if one.is_resampled or one.statistic == "difference"]
    bounded = [one for one in found if one.low is not None]
    notes = []
    few = [one for one in bounded if one.rounds < LEAST_ROUNDS]
    both, alone = "utterances and rounds", f"utterances only, because there are fewer than {LEAST_ROUNDS} rounds"
    if bounded:
        over = alone if len(few) == len(bounded) else both
        notes.append(f"[…]: 95 % interval over {over}.")
        if 0 < len(few) < len(bounded):
            notes.append(f"with fewer than {LEAST_ROUNDS} rounds, the interval covers the spread over utterances only.")
    if len(bounded) < len([one for one in found if one.statistic != "max"]):
        notes.append(f"no interval: fewer than {LEAST_UTTERANCES} distinct utterances.")
    beyond = {one.beyond_s for one in found if one.beyond_s is not None}
    if beyond:
        limit = f"{max(beyond):g} s"
        notes.append(
            f"an answer that did not come within {limit} after the audio counts as longer than that (> {limit})."
        )
    return notes


def _withheld_notes(groups: Groups, labels: dict[str, tuple[str, ...]], shown: Sequence[Metric]) -> list[str]:
    """Why some conversations have no value: a line a reason."""
    lines: dict[str, dict[str, None]] = {}
    for key, group in groups.items():
        for metric in shown:
            for reason, count, of in withheld(group, metric):
                if count < of:  # else the cell says so
                    lines.setdefault(f"{metric.title}: {reason}", {})[f"{labels[key][0]} ({count:,} of {of:,})"] = None
    return [
        f"no {what.partition(': ')[0]}, {', '.join(names)}: {what.partition(': ')[2]}." for what, names in lines.items()
    ]
