"""Quality beside cost: a row a system with its scores and what it costs, the front, and differences by pairs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.quality import (
    DIFFERENCES,
    Standing,
    System,
    best_score,
    extent_of,
    paired_difference,
    score_notes,
    standings,
)
from speechmeter.analysis.scores import KINDS, RULES, imported, interval_kind, score_rows, speakers_of
from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.labels import case_labels
from speechmeter.report.numbers import number
from speechmeter.report.tables import (
    NOT_MEASURED,
    UNAVAILABLE,
    Cell,
    Row,
    Table,
    cell_of,
    list_table,
    measured,
    some_interval,
)

_SCORES = (metrics.WER, metrics.CER, metrics.BLEU, metrics.CHRF)
_SHOWN = (*_SCORES, metrics.WER_OPEN_ASR)
"""Scores that are shown; systems are compared by pairs in the others alone."""
_COSTS = (
    metrics.RTF,
    metrics.RTFX,
    metrics.LATENCY,
    metrics.MEMORY_NEEDED,
    metrics.MEMORY_CPU_TOTAL,
    metrics.MEMORY_CPU_LOAD,
    metrics.MEMORY_CPU_PEAK,
    metrics.LATENCY_LOAD,
    metrics.LATENCY_FIRST,
)
_SOURCES = {
    metrics.RTF: metrics.AUDIO_SECONDS,
    metrics.RTFX: metrics.AUDIO_SECONDS,
    metrics.MEMORY_NEEDED: metrics.MEMORY_WEIGHTS,
}
"""Costs that are shown where what they are made from was measured."""
FRONT = "on the front"
"""The heading of the column that says it."""
_UTTERANCES = "utterances"

Groups = dict[str, list[Record]]


def quality(records: Sequence[Record]) -> list[Table]:
    """One row a system: scores, costs and whether it is on the front; then every two systems by shared utterances."""
    # of live cases the score is in the view `live`, beside what they cost
    tried = [record for record in records if record.status != "skipped" and record.case.live is None]
    groups = by_case(tried)
    if not groups:
        return []
    labels = case_labels(tried)
    return [_systems(groups, labels), *difference_tables({labels[key]: group for key, group in groups.items()})]


def _systems(groups: Groups, labels: dict[str, str]) -> Table:
    shown = [*scores_in(list(groups.values())), *_costs(list(groups.values()))]
    standing = fronts(groups, labels)
    rows = tuple(
        Row(
            labels=(labels[key],),
            cells=(
                Cell(word=f"{count:,}" if (count := extent_of(group)[0]) else NOT_MEASURED),
                *(cell_of(group, metric) for metric in shown),
                front_cell(standing.get(key)),
            ),
        )
        for key, group in groups.items()
    )
    columns = (_UTTERANCES, *(_heading(metric) for metric in shown), FRONT)
    about: dict[str, list[str]] = {}
    for key, group in groups.items():
        for note in score_notes(group):
            about.setdefault(note, []).append(labels[key])
    notes = [*_notes(groups, rows), *(f"{', '.join(names)}: {note}." for note, names in about.items())]
    return list_table("quality", ("system",), shown, rows, notes, columns=columns)


def _heading(metric: Metric) -> str:
    """The short names of the field where a table is wide."""
    return {metrics.RTF.id: "RTF", metrics.RTFX.id: "RTFx"}.get(metric.id, metric.title)


def scores_in(groups: Sequence[Sequence[Record]]) -> list[Metric]:
    """The scores that some system has, and completeness; that alone says why where none has any."""
    found = [metric for metric in _SHOWN if any(estimate(group, metric) for group in groups)]
    return [*(found or [metrics.WER]), metrics.COMPLETENESS]


def _costs(groups: Sequence[Sequence[Record]]) -> list[Metric]:
    """Those that were measured; of memory what was read off the process, and latency where there is no audio.

    Older runs have no total of the process: there it is weights and growth, or resident sizes without known weights.
    """
    records = [record for group in groups for record in group]
    found = [metric for metric in _COSTS if measured(records, _SOURCES.get(metric, metric))]
    if metrics.MEMORY_CPU_TOTAL in found:
        left_out = {metrics.MEMORY_NEEDED, metrics.MEMORY_CPU_PEAK}
    elif all(
        estimate(group, metrics.MEMORY_NEEDED) or not any(record.status == "ok" for record in group) for group in groups
    ):
        left_out = {metrics.MEMORY_CPU_LOAD, metrics.MEMORY_CPU_PEAK}
    else:
        left_out = {metrics.MEMORY_NEEDED}
    if metrics.RTF in found:
        left_out.add(metrics.LATENCY)
    return [metric for metric in found if metric not in left_out]


def front_groups(groups: Groups) -> list[list[str]]:
    """Keys of the cases that can be compared: the same input on the same device, and fed live in the same way."""
    together: dict[str, list[str]] = {}
    for key, group in groups.items():
        case = group[0].case
        held = [] if case.live is None else [case.live.to_json(), case.axes.pace]
        together.setdefault(json.dumps([case.workload.to_json(), case.axes.device, held]), []).append(key)
    return list(together.values())


def fronts(groups: Groups, labels: dict[str, str]) -> dict[str, Standing | None]:
    """Whether each case is on the front of those that can be compared with it."""
    found: dict[str, Standing | None] = {}
    for keys in front_groups(groups):
        score = front_score([groups[key] for key in keys])
        if score is None:
            continue
        cost = front_cost([groups[key] for key in keys])
        models = [groups[key][0].case.subject.name for key in keys]
        systems = [
            System(
                name=model if models.count(model) == 1 else labels[key],
                records=groups[key],
                score=estimate(groups[key], score),
                cost=cost.of(groups[key]),
            )
            for key, model in zip(keys, models, strict=True)
        ]
        found.update(zip(keys, standings(systems, score), strict=True))
    return found


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a score is drawn against: a metric, and of a live delay the percentile."""

    metric: Metric
    statistic: str = "geomean"

    @property
    def title(self) -> str:
        """`RTF`, `final delay p95`."""
        return self.metric.title if self.statistic == "geomean" else f"{self.metric.title} {self.statistic}"

    def of(self, records: Sequence[Record]) -> Estimate | None:
        """The figure of a case."""
        return estimate(records, self.metric, statistic=self.statistic)


