"""The sections of the page, each only where there is something to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.report.charts import arithmetic
from speechmeter.report.charts.figure import Figure
from speechmeter.report.charts.kinds import KINDS, Draw, of_each
from speechmeter.report.sources import Source

MOST_FIGURES = 24
"""A section with more figures than this is cut, and says how to get the others."""


Words = Callable[[Sequence[Figure]], str]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading with a sentence below it, and what is drawn there; both say no more than the figures hold.

    The id is the chart of a view (`report.views`), which is drawn unless the section has a `draw` of its own.
    """

    id: str
    title: str | Words
    text: str | Words
    keep: Callable[[Figure], bool] = lambda figure: True
    draw: Draw | None = None

    def figures(self, sources: Sequence[Source]) -> Iterator[Figure]:
        """What is drawn here."""
        return filter(self.keep, (self.draw or KINDS[self.id].draw)(sources))


def _is_grid(figure: Figure) -> bool:
    """A single cell is not worth a picture where the table has it already."""
    return len(figure.rows) > 1


def _has_stages(figure: Figure) -> bool:
    return len({row["series"] for row in figure.rows}) > 1


def _listed(parts: Mapping[str, Sequence[Metric]], then: str = "") -> Words:
    """Those of the parts whose metrics some figure shows, as `A, b and c`."""

    def words(figures: Sequence[Figure]) -> str:
        shown = {metric for figure in figures for metric in figure.definitions}
        found = [part for part, those in parts.items() if shown & set(those)]
        text = " and ".join(filter(None, [", ".join(found[:-1]), *found[-1:]]))
        return f"{text[:1].upper()}{text[1:]}{then}"

    return words


def _any(start: str, more: str, holds: Callable[[Figure], bool]) -> Words:
    """The start of a sentence, and more of it where it holds of some figure."""
    return lambda figures: f"{start}{more if any(map(holds, figures)) else ''}."


_MEMORY = (metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CPU_PEAK, metrics.MEMORY_CUDA_ALLOCATED)
_HOURLY = set(metrics.ENERGY_PER_AUDIO_HOUR.values())

SECTIONS = (
    Section(id="grid", keep=_is_grid,
            title=_listed({"real-time factor": (metrics.RTF,), "latency": (metrics.LATENCY,), "memory": _MEMORY}),
            text=_any("From dark (low) to yellow (high)", "; seconds of audio down, batch across",
                      lambda figure: any(row["row"] != "all" for row in figure.rows))),
    Section(id="scaling", title="Latency against size and batch",
            text="How the time of a call grows with its input."),
    Section(id="frontier", title="Largest that fits",
            text="Up to which batch or length memory suffices; assumed: what fits also fits at every smaller value."),
    Section(id="cold-start", title="Cold start",
            text="What it takes until calls are steady."),
    Section(id="arithmetic", draw=of_each(arithmetic.figures),
            title=_listed({"parameters": (metrics.PARAMETERS,), "FLOPs": (metrics.FLOPS,)}),
            text=_any("Size and arithmetic", ", and whether arithmetic predicts time",
                      lambda figure: metrics.LATENCY in figure.definitions)),
    Section(id="energy", title="Energy",
            text=_any("What sensors read", ", for an hour of audio",
                      lambda figure: bool(_HOURLY & set(figure.definitions)))),
    Section(id="stages", title="Stages", keep=_has_stages, text="Where the time of a call goes."),
    Section(id="modules", title="Modules",
            text=_any("Which module takes which share of a call", ", forward and backward",
                      lambda figure: any(row["way"] == "backward" for row in figure.rows))),
    Section(id="memory", title="Memory over the step",
            text=_any("When memory is allocated", ", and what holds it at the peak",
                      lambda figure: any("module" in row for row in figure.rows))),
    Section(id="losses", title="Transducer losses",
            text=_listed({"time": (metrics.LATENCY,), "memory": (metrics.MEMORY_CUDA_GROWTH, metrics.MEMORY_CPU_PEAK),
                          "the ratio to the least time that the device allows": (metrics.FLOOR_RATIO,)}, ".")),
    Section(id="front", title="Accuracy against cost",
            text="Each system by its score and its cost; no other system beats one that is on the front."),
    Section(id="machines", title="Machines compared",
            text="The same cells on several machines. Their rounds cannot be paired, so ratios are unpaired."),
)  # fmt: skip
"""In the order of the page."""


def section_data(sources: Sequence[Source], defined: dict[str, Metric]) -> Iterator[dict[str, Any]]:
    """Sections that have figures; the metrics they show are added to `defined`."""
    for section in SECTIONS:
        figures = list(islice(section.figures(sources), MOST_FIGURES + 1))
        if not figures:
            continue
        defined.update((metric.id, metric) for figure in figures for metric in figure.definitions)
        title, text = (said if isinstance(said, str) else said(figures) for said in (section.title, section.text))
        yield {
            "id": section.id,
            "title": title,
            "text": text + _left_out(figures, section.id if section.id in KINDS else "parameters"),
            "figures": [_figure(figure) for figure in figures[:MOST_FIGURES]],
        }


def _left_out(figures: Sequence[Figure], kind: str) -> str:
    if len(figures) <= MOST_FIGURES:
        return ""
    return f" The first {MOST_FIGURES} are drawn; `speechmeter plot RUN@model=… --kind {kind}` draws others."


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "title": figure.title,
        "caption": figure.caption,
        "caveats": list(figure.caveats or ()),
        "spec": figure.spec,
        "columns": figure.columns,
    }


def definition_data(defined: Iterable[Metric]) -> list[list[str]]:
    """Id, unit, title, which way is better, formula."""
    return [[m.id, m.unit, m.title, m.direction, m.formula] for m in sorted(defined, key=lambda metric: metric.id)]
