"""The kinds of figures by the word that `speechmeter plot --kind` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from speechmeter.report.charts import (
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
from speechmeter.report.charts.figure import Figure
from speechmeter.report.sources import Source

Draw = Callable[[Sequence[Source]], Iterable[Figure]]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How a kind is drawn, and what a run needs for it, in words."""

    draw: Draw
    needs: str


def of_each(figures: Callable[[Source], Iterable[Figure]]) -> Draw:
    """The figures of each source; where there are several sources, each with its name in front."""

    def draw(sources: Sequence[Source]) -> Iterator[Figure]:
        for source in sources:
            for figure in figures(source):
                yield figure if len(sources) == 1 else replace(figure, title=f"{source.name}: {figure.title}")

    return draw


KINDS: dict[str, Kind] = {
    "grid": Kind(draw=of_each(grid.figures), needs="a case with latency or memory"),
    "scaling": Kind(draw=of_each(scaling.figures), needs="latency at several seconds or batch sizes"),
    "frontier": Kind(
        draw=of_each(frontier.figures), needs="a search (run --find), or a grid in which a cell ran out of memory"
    ),
    "front": Kind(draw=of_each(front.figures), needs="systems with a score (meter quality) and latency"),
    "modules": Kind(draw=of_each(modules.figures), needs="the time of modules (meter modules)"),
    "memory": Kind(draw=of_each(memory.figures), needs="memory through a step (meter timeline)"),
    "losses": Kind(draw=of_each(losses.figures), needs="transducer losses with latency"),
    "cold-start": Kind(draw=of_each(cold_start.figures), needs="the time of loading or of the first call"),
    "energy": Kind(draw=of_each(energy.figures), needs="energy that a sensor read (meter energy)"),
    "machines": Kind(draw=machines.figures, needs="the same cells on two machines: name both runs, or a merged one"),
    "stages": Kind(draw=of_each(stages.figures), needs="latency by stage"),
}
"""In the order of the page."""