def front_score(groups: Sequence[Sequence[Record]]) -> Metric | None:
    """The score of a front: the WER of final texts where systems were fed live, else `best_score`."""
    if groups[0][0].case.live is None:
        return best_score(groups)
    return metrics.LIVE_WER if any(estimate(group, metrics.LIVE_WER) for group in groups) else None


def front_cost(groups: Sequence[Sequence[Record]]) -> Cost:
    """The cost of a front: the real-time factor, or the latency where there is no audio.

    Of live systems it is the final delay, at p95 where the utterances of all support that.
    """
    if groups[0][0].case.live is not None:
        tail = Cost(metric=metrics.FINAL_DELAY, statistic="p95")
        return tail if all(tail.of(group) for group in groups) else replace(tail, statistic="p50")
    return Cost(metric=metrics.RTF if any(estimate(group, metrics.RTF) for group in groups) else metrics.LATENCY)


def front_cell(standing: Standing | None) -> Cell:
    """Whether a system is on the front, against which others, and why that may not be known."""
    if standing is None:
        return Cell(word=NOT_MEASURED)
    against = {"yes": "", "no": ": ", "not resolvable": " from "}[standing.word]
    why = f" ({'; '.join(standing.reasons)})" if standing.reasons else ""
    return Cell(word=f"{standing.word}{against}{', '.join(standing.others)}{why}")


def _notes(groups: Groups, rows: Sequence[Row]) -> list[str]:
    score, cost = best_score(list(groups.values())), front_cost(list(groups.values())).metric
    if score is None:
        return []
    notes = [
        *_interval_notes(groups.values()),
        *(["±: half of the 95 % interval over rounds."] if some_interval(rows, "geomean") else []),
        f"{FRONT}: the Pareto front of {score.title} and {_heading(cost)}. no: another system, named "
        "in the cell, is better in one of these and at least as good in the other. not resolvable: "
        "the intervals overlap or are missing.",
    ]
    return [*notes, *dict.fromkeys(line for group in groups.values() for line in _how_scored(group))]


