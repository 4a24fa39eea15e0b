"""The sections of the page, each only where there is something to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from speechmeter.core.metrics import Metric
from speechmeter.report.charts import arithmetic
from speechmeter.report.charts.figure import Figure
from speechmeter.report.charts.kinds import KINDS, Draw, of_each
from speechmeter.report.sources import Source

MOST_FIGURES = 24
"""A section with more figures than this is cut, and says how to get the others."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading with a sentence below it, and what is drawn there."""

    id: str
    title: str
    text: str
    draw: Draw


def _kind(name: str, keep: Callable[[Figure], bool] = lambda figure: True) -> Draw:
    return lambda sources: filter(keep, KINDS[name].draw(sources))


def _is_grid(figure: Figure) -> bool:
    """A single cell is not worth a picture where the table has it already."""
    return len(figure.rows) > 1


def _has_stages(figure: Figure) -> bool:
    return len({row["series"] for row in figure.rows}) > 1


SECTIONS = (
    Section(id="grid", title="Real-time factor and memory", draw=_kind("grid", _is_grid),
            text="Seconds of audio down, batch across; from dark (low) to yellow (high), on a logarithmic ramp."),
    Section(id="scaling", title="Latency against size and batch", draw=_kind("scaling"),
            text="How the time of a call grows with its input."),
    Section(id="frontier", title="Largest that fits", draw=_kind("frontier"),
            text="Up to which batch or length memory suffices; assumed: what fits also fits at every smaller value."),
    Section(id="cold-start", title="Cold start", draw=_kind("cold-start"),
            text="What it takes until calls are steady."),
    Section(id="arithmetic", title="Parameters and FLOPs", draw=of_each(arithmetic.figures),
            text="Size and arithmetic, and whether arithmetic predicts time."),
    Section(id="energy", title="Energy", draw=_kind("energy"), text="What sensors read, for an hour of audio."),
    Section(id="stages", title="Stages", draw=_kind("stages", _has_stages), text="Where the time of a call goes."),
    Section(id="modules", title="Modules", draw=_kind("modules"),
            text="Which module takes which share of a call, forward and backward."),
    Section(id="memory", title="Memory over the step", draw=_kind("memory"),
            text="When memory is allocated, and what holds it at the peak."),
    Section(id="losses", title="Transducer losses", draw=_kind("losses"),
            text="Time, memory and the ratio to the least time that the device allows."),
    Section(id="front", title="Accuracy against cost", draw=_kind("front"),
            text="Which system buys its accuracy most cheaply, as far as the intervals tell."),
    Section(id="machines", title="Machines compared", draw=_kind("machines"),
            text="The same cells on several machines. Their rounds cannot be paired, so ratios are unpaired."),
)  # fmt: skip
"""In the order of the page."""


def section_data(sources: Sequence[Source], defined: dict[str, Metric]) -> Iterator[dict[str, Any]]:
    """Sections that have figures; the metrics they show are added to `defined`."""
    for section in SECTIONS:
        figures = list(islice(section.draw(sources), MOST_FIGURES + 1))
        if not figures:
            continue
        defined.update((metric.id, metric) for figure in figures for metric in figure.definitions)
        yield {
            "id": section.id,
            "title": section.title,
            "text": section.text + _left_out(figures, section.id),
            "figures": [_figure(figure) for figure in figures[:MOST_FIGURES]],
        }


def _left_out(figures: Sequence[Figure], kind: str) -> str:
    if len(figures) <= MOST_FIGURES:
        return ""
    return f" The first {MOST_FIGURES} are drawn; `speechmeter plot RUN@model=… --kind {kind}` draws others."


def _figure(figure: Figure) -> dict[str, Any]:
    return {"title": figure.title, "caption": figure.caption, "spec": figure.spec, "columns": figure.columns}


def definition_data(defined: Iterable[Metric]) -> list[list[str]]:
    """Id, unit, title, which way is better, formula."""
    return [[m.id, m.unit, m.title, m.direction, m.formula] for m in sorted(defined, key=lambda metric: metric.id)]
