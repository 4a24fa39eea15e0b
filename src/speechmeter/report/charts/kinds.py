"""The kinds of figures by the word that `speechmeter plot --kind` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from speechmeter.analysis.metric_names import is_in_family
from speechmeter.core.errors import InputError
from speechmeter.core.plugins import nearest
from speechmeter.core.types import Record
from speechmeter.report.charts import (
    against_latency,
    cold_start,
    energy,
    front,
    frontier,
    grid,
    losses,
    machines,
    memory,
    modules,
    scaling,
    stages,
)
from speechmeter.report.charts.figure import Figure, caveats_of
from speechmeter.report.sources import Source

Draw = Callable[[Sequence[Source]], Iterable[Figure]]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How a kind is drawn, and what a run needs for it, in words.

    `draw` gives all its figures, for the page; `on_paper` those of a plot, where they differ. Words behind the kind
    (`grid:rtf`) name metrics, whose figures a file then holds; a kind with words of its own has `by_words`.
    """

    draw: Draw
    needs: str
    on_paper: Draw | None = None
    by_words: Callable[[Sequence[Source], Sequence[str]], Iterable[Figure]] | None = None

    def plot(self, sources: Sequence[Source], words: Sequence[str]) -> list[Figure]:
        """The figures of a file. Raises InputError for a word that means none of them."""
        if self.by_words is not None:
            return list(self.by_words(sources, words))
        figures = list((self.on_paper or self.draw)(sources))
        names = {metric.name: None for figure in figures for metric in figure.definitions}
        for word in words if figures else ():
            figures = [one for one in figures if any(is_in_family(metric, word) for metric in one.definitions)]
            if not figures:
                raise InputError(f"there is no figure of {word}", where="--kind", fix=nearest(word, list(names)))
        return figures


def of_each(figures: Callable[[Source], Iterable[Figure]]) -> Draw:
    """The figures of each source; where there are several sources, each with its name in front."""

    def draw(sources: Sequence[Source]) -> Iterator[Figure]:
        for source in sources:
            for figure in figures(source):
                made = _told(figure, source.records)
                yield made if len(sources) == 1 else replace(made, title=f"{source.name}: {made.title}")

    return draw


def _of_all(figures: Draw) -> Draw:
    """Figures of several sources together."""

    def draw(sources: Sequence[Source]) -> Iterator[Figure]:
        records = [record for source in sources for record in source.records]
        return (_told(figure, records) for figure in figures(sources))

    return draw


def _told(figure: Figure, records: Sequence[Record]) -> Figure:
    """With the caveats of these records, where it has none of its own."""
    if figure.caveats is not None:
        return figure
    return replace(figure, caveats=caveats_of(records, sampled=figure.sampled))


KINDS: dict[str, Kind] = {
    "grid": Kind(draw=of_each(grid.figures), needs="a case with latency or memory"),
    "scaling": Kind(
        draw=of_each(scaling.figures), needs="a figure at several seconds or batch sizes", by_words=scaling.plotted
    ),
    "frontier": Kind(
        draw=of_each(frontier.figures), needs="a search (run --find), or a grid in which a cell ran out of memory"
    ),
    "front": Kind(draw=of_each(front.figures), needs="systems with a score (meter quality) and latency"),
    "modules": Kind(draw=of_each(modules.figures), needs="the time of modules (meter modules)"),
    "memory": Kind(draw=of_each(memory.figures), needs="memory through a step (meter timeline)"),
    "losses": Kind(draw=of_each(losses.figures), needs="transducer losses with latency"),
    "cold-start": Kind(draw=of_each(cold_start.figures), needs="the time of loading or of the first call"),
    "parameters": Kind(
        draw=of_each(against_latency.figures),
        needs="parameters or FLOPs, and latency, of several models or sizes",
        on_paper=of_each(lambda source: against_latency.figures(source, spread=True)),
    ),
    "energy": Kind(draw=of_each(energy.figures), needs="energy that a sensor read (meter energy)"),
    "machines": Kind(
        draw=_of_all(machines.figures), needs="the same cells on two machines: name both runs, or a merged one"
    ),
    "stages": Kind(draw=of_each(stages.figures), needs="latency by stage"),
}
"""In the order of the page."""