def _interval_notes(groups: Iterable[Sequence[Record]]) -> list[str]:
    """How the intervals of scores were made, with the scores that each way is for."""
    found: dict[str, dict[str, None]] = {}
    for group in groups:
        for metric in (*_SHOWN, metrics.COMPLETENESS):
            figure = estimate(group, metric)
            if figure is not None and figure.low is not None and figure.statistic in KINDS:
                rows, speakers = score_rows(group, metric), speakers_of(group)
                kind, over = interval_kind(rows, metric.id, speakers)
                found.setdefault(KINDS[kind].format(units=over), {})[metric.title] = None
    return [f"[…] of {', '.join(titles)}: 95 % interval, {text}." for text, titles in found.items()]


def _how_scored(group: Sequence[Record]) -> list[str]:
    """The normaliser, the signature of sacrebleu, or the file that scores came from."""
    lines: list[str] = []
    for metric in _SHOWN:
        outside = imported(group, metric)
        if outside is not None:
            lines.append(
                f"imported: a score that was not measured here, but read from {outside.notes.get('file')}; it "
                "is not compared utterance by utterance."
            )
        count = RULES[metric.id].counts[0]
        notes = next((m.notes for record in group if (m := record.find(count.id)) is not None), {})
        if "normaliser" in notes:
            lines.append(f"{metric.title}: text normalised by {notes['normaliser']}.")
        if "signature" in notes:
            lines.append(f"{metric.title}: {notes['signature']}.")
    return lines


def difference_tables(systems: dict[str, list[Record]]) -> list[Table]:
    """Every two systems that were scored here: first minus second over the utterances they share; none for fewer."""
    shown = [m for m in _SCORES if sum(_has_own(group, m) for group in systems.values()) > 1]
    if not shown:
        return []
    able = {name: group for name, group in systems.items() if any(_has_own(group, m) for m in shown)}
    rows = tuple(_pair(first, second, able, shown) for first, second in combinations(able, 2))
    differences = [DIFFERENCES[metric.id] for metric in shown]
    unresolved = "the interval of the difference contains 0, so it is not known which system is better."
    note = f"the last column compares {shown[0].title}. not resolvable: {unresolved}"
    columns = (*(metric.title for metric in differences), _UTTERANCES, "the first is")
    return [list_table("differences by pairs", ("first", "second"), differences, rows, (note,), columns=columns)]


def _has_own(group: Sequence[Record], metric: Metric) -> bool:
    return imported(group, metric) is None and estimate(group, metric) is not None


def _pair(first: str, second: str, systems: dict[str, list[Record]], shown: Sequence[Metric]) -> Row:
    found = [paired_difference(systems[first], systems[second], metric) for metric in shown]
    count = next((str(one.estimate.samples_per_round) for one in found if one.estimate), NOT_MEASURED)
    why = f": {found[0].reason}" if found[0].order == "not resolvable" and found[0].reason else ""
    cells = [
        Cell(estimate=one.estimate) if one.estimate is not None else Cell(word=UNAVAILABLE, reason=one.reason)
        for one in found
    ]
    return Row(labels=(first, second), cells=(*cells, Cell(word=count), Cell(word=f"{found[0].order}{why}")))


def file_tables(systems: dict[str, list[Record]]) -> list[Table]:
    """Scores of files of utterances: a row a file; then every two of them."""
    shown = [metrics.WER, metrics.CER, metrics.COMPLETENESS, metrics.RTFX]
    rows = []
    for name, group in systems.items():
        utterances, hours = extent_of(group)
        size = (f"{utterances:,}", NOT_MEASURED if hours is None else number(hours, "1"))
        cells = (*(Cell(word=text) for text in size), *(cell_of(group, metric) for metric in shown))
        rows.append(Row(labels=(name,), cells=cells))
    columns = (_UTTERANCES, "hours", *(_heading(metric) for metric in shown))
    notes = dict.fromkeys(line for group in systems.values() for line in _how_scored(group))
    table = list_table("scores", ("file",), shown, rows, list(notes), columns=columns)
    return [table, *difference_tables(systems)]
