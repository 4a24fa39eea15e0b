"""Costs as lists of dots, one line a case, model, loss or cell: cold start, size, energy, losses, machines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from speechmeter.analysis.answers import EXACT_WITHIN
from speechmeter.analysis.compare import Verdict
from speechmeter.analysis.conditions import SharedCell, shared_cells
from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.analysis.leading import lead
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.charts import against_latency
from speechmeter.report.charts.colours import models_of
from speechmeter.report.charts.figure import (
    Figure,
    Rows,
    bounds,
    interval_words,
    log_words,
    reading,
    sentence,
    shortened,
    unit_of,
)
from speechmeter.report.charts.findings import best_words, headline, in_all, named
from speechmeter.report.charts.marks import SERIES, cut, dots
from speechmeter.report.labels import cell_names
from speechmeter.report.losses import Ranking, rankings
from speechmeter.report.numbers import number
from speechmeter.report.sources import Source, by_machine
from speechmeter.report.tables import Cell, cell_of

_PHASES = {"load": metrics.LATENCY_LOAD, "first call": metrics.LATENCY_FIRST, "steady call": metrics.LATENCY}
_DOMAINS = {
    "GPU": (metrics.ENERGY_GPU, metrics.ENERGY_GPU_NET),
    "processor": (metrics.ENERGY_CPU, metrics.ENERGY_CPU_NET),
    "system": (metrics.ENERGY_SYSTEM, metrics.ENERGY_SYSTEM_NET),
}
_IN_WORDS = {"load": "Loading", "first call": "The first call", "steady call": "A steady call"}
_MANY = 12
"""With more cases than this, one of each model is drawn."""
_GROSS, _NET = "idle included", "net of idle"
_OF_CALL = {metrics.FLOPS: "FLOPs of one call"}
_OF_LOSSES = (metrics.LATENCY, metrics.FLOOR_RATIO, metrics.MEMORY_CUDA_GROWTH, metrics.MEMORY_CPU_PEAK)
_OVER_ROUNDS = "with 95 % intervals over rounds"


def cold_start(source: Source) -> list[Figure]:
    """One figure with a line a case: load, first call, steady call, where load or first call were timed."""
    chosen = _one_of_each_model(source) if len(source.cases) > _MANY else source.cases
    labels = shortened({key: source.labels[key] for key in chosen})
    if len(chosen) == 1:
        labels = {key: group[0].case.subject.name for key, group in chosen.items()}
    rows, left_out = cut(
        {"label": labels[key], "model": group[0].case.subject.name, SERIES: phase, **reading(found)}
        for key, group in chosen.items()
        for phase, metric in _PHASES.items()
        if (found := estimate(group, metric)) is not None
    )
    if all(row[SERIES] == "steady call" for row in rows):
        return []
    shown = [phase for phase in _PHASES if any(row[SERIES] == phase for row in rows)]
    fewer = "for each model, the first case that was measured" if chosen is not source.cases else ""
    unit = unit_of(metrics.LATENCY, bounds(rows), "time")
    return [
        Figure(
            title=headline(_slowest_phase(chosen), f"cold start: {named(shown)}"),
            caption=sentence(fewer, interval_words(rows, _OVER_ROUNDS)) + left_out,
            spec=dots(rows, unit, series="phase", ordered=tuple(_PHASES), models=models_of(source.records)),
            columns=(("label", "case"), (SERIES, "phase"), ("text", "time")),
            definitions=tuple(_PHASES.values()),
        )
    ]


def _one_of_each_model(source: Source) -> dict[str, list[Record]]:
    """The first case of each model in each setting that was measured: loading does not depend on the input."""
    found: dict[str, tuple[str, list[Record]]] = {}
    for key, group in source.cases.items():
        if estimate(group, metrics.LATENCY_LOAD) or estimate(group, metrics.LATENCY_FIRST):
            found.setdefault(group[0].case.subject.name, (key, group))
    return dict(found.values())


def _slowest_phase(cases: Mapping[str, Sequence[Record]]) -> str:
    """Which phase takes longest, where it is the same one in all cases that have several."""
    times = [
        {phase: found for phase, metric in _PHASES.items() if (found := estimate(group, metric))}
        for group in cases.values()
    ]
    slowest, limit = in_all([lead(own, largest=True) for own in times if len(own) > 1])
    return f"{_IN_WORDS[slowest]} takes longest{limit}" if slowest else ""


def arithmetic(source: Source) -> list[Figure]:
    """Parameters by model, FLOPs by case, and both against latency."""
    made = []
    models: dict[str, Rows] = {}  # parameters do not depend on what a model is fed: the first case that has them
    for group in source.cases.values():
        name, found = group[0].case.subject.name, estimate(group, metrics.PARAMETERS)
        if found is not None and name not in models:
            models[name] = [{"label": name, "model": name, **reading(found)}]
    rows, left_out = cut(row for own in models.values() for row in own)
    every = models_of(source.records)
    if any(row["value"] for row in rows):
        made.append(_counted_figure(metrics.PARAMETERS, rows, "model", left_out, every))
    labels = shortened(source.labels)
    rows, left_out = cut(
        {"label": labels[key], "model": group[0].case.subject.name, **reading(found)}
        for key, group in source.cases.items()
        if (found := estimate(group, metrics.FLOPS)) is not None
    )
    if rows:
        made.append(_counted_figure(metrics.FLOPS, rows, "case", left_out, every))
    return [*made, *against_latency.figures(source)]


def _counted_figure(metric: Metric, rows: Rows, heading: str, left_out: str, models: Sequence[str]) -> Figure:
    ordered = sorted(rows, key=lambda row: float(row["value"]))
    ends = list(dict.fromkeys(row["text"] for row in (ordered[0], ordered[-1])))
    one = f": {ordered[0]['label']}" if len({row["label"] for row in rows}) == 1 else f" of each {heading}"
    return Figure(
        title=headline("", f"{_OF_CALL.get(metric, metric.title)}{one}, {' to '.join(ends)}"),
        caption=f"Counted, not sampled: there is no interval.{left_out}",
        sampled=False,
        spec=dots(rows, unit_of(metric, bounds(rows)), models=models),
        columns=(("label", heading), ("text", metric.title)),
        definitions=(metric,),
        trivial=len(rows) == 1,
    )


def energy(source: Source) -> list[Figure]:
    """A figure for each domain that a sensor read: per audio hour, or per call where there is no audio."""
    held = {m.metric for record in source.records for m in record.measurements if m.values}
    labels = shortened(source.labels)
    made = []
    for domain, of_call in _DOMAINS.items():
        if of_call[0].id not in held:
            continue
        per_hour = tuple(metrics.ENERGY_PER_AUDIO_HOUR[metric] for metric in of_call)
        for title, pair in (("energy per audio hour", per_hour), ("energy of a call", of_call)):
            rows, left_out = cut(
                {"label": labels[key], "model": group[0].case.subject.name, SERIES: name, **reading(found)}
                for key, group in source.cases.items()
                for name, metric in zip((_GROSS, _NET), pair, strict=True)
                if (found := estimate(group, metric)) is not None
            )
            if rows:
                found_ones = {
                    labels[key]: one for key, group in source.cases.items() if (one := estimate(group, pair[0]))
                }
                unit, every = unit_of(pair[0], bounds(rows)), models_of(source.records)
                figure = Figure(
                    title=headline(best_words(found_ones), f"{title}, {domain}"),
                    caption=sentence("read by sensors", interval_words(rows, _OVER_ROUNDS)) + left_out,
                    spec=dots(rows, unit, series="energy", ordered=(_GROSS, _NET), models=every),
                    columns=(("label", "case"), (SERIES, "energy"), ("text", "figure")),
                    definitions=pair,
                )
                made.append(figure)
                break
    return made


def losses(source: Source) -> list[Figure]:
    """For the loss alone and for the whole step: a figure of each cost; losses without a figure are named as well."""
    models = models_of(source.records)
    found = [_loss_figure(ranking, metric, models) for ranking in rankings(source.records) for metric in _OF_LOSSES]
    return [figure for figure in found if figure is not None]


def _loss_figure(ranking: Ranking, metric: Metric, models: Sequence[str]) -> Figure | None:
    cells = [(group[0].case.subject.name, cell_of(group, metric)) for group in [*ranking.ranked, *ranking.others]]
    cells.sort(key=lambda one: math.inf if one[1].estimate is None else one[1].estimate.value)
    values = [cell.estimate.value for _, cell in cells if cell.estimate is not None]
    unit = unit_of(metric, values)
    rows = [
        {"label": name, "model": name, **reading(cell.estimate, unit.factor), "short": _short(cell)}
        if cell.estimate is not None
        else {"label": name, "model": name, "word": cell.word, "text": cell.word}
        for name, cell in cells
    ]
    if not values:
        return None
    kept, left_out = cut(rows)
    figures = {name: cell.estimate for name, cell in cells if isinstance(cell.estimate, Estimate)}
    caption = sentence(
        "" if len(values) == 1 else "fastest first" if metric == metrics.LATENCY else "lowest first",
        interval_words(kept, _OVER_ROUNDS),
        log_words(bounds(kept)),
        _inexact_words(ranking),
        "losses without a value are last" if any(row.get("word") for row in kept) else "",
    )
    return Figure(
        title=headline(best_words(figures), f"{ranking.title}{_unless_said(metric, figures)}"),
        caption=caption + left_out,
        spec=dots(kept, unit, models=models),
        columns=(("label", "loss"), ("text", metric.title)),
        definitions=(metric,),
        trivial=len(rows) == 1,
    )


def _inexact_words(ranking: Ranking) -> str:
    """Which losses differ from the reference, where others do not: the answers of a study are of the exact ones."""
    ways = {group[0].case.subject.name: estimate(group, metrics.LOSS_DEVIATION) for group in ranking.ranked}
    others = [name for name, way in ways.items() if way is None or way.value >= EXACT_WITHIN]
    return f"not exact: {named(others, most=len(others))}" if len(others) < len(ways) and others else ""


def _unless_said(metric: Metric, figures: Mapping[str, Estimate]) -> str:
    """The metric, where the finding does not name it."""
    return "" if metric.title in best_words(figures) else f": {metric.title}"


def _short(cell: Cell) -> str:
    """The figure without its interval, which is drawn."""
    return "" if cell.estimate is None else number(cell.estimate.value, cell.estimate.metric.unit)


def machines(sources: Sequence[Source]) -> list[Figure]:
    """A figure a model: cells that at least two machines have, with the ratio of each machine to the first."""
    names = by_machine(sources)
    cells = shared_cells(names)
    made = []
    for model in dict.fromkeys(cell.case.subject.name for cell in cells):
        own = [cell for cell in cells if cell.case.subject.name == model]
        labels = cell_names([cell.case for cell in own])
        rows = [row for cell, label in zip(own, labels, strict=True) for row in _machine_rows(cell, label)]
        if not rows:
            continue
        kept, left_out = cut(rows)
        seen = tuple(machine for machine in names if any(row[SERIES] == machine for row in kept))
        caption = sentence(
            "cases that were measured on several machines",
            interval_words(kept, _OVER_ROUNDS),
            f"the table has ratios to {seen[0]}",
        )
        figure = Figure(
            title=headline(_fastest_machine(own), f"latency by machine: {model}"),
            caption=caption + left_out,
            spec=dots(kept, unit_of(metrics.LATENCY, bounds(kept)), series="machine", ordered=seen),
            columns=(("label", "cell"), (SERIES, "machine"), ("text", "latency"), ("ratio", f"ratio to {seen[0]}")),
            definitions=(metrics.LATENCY,),
        )
        made.append(figure)
    return made


def _fastest_machine(cells: Sequence[SharedCell]) -> str:
    """The machine that is fastest in all cells, as far as the intervals show; empty where none is."""
    leads = [
        lead(
            {machine: found for machine, rounds in cell.rounds.items() if (found := estimate(rounds, metrics.LATENCY))}
        )
        for cell in cells
    ]
    known = [one for one in leads if one is not None]
    best, limit = in_all(known)
    where = "" if len(known) == 1 else f" in all {len(known)} cells"
    return f"{best} is fastest{where}{limit}" if best else ""


def _machine_rows(cell: SharedCell, label: str) -> Rows:
    verdicts = cell.verdicts(metrics.LATENCY)
    return [
        {"label": label, SERIES: machine, **reading(found), "ratio": _ratio_text(verdicts.get(machine))}
        for machine, rounds in cell.rounds.items()
        if (found := estimate(rounds, metrics.LATENCY)) is not None
    ]


def _ratio_text(verdict: Verdict | None) -> str:
    """`0.050 [0.047, 0.053] FASTER`: to the first machine; `1` for that one itself."""
    if verdict is None:
        return "1"
    if verdict.ratio is None:
        return verdict.reason
    interval = "" if verdict.low is None or verdict.high is None else f" [{verdict.low:.3g}, {verdict.high:.3g}]"
    return f"{verdict.ratio:.3g}{interval} {verdict.word}"
