"""The largest that fits: against seconds or batch where they vary, else one line a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from speechmeter.analysis.frontier import Edge
from speechmeter.core import metrics
from speechmeter.report.charts.colours import models_of
from speechmeter.report.charts.figure import Figure, Rows, bounds, names_of, sentence, shortened, unit_of
from speechmeter.report.charts.findings import headline, named
from speechmeter.report.charts.marks import SERIES, curves, cut, dots
from speechmeter.report.frontier import other_axis, titled_edges, words_at
from speechmeter.report.numbers import figure as written
from speechmeter.report.sources import Source

_HEIGHT = 260
_AXES = {"seconds": "length of audio [s]", "batch": "batch size"}
_OPEN = "arrow: no larger size ran out of memory"
Lines = list[tuple[str, Edge]]


def figures(source: Source) -> Iterator[Figure]:
    """One for each axis that was searched; of an ordinary study only where a cell ran out of memory."""
    found: dict[tuple[str, str], Lines] = {}
    for title, edge in titled_edges(source.records):
        found.setdefault((edge.target.axis, other_axis(edge)), []).append((title, edge))
    for (axis, other), lines in found.items():
        known = [(title, edge) for title, edge in lines if edge.fits is not None or edge.fails is not None]
        if any(edge.searched or edge.fails is not None for _, edge in known):
            others = {edge.case.axes[other] for _, edge in known} if other else set()
            models = models_of(source.records)
            made = _curves(axis, other, known, models) if len(others) > 1 else _list(axis, known, models)
            # lines that ended for another reason than memory; some of them are not drawn at all
            ends = [f"{title}: {edge.ended}." for title, edge in lines if edge.ended]
            yield replace(made, caption=" ".join([made.caption, *ends]))


def _row(edge: Edge) -> dict[str, Any]:
    """What fits as the value; the interval reaches from there to what does not."""
    fits, fails = (None if figure is None else figure.value for figure in (edge.fits, edge.fails))
    text = "nothing fits" if edge.fits is None else written(edge.fits)
    model = edge.case.subject.name
    if fits is None:
        return {"model": model, "value": None, "low": None, "high": None, "text": text, "word": text}
    bound = {"low": fits, "high": fails} if fails is not None else {"low": None, "high": None, "open": True}
    return {"model": model, "value": fits, **bound, "text": text}


def _most(lines: Lines, names: Mapping[str, str]) -> str:
    """Which line takes the most; of one line, what that is."""
    sizes = {str(index): edge.fits for index, (_, edge) in enumerate(lines) if edge.fits is not None}
    if not sizes:
        return ""
    most = max(size.value for size in sizes.values())
    best = [key for key, size in sizes.items() if size.value == most]
    text = written(sizes[best[0]])
    if len(lines) == 1:
        return f"{names['0']}: the largest {lines[0][1].target.axis} is {_in_words(text)}"
    model_of = {str(index): edge.case.subject.name for index, (_, edge) in enumerate(lines)}
    whole = [
        model for model in dict.fromkeys(model_of.values()) if {k for k in names if model_of[k] == model} <= {*best}
    ]
    takers = [*whole, *(names[key] for key in best if model_of[key] not in whole)]
    return f"{named(takers)} {'fits' if len(takers) == 1 else 'fit'} the largest input: {_in_words(text)}"


def _in_words(text: str) -> str:
    """`at least 256`."""
    return text.replace("≥", "at least")


def _fall(axis: str, other: str, names: Sequence[str], rows: Rows) -> str:
    """From where to where the largest of one line goes; of several, which takes the most everywhere."""
    known = sorted((row for row in rows if row["value"] is not None), key=lambda row: float(row[other]))
    if not known:
        return ""
    if len(names) == 1:
        first, last = known[0], known[-1]
        unit = " s" if other == "seconds" else ""
        at = f"{other} " if other == "batch" else ""
        return (
            f"{names[0]}: the largest {axis} is {_in_words(first['text'])} at {at}{first[other]:g}{unit}, "
            f"{_in_words(last['text'])} at {at}{last[other]:g}{unit}"
        )
    own = [[row for row in known if row[other] == size] for size in {row[other] for row in known}]
    best = {row["line"] for rows in own for row in rows if row["value"] == max(one["value"] for one in rows)}
    return f"{next(iter(best))} fits the largest {axis} everywhere" if len(best) == 1 else ""


def _caption(rows: Rows, first: str, closed: str) -> str:
    """What dots are, where their lines end, and what an arrow means, as far as they are drawn."""
    some_closed, some_open = any(row["low"] is not None for row in rows), any(row.get("open") for row in rows)
    return sentence(first, closed if some_closed else "", _OPEN if some_open else "")


def _list(axis: str, lines: Lines, models: Sequence[str]) -> Figure:
    names = shortened({str(index): title for index, (title, _) in enumerate(lines)})
    if len(names) == 1:
        names = {"0": lines[0][0].partition(" · ")[0]}
    split, series = _split(list(names.values()))
    rows, left_out = cut({**label, **_row(edge)} for label, (_, edge) in zip(split, lines, strict=True))
    unit = unit_of(metrics.LARGEST_FITTING, bounds(rows), f"largest {axis} that fits")
    where = words_at(lines[0][1])
    return Figure(
        title=headline(_most(lines, names), f"largest {axis} that fits{f' at {where}' if where else ''}"),
        caption=_caption(rows, "", "the line ends at the smallest size that does not fit") + left_out,
        sampled=False,
        spec=dots(rows, unit, series=series, models=models),
        columns=(("label", "line"), *([(SERIES, series)] if series else []), ("text", f"largest {axis}")),
        definitions=(metrics.LARGEST_FITTING,),
    )


def _split(names: list[str]) -> tuple[list[dict[str, str]], str]:
    """(`label` of each line, and its series where lines of several names differ in one setting alone; what it is)."""
    parts = [name.split(" · ") for name in names]
    settings = {words[-1].partition(" ")[0] for words in parts}
    if len(settings) > 1 or {len(words) for words in parts} != {2} or len({words[0] for words in parts}) < 2:
        return [{"label": name} for name in names], ""
    (setting,) = settings
    return [{"label": name, SERIES: value.removeprefix(setting).strip()} for name, value in parts], setting


def _curves(axis: str, other: str, lines: Lines, models: Sequence[str]) -> Figure:
    titles = dict.fromkeys(title for title, _ in lines)
    names = names_of(titles)
    rows: Rows = [{"line": names[title], other: edge.case.axes[other], **_row(edge)} for title, edge in lines]
    unit = unit_of(metrics.LARGEST_FITTING, bounds(rows), f"largest {axis} that fits")
    return Figure(
        title=headline(_fall(axis, other, list(names.values()), rows), f"largest {axis} that fits, by {other}"),
        caption=_caption(rows, "sizes at dots fit", "a line above a dot ends at the smallest size that does not fit"),
        sampled=False,
        spec=curves(rows, other, _AXES[other], unit, f"largest {axis}", models, _HEIGHT),
        columns=(("line", "line"), (other, _AXES[other]), ("text", f"largest {axis}")),
        definitions=(metrics.LARGEST_FITTING,),
    )
