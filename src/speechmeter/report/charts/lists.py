"""Costs as lists of dots, one line a case, model, loss or cell: cold start, size, energy, losses, machines."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.compare import Verdict
from speechmeter.analysis.conditions import SharedCell, shared_cells
from speechmeter.analysis.estimate import estimate
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.report.charts import against_latency
from speechmeter.report.charts.figure import Figure, Rows, bounds, interval_words, reading, sentence, shortened, unit_of
from speechmeter.report.charts.marks import SERIES, cut, dots
from speechmeter.report.labels import cell_names
from speechmeter.report.losses import Ranking, rankings
from speechmeter.report.sources import Source, by_machine
from speechmeter.report.tables import cell_of

_PHASES = {"load": metrics.LATENCY_LOAD, "first call": metrics.LATENCY_FIRST, "steady call": metrics.LATENCY}
_DOMAINS = {
    "GPU": (metrics.ENERGY_GPU, metrics.ENERGY_GPU_NET),
    "processor": (metrics.ENERGY_CPU, metrics.ENERGY_CPU_NET),
    "system": (metrics.ENERGY_SYSTEM, metrics.ENERGY_SYSTEM_NET),
}
_GROSS, _NET = "idle included", "net of idle"
_OF_LOSSES = (metrics.LATENCY, metrics.FLOOR_RATIO, metrics.MEMORY_CUDA_GROWTH, metrics.MEMORY_CPU_PEAK)
_OVER_ROUNDS = "with 95 % intervals over rounds"


def cold_start(source: Source) -> list[Figure]:
    """One figure with a line a case: load, first call, steady call, where load or first call were timed."""
    labels = shortened(source.labels)
    rows, left_out = cut(
        {"label": labels[key], SERIES: phase, **reading(found)}
        for key, group in source.cases.items()
        for phase, metric in _PHASES.items()
        if (found := estimate(group, metric)) is not None
    )
    if all(row[SERIES] == "steady call" for row in rows):
        return []
    caption = sentence("loading, the first call and a steady call of each case", interval_words(rows, _OVER_ROUNDS))
    return [
        Figure(
            title="cold start",
            caption=caption + left_out,
            spec=dots(rows, unit_of(metrics.LATENCY, bounds(rows), "time"), series="phase", ordered=tuple(_PHASES)),
            columns=(("label", "case"), (SERIES, "phase"), ("text", "time")),
            definitions=tuple(_PHASES.values()),
        )
    ]


def arithmetic(source: Source) -> list[Figure]:
    """Parameters by model, FLOPs by case, and both against latency."""
    made = []
    models: dict[str, Rows] = {}  # parameters do not depend on what a model is fed: the first case that has them
    for group in source.cases.values():
        name, found = group[0].case.subject.name, estimate(group, metrics.PARAMETERS)
        if found is not None and name not in models:
            models[name] = [{"label": name, **reading(found)}]
    rows, left_out = cut(row for own in models.values() for row in own)
    if any(row["value"] for row in rows):
        made.append(_counted_figure("parameters", metrics.PARAMETERS, rows, "model", left_out))
    labels = shortened(source.labels)
    rows, left_out = cut(
        {"label": labels[key], **reading(found)}
        for key, group in source.cases.items()
        if (found := estimate(group, metrics.FLOPS)) is not None
    )
    if rows:
        made.append(_counted_figure("FLOPs of one call", metrics.FLOPS, rows, "case", left_out))
    return [*made, *against_latency.figures(source)]


def _counted_figure(title: str, metric: Metric, rows: Rows, heading: str, left_out: str) -> Figure:
    return Figure(
        title=title,
        caption=f"Counted, not sampled: there is no interval.{left_out}",
        sampled=False,
        spec=dots(rows, unit_of(metric, bounds(rows))),
        columns=(("label", heading), ("text", metric.title)),
        definitions=(metric,),
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
                {"label": labels[key], SERIES: name, **reading(found)}
                for key, group in source.cases.items()
                for name, metric in zip((_GROSS, _NET), pair, strict=True)
                if (found := estimate(group, metric)) is not None
            )
            if rows:
                figure = Figure(
                    title=f"{title}, {domain}",
                    caption=sentence("read by sensors", interval_words(rows, _OVER_ROUNDS)) + left_out,
                    spec=dots(rows, unit_of(pair[0], bounds(rows)), series="energy", ordered=(_GROSS, _NET)),
                    columns=(("label", "case"), (SERIES, "energy"), ("text", "figure")),
                    definitions=pair,
                )
                made.append(figure)
                break
    return made


def losses(source: Source) -> list[Figure]:
    """For the loss alone and for the whole step: a figure of each cost; losses without a figure are named as well."""
    found = [_loss_figure(ranking, metric) for ranking in rankings(source.records) for metric in _OF_LOSSES]
    return [figure for figure in found if figure is not None]


def _loss_figure(ranking: Ranking, metric: Metric) -> Figure | None:
    cells = [(group[0].case.subject.name, cell_of(group, metric)) for group in [*ranking.ranked, *ranking.others]]
    values = [cell.estimate.value for _, cell in cells if cell.estimate is not None]
    unit = unit_of(metric, values)
    rows = [
        {"label": name, **reading(cell.estimate, unit.factor)}
        if cell.estimate is not None
        else {"label": name, "word": cell.word, "text": cell.word}
        for name, cell in cells
    ]
    if not values:
        return None
    kept, left_out = cut(rows)
    caption = sentence(
        "fastest first",
        interval_words(kept, _OVER_ROUNDS),
        "losses without a figure are last" if any(row.get("word") for row in kept) else "",
    )
    return Figure(
        title=f"{ranking.title}: {metric.title}",
        caption=caption + left_out,
        spec=dots(kept, unit),
        columns=(("label", "loss"), ("text", metric.title)),
        definitions=(metric,),
    )


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
            "cells that machines share", interval_words(kept, _OVER_ROUNDS), f"the table has ratios to {seen[0]}"
        )
        figure = Figure(
            title=f"{model}: latency by machine",
            caption=caption + left_out,
            spec=dots(kept, unit_of(metrics.LATENCY, bounds(kept)), series="machine", ordered=seen),
            columns=(("label", "cell"), (SERIES, "machine"), ("text", "latency"), ("ratio", f"ratio to {seen[0]}")),
            definitions=(metrics.LATENCY,),
        )
        made.append(figure)
    return made


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
