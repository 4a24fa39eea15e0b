"""How many streams a system carries: a row for each level, and the sentence that names the edge."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.live.levels import BOUND, Level, edge, ladders
from speechmeter.analysis.live.reasons import outdated_note
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.labels import case_labels
from speechmeter.report.numbers import counted
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, cell_of, list_table

_COLUMNS: tuple[tuple[Metric, str], ...] = (
    (metrics.FINALIZE_DELAY, "geomean"), (metrics.BACKLOG, "max"), (metrics.LIVE_COMPLETENESS, "geomean"),
    (metrics.LIVE_RTF, "geomean"), (metrics.CLIENT_SLIP_P99, "max"),
)  # fmt: skip
_RULE = (
    f"a system keeps up if the delay of its text grows by at most {BOUND:g} s per second of a stream; with two or more "
    "rounds, this must hold with 95 % confidence. If the growth could not be measured because answers timed out, the "
    "system falls behind. Each stream lasts at least a minute. The slope is the mean over streams and rounds; "
    "`show --metric keep_up` shows their median."
)


def streams(records: Sequence[Record]) -> list[Table]:
    """One table: each system at each number of streams, in order."""
    found = ladders(records)
    if not found:
        return []
    names = case_labels([level.records[0] for levels in found for level in levels])
    rows, notes = [], []
    for levels in found:
        name = _without_streams(names[levels[0].records[0].case.id])
        rows += [_row(name, level) for level in levels]
        notes.append(f"{name}: {_sentence(levels)}.")
    shown = (metrics.KEEP_UP, *(metric for metric, _ in _COLUMNS))
    old = outdated_note([record for levels in found for level in levels for record in level.records], shown)
    notes += [old] if old else []
    columns = ("verdict", metrics.KEEP_UP.title, *(metric.title for metric, _ in _COLUMNS))
    return [list_table("streams at once", ("system", "streams"), shown, rows, [_RULE, *notes], columns=columns)]


def _row(name: str, level: Level) -> Row:
    verdict = Cell(word=level.verdict or NOT_MEASURED)
    slope = cell_of(level.records, metrics.KEEP_UP) if level.slope is None else Cell(estimate=level.slope)
    cells = [cell_of(level.records, metric, statistic=statistic) for metric, statistic in _COLUMNS]
    return Row(labels=(name, str(level.streams)), cells=(verdict, slope, *cells))


def _without_streams(name: str) -> str:
    return " · ".join(part for part in name.split(" · ") if not part.startswith("streams "))


def _sentence(levels: Sequence[Level]) -> str:
    """Between which numbers of streams it stops keeping up."""
    kept, behind = edge(levels)
    bound = [str(level.streams) for level in levels if level.is_client_bound]
    client = (
        f"; at {', '.join(bound)} the client itself was late, so the system may serve more streams" if bound else ""
    )
    if kept is None and behind is None:
        return "it is not known whether it keeps up" + client
    if behind is None:
        return (
            f"keeps up with {counted(kept, 'stream')}; it is not known at which higher number it falls behind{client}"
        )
    if kept is None:
        return (
            f"falls behind with {counted(behind, 'stream')}; it is not known with which lower number it "
            f"keeps up{client}"
        )
    return f"keeps up with {counted(kept, 'stream')}, falls behind with {counted(behind, 'stream')}{client}"
