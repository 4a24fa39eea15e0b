"""Charts of runs for notebooks: the figures of the page and of `speechmeter plot`, as Altair charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from speechmeter.core.types import Record
from speechmeter.report.charts import check_installed
from speechmeter.report.sources import Source, read_sources

if TYPE_CHECKING:
    import altair as alt

__all__ = ["chart", "source_of"]


def chart(
    runs: str | Path | Source | Sequence[str | Path | Source],
    kind: str,
    *,
    metric: str | None = None,
    title: str | None = None,
    width_mm: float | None = None,
) -> alt.Chart | alt.LayerChart | alt.VConcatChart:
    """The chart that `speechmeter plot --kind KIND` draws, as an Altair chart; several figures are below each other.

    `title` replaces that of the figure, `none` leaves it out. Raises InputError for a kind or a metric that the runs
    do not have, for a width that is too small or too large, and where Altair is not installed.
    """
    from speechmeter.report.plot import altair_chart, check_kind, check_width, figures_of, titled

    check_kind(kind)
    check_width(width_mm)
    check_installed()
    given = [runs] if isinstance(runs, str | Path | Source) else runs
    sources = [one for run in given for one in ([run] if isinstance(run, Source) else read_sources([str(run)]))]
    return altair_chart(titled(figures_of(sources, kind, metric), title), width_mm)


def source_of(records: Sequence[Record], name: str = "measured") -> Source:
    """Records that are in no run directory, such as those of `measure`, for `chart`."""
    return Source(name=name, host=records[0].host if records else "", records=tuple(records), environments={})
