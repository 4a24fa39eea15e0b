"""How much load a live system carries within an SLO: a row for each level, and the bracket in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from speechmeter.analysis.assumed import OF_CAPACITY, Assumed, check_view
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.intervals import Quantity
from speechmeter.analysis.live.capacity import RATE, STREAMS, Capacity, LoadLevel, capacities, goodput
from speechmeter.analysis.live.verdict import LEAST_LATENCIES, Judged
from speechmeter.core import metrics
from speechmeter.core.axes import REALTIME
from speechmeter.core.errors import InputError
from speechmeter.core.metrics import Metric
from speechmeter.core.slo import EXAMPLE, Bound, Slo
from speechmeter.core.types import Record
from speechmeter.report.labels import case_labels
from speechmeter.report.numbers import counted, number
from speechmeter.report.tables import NOT_MEASURED, Cell, Row, Table, cell_of, list_table

_RULE = (
    "a level passes if all bounds are met and fails if one is violated, each with 95 % confidence; otherwise it is "
    f"undecided. To pass, a round must last at least {LEAST_LATENCIES} times the mean delay, and its second half must "
    "not be slower than its first. A conversation without an answer violates every bound on a delay."
)
_COSTS = (metrics.CLIENT_SLIP_P99, metrics.MEMORY_SERVER, metrics.MEMORY_LIVE, metrics.POWER_GPU, metrics.POWER_CPU,
          metrics.POWER_SYSTEM)  # fmt: skip
_MOST_ROUNDS = 10_000


def capacity(records: Sequence[Record], slo: Slo | None = None, assumed: Assumed | None = None) -> list[Table]:
    """One table: each system at each level, in order. Raises InputError for live cases without an SLO.

    `assumed` may state the price of the machine, for the cost at capacity.
    """
    check_view(assumed or {}, "capacity")
    if all(record.case.live is None for record in records):
        return []
    if slo is None:
        raise InputError("`metric: capacity` needs an SLO, and the run has none", key="slo", fix=EXAMPLE)
    found = capacities(records, slo)
    if not found:
        return []
    names = case_labels([level.records[0] for one in found for level in one.levels])
    costs = [metric for metric in _COSTS if any(map(_holds(metric), records))]
    rows, notes = [], []
    for one in found:
        name = without_level(names[one.levels[0].records[0].case.id])
        rows += [_row(name, one, level, slo, costs) for level in one.levels]
        notes.append(f"{name}: {sentence(one)}.")
        notes += [f"{name}, {cost}." for cost in _cost(one, assumed or {})]
        if not one.unserved:
            notes += [f"{name}, {at(one, level)}: {why}." for level in one.between if (why := settles(level))]
    columns = ("verdict", *map(heading, slo.bounds), metrics.LIVE_THROUGHPUT.title, metrics.GOODPUT.title,
               *(metric.title for metric in costs), "rounds")  # fmt: skip
    shown = (metrics.SLO_SHARE, metrics.LIVE_THROUGHPUT, metrics.GOODPUT, *costs)
    rule = [_RULE, f"SLO: {slo.text}."]
    if slo.first_round:
        rule.append("the first round of a search only chose the levels; the verdicts are from the later rounds.")
    return [list_table("capacity", ("system", "level"), shown, rows, [*rule, *notes], columns=columns)]


def _holds(metric: Metric) -> Callable[[Record], bool]:
    """Whether a record has a reading: without a sensor there is no column."""
    return lambda record: bool((found := record.find(metric.id)) and found.values)


def _cost(one: Capacity, assumed: Assumed) -> list[str]:
    """What an hour costs at the highest level that passes: of a stream, or of audio where requests arrive at a rate."""
    price, level = assumed.get(OF_CAPACITY), one.passes
    if price is None or level is None:
        return []
    through = estimate(level.records, metrics.LIVE_THROUGHPUT)
    paced = level.records[0].case.axes.pace == REALTIME
    share = level.level if paced and one.axis == STREAMS else None if through is None else through.value
    if not share:
        return []
    what = "a stream" if paced and one.axis == STREAMS else "audio"
    return [f"{at(one, level)}: an hour of {what} costs {price / share:.3g}, if an hour of the machine costs {price:g}"]


def heading(bound: Bound) -> str:
    """What a column of a bound says: `final delay ≤ 0.8 s (95 %)`."""
    if bound.on_completeness:
        return f"complete (≥ {bound.limit:g} %)"
    limit = number(bound.limit, bound.metric.unit)
    return f"{bound.metric.title} ≤ {limit}" + (f" (≥ {100 * bound.share:g} %)" if bound.share is not None else "")


def at(one: Capacity, level: LoadLevel) -> str:
    """`4 streams` or `2.5 per second`."""
    return f"{level.level:g} per second" if one.axis == RATE else counted(int(level.level), "stream")


def _row(name: str, one: Capacity, level: LoadLevel, slo: Slo, costs: Sequence[Metric]) -> Row:
    judged = level.found.judged if level.found.rounds or level.chosen_by is None else level.chosen_by.judged
    good = goodput(level.records, slo)
    word = "error" if one.unserved else _word(level)
    cells = [Cell(word=word), *map(_judged_cell, judged), cell_of(level.records, metrics.LIVE_THROUGHPUT)]
    cells.append(Cell(word=NOT_MEASURED) if good is None else Cell(estimate=_plain(metrics.GOODPUT, good, level)))
    cells += [cell_of(level.records, metric, statistic="max") for metric in costs]
    return Row(labels=(name, at(one, level)), cells=(*cells, Cell(word=str(len(level.records)))))


def _word(level: LoadLevel) -> str:
    if level.found.rounds or level.chosen_by is None:
        return "client-bound" if level.is_client_bound and level.found.word != "passes" else level.word
    return "not confirmed: " + ("within" if level.chosen_by.is_within else "beyond")


def _plain(metric: Metric, value: float, level: LoadLevel) -> Quantity:
    return Quantity(
        metric=metric, value=value, low=None, high=None, rounds=len(level.records), samples_per_round=1
    )  # fmt: skip


def _judged_cell(one: Judged) -> Cell:
    if one.value is None:
        return Cell(word="unavailable", reason=one.reason)
    if math.isinf(one.value):
        return Cell(word="no text in time")
    scale, metric = (100.0, metrics.SLO_SHARE) if one.bound.share is not None else (1.0, one.bound.metric)
    known = one.low is not None and one.high is not None and one.low < one.high
    figure = Quantity(
        metric=metric, value=scale * one.value, low=scale * one.low if known and one.low is not None else None,
        high=scale * one.high if known and one.high is not None else None, rounds=1, samples_per_round=max(1, one.seen),
        statistic="difference" if one.bound.share is None else "exact",
    )  # fmt: skip
    return Cell(estimate=figure)


def without_level(name: str) -> str:
    """The name of a case without its number of streams or its rate."""
    return " · ".join(part for part in name.split(" · ") if part.partition(" ")[0] not in ("streams", "rate"))


def sentence(one: Capacity, *, short: bool = False) -> str:
    """The bracket, which bound broke first unless `short`, and whether the client was the limit."""
    if one.unserved:
        return f"no verdict: {one.unserved}"
    low, high = one.passes, one.fails
    late = [level for level in one.levels if level.is_client_bound and (low is None or level.level > low.level)]
    if late and (high is None or late[0].level <= high.level):
        least = "no level is known to pass" if low is None else f"at least {at(one, low)}"
        if short:
            return f"{least} (client-bound)"
        return (
            f"{least}; at {at(one, late[0])} the client itself was late (client-bound), so this is a lower bound: use "
            "a faster client machine"
        )
    broke = (
        "" if high is None or short else f" ({', '.join(_broken(bound) for bound in high.found.broken)} broke first)"
    )
    if low is None and high is None:
        return "every level is undecided"
    if high is None:
        assert low is not None
        return f"carries {at(one, low)}; no higher level is known to fail"
    if low is None:
        return f"fails at {at(one, high)}{broke}; no lower level is known to pass"
    return f"carries {at(one, low)}, fails at {at(one, high)}{broke}"


def _broken(judged: Judged) -> str:
    return judged.bound.text.partition("=")[0]


def settles(level: LoadLevel) -> str:
    """What would decide a level that is undecided; empty where the client was the limit."""
    if level.is_client_bound:
        return ""
    if not level.found.rounds:
        return "not confirmed: it was tested in the first round only"
    parts = list(level.found.reasons)
    open_ones = [one for one in level.found.judged if one.word == "undecided"]
    parts += [text for one in open_ones if (text := _more(one, level.found.rounds))]
    return f"undecided after {counted(level.found.rounds, 'round')}: {'; '.join(parts)}" if parts else ""


def _more(one: Judged, rounds: int) -> str:
    name = _broken(one)
    if one.value is None:
        return f"{name}: {one.reason}"
    if rounds < 2:
        return f"{name}: a verdict needs at least 2 rounds"
    share, seen = one.bound.share, one.seen
    if share is not None and one.value >= share and seen < one.bound.least_conversations:
        return f"{name}: {seen:,} conversations are too few; at least {one.bound.least_conversations:,} are needed"
    assert one.low is not None and one.high is not None
    edge = one.bound.limit if share is None else share
    distance, half = abs(one.value - edge), max(one.value - one.low, one.high - one.value)
    need = math.ceil(rounds * (half / distance) ** 2) if distance > 0 else _MOST_ROUNDS + 1
    if need > _MOST_ROUNDS:
        return f"{name} is at its limit"
    return f"{name}: about {max(need, rounds + 1):,} rounds like these would decide"
