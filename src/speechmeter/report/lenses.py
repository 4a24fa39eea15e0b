"""The same system seen offline, live and under load: a row for each, with its accuracy and its memory."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.live.capacity import STREAMS, Capacity, capacities
from speechmeter.analysis.live.delta import offline_partner
from speechmeter.analysis.selecting import by_case
from speechmeter.core import metrics
from speechmeter.core.axes import FAST
from speechmeter.core.metrics import Metric
from speechmeter.core.slo import Slo
from speechmeter.core.types import Record
from speechmeter.report.capacity import sentence
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, cell_of, list_table

Rounds = Sequence[Record]
_OFFLINE_MEMORY = (metrics.MEMORY_CUDA_GROWTH, metrics.MEMORY_NEEDED, metrics.MEMORY_CPU_TOTAL)
_LIVE_MEMORY = (metrics.MEMORY_SERVER, metrics.MEMORY_LIVE)
RULE = (
    "Offline RTFx, WER and memory are those of the offline case with the same data as the live case; if there is "
    "none, those of the offline case with the highest RTFx. Live figures are for one stream, a request latency for "
    "one request at a time. Memory under load is the highest of all levels."
)


def lenses(records: Sequence[Record], slo: Slo | None = None) -> list[Table]:
    """One table; none of a run without live cases."""
    return lenses_of(records, [] if slo is None else [slo])


def lenses_of(records: Sequence[Record], slos: Sequence[Slo]) -> list[Table]:
    """The same where runs have an SLO each: the capacity of a system is for the one that says most about it."""
    systems: dict[str, list[Rounds]] = {}
    for group in by_case(records).values():
        case = group[0].case
        systems.setdefault(f"{case.subject.name} · {case.device}", []).append(group)
    rows = [_row(name, groups, slos) for name, groups in systems.items() if any(_is_live(group) for group in groups)]
    shown = (metrics.RTFX, metrics.WER, metrics.FINAL_DELAY, metrics.REQUEST_LATENCY, metrics.LIVE_WER)
    columns = ("offline RTFx", "offline WER", "memory offline", "final delay p50", "request latency p50", "live WER",
               "memory live", "capacity", "memory under load")  # fmt: skip
    notes = [RULE, slo_note(slos)]
    return (
        [list_table("offline, live and under load", ("system",), shown, rows, notes, columns=columns)] if rows else []
    )


def slo_note(slos: Sequence[Slo]) -> str:
    """Which SLO the capacity is for."""
    return f"SLO: {'; '.join(slo.text for slo in slos)}." if slos else "capacity: no SLO; add --slo."


def is_seen_twice(row: Row) -> bool:
    """Whether a system has figures of at least two of: whole recordings, one live stream, load."""
    speed, _, _, final, request, _, _, load, _ = row.cells
    ways = (speed.estimate is not None, (final.estimate or request.estimate) is not None, load.word != NOT_MEASURED)
    return sum(ways) > 1


def _row(name: str, groups: Sequence[Rounds], slos: Sequence[Slo]) -> Row:
    live = [group for group in groups if _is_live(group)]
    alone = [group for group in live if group[0].case.axes.streams == 1 and not _arrives(group)]
    spoken = next((group for group in alone if group[0].case.axes.pace != FAST), ())
    asked = next((group for group in alone if group[0].case.axes.pace == FAST), ())
    offline = _offline(groups, spoken or live[0])
    found = [record for group in live for record in group]
    cells = (
        cell_of(offline, metrics.RTFX),
        cell_of(offline, metrics.WER),
        _first(offline, _OFFLINE_MEMORY),
        cell_of(spoken, metrics.FINAL_DELAY, statistic="p50"),
        cell_of(asked, metrics.REQUEST_LATENCY, statistic="p50"),
        cell_of(spoken or asked, metrics.LIVE_WER),
        _first(spoken or asked, _LIVE_MEMORY),
        _capacity(found, slos),
        max((_first(group, _LIVE_MEMORY) for group in live), key=_size),
    )
    return Row(labels=(name,), cells=cells)


def _capacity(records: Rounds, slos: Sequence[Slo]) -> Cell:
    """The bracket that says most: that of a search rather than of other levels, of streams rather than of a rate."""
    made = [one for slo in slos for one in capacities(records, slo) if len(one.levels) > 1]
    if not made:
        return Cell(word=NOT_MEASURED)
    return Cell(word=sentence(max(made, key=_says), short=True))


def _says(found: Capacity) -> tuple[int, bool]:
    return (found.passes is not None) + (found.fails is not None), found.axis == STREAMS


def _offline(groups: Sequence[Rounds], live: Rounds) -> Rounds:
    """The same system on the same data, else the fastest offline case."""
    partner = offline_partner(live[0].case, groups)
    if partner:
        return partner
    speeds = {place: found.value for place, group in enumerate(groups)
              if not _is_live(group) and (found := estimate(group, metrics.RTFX)) is not None}  # fmt: skip
    return groups[max(speeds, key=lambda place: speeds[place])] if speeds else ()


def _first(records: Rounds, wanted: Sequence[Metric]) -> Cell:
    """The first of these metrics that was read; the highest value of all rounds."""
    held = next((metric for metric in wanted if any(_has(record, metric) for record in records)), wanted[-1])
    return cell_of(records, held, statistic="max")


def _size(cell: Cell) -> float:
    return -1.0 if cell.estimate is None else cell.estimate.value


def _has(record: Record, metric: Metric) -> bool:
    found = record.find(metric.id)
    return found is not None and bool(found.values)


def _is_live(group: Rounds) -> bool:
    return group[0].case.live is not None


def _arrives(group: Rounds) -> bool:
    live = group[0].case.live
    return live is not None and bool(live.arrivals)
