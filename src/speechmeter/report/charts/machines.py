"""The same cells on several machines, side by side, with the ratio of each to the first."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.compare import Verdict
from speechmeter.analysis.conditions import SharedCell, shared_cells
from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.report.charts.dots import SERIES, cut, dots
from speechmeter.report.charts.figure import Figure, Rows, bounds, interval_words, reading, sentence, unit_of
from speechmeter.report.grids import cell_names
from speechmeter.report.sources import Source, by_machine


def figures(sources: Sequence[Source]) -> list[Figure]:
    """A figure a model, with a line a cell that at least two machines have."""
    machines = by_machine(sources)
    cells = shared_cells(machines)
    models = list(dict.fromkeys(cell.case.subject.name for cell in cells))
    made = []
    for model in models:
        own = [cell for cell in cells if cell.case.subject.name == model]
        names = cell_names([cell.case for cell in own])
        rows = [row for cell, name in zip(own, names, strict=True) for row in _rows(cell, name)]
        if rows:
            made.append(_figure(model, rows, list(machines)))
    return made


def _rows(cell: SharedCell, name: str) -> Rows:
    verdicts = cell.verdicts(metrics.LATENCY)
    return [
        {"label": name, SERIES: machine, **reading(found), "ratio": ratio_text(verdicts.get(machine))}
        for machine, rounds in cell.rounds.items()
        if (found := estimate(rounds, metrics.LATENCY)) is not None
    ]


def ratio_text(verdict: Verdict | None) -> str:
    """`0.050 [0.047, 0.053] FASTER`: to the first machine; `1` for that one itself."""
    if verdict is None:
        return "1"
    if verdict.ratio is None:
        return verdict.reason
    interval = "" if verdict.low is None or verdict.high is None else f" [{verdict.low:.3g}, {verdict.high:.3g}]"
    return f"{verdict.ratio:.3g}{interval} {verdict.word}"


def _figure(model: str, rows: Rows, machines: list[str]) -> Figure:
    kept, left_out = cut(rows)
    seen = tuple(machine for machine in machines if any(row[SERIES] == machine for row in kept))
    return Figure(
        title=f"{model}: latency by machine",
        caption=sentence(
            "cells that machines share",
            interval_words(kept, "with 95 % intervals over rounds"),
            f"the table has ratios to {seen[0]}",
        )
        + left_out,
        spec=dots(kept, unit_of(metrics.LATENCY, bounds(kept)), series="machine", ordered=seen),
        columns=(("label", "cell"), (SERIES, "machine"), ("text", "latency"), ("ratio", f"ratio to {seen[0]}")),
        definitions=(metrics.LATENCY,),
    )
