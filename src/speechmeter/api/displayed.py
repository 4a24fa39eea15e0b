"""What a run, a result and a profile share: tables as text, charts, a data frame, and how a notebook shows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from speechmeter.analysis.selecting import fits, nothing_fits
from speechmeter.api.frames import Library, frame_of
from speechmeter.api.plotting import chart, source_of
from speechmeter.core.errors import for_python
from speechmeter.core.types import Record
from speechmeter.report import text
from speechmeter.report.notebook import notebook_html
from speechmeter.report.sources import Source
from speechmeter.report.tables import Table

if TYPE_CHECKING:
    import altair as alt


class Displayed(ABC):
    """Something that has figures."""

    @abstractmethod
    def tables(self, metric: str | None = None) -> list[Table]:
        """The tables that `speechmeter show` prints."""

    @abstractmethod
    def _title(self) -> str:
        """One line above the tables of a notebook."""

    @abstractmethod
    def _shown_records(self) -> Sequence[Record]:
        """The records behind the figures."""

    @for_python
    def table(self, metric: str | None = None, format: str = "markdown", *, sci: bool = False) -> str:
        """The tables that `speechmeter show` prints, as text. Raises InputError for an unknown format."""
        return text.formatted(self.tables(metric), format, sci=sci)

    @for_python
    def frame(self, metric: str | None = None, *, library: Library = "pandas") -> Any:
        """A data frame of pandas or polars with one row a figure: model, input, axes, `value`, `low`, `high`, `unit`.

        Of one metric by name (`rtf`, `memory`, …), or of everything that was measured. Raises InputError for an unknown
        metric, and where the library is not installed.
        """
        return frame_of(self._shown_records(), metric, library)

    @for_python
    def plot(
        self,
        kind: str,
        metric: str | None = None,
        *,
        title: str | None = None,
        width_mm: float | None = None,
        **axes: Any,
    ) -> alt.Chart | alt.LayerChart | alt.VConcatChart:
        """The chart that `speechmeter plot --kind KIND` draws, as an Altair chart: `plot("grid", "rtf", model="tera")`.

        `axes` choose some of the cases. `title` replaces that of the figure, `none` leaves it out. Raises InputError
        for a kind, a metric or a case that there is not, and where Altair is not installed.
        """
        every = self._sources()
        left = [[record for record in source.records if fits(record, axes)] for source in every]
        if axes and not any(left):
            raise nothing_fits(every[0].name, axes, [record for source in every for record in source.records])
        sources = [replace(one, records=tuple(chosen)) for one, chosen in zip(every, left, strict=True) if chosen]
        return chart(sources, kind, metric=metric, title=title, width_mm=width_mm)

    def _sources(self) -> Sequence[Source]:
        """What charts are made of."""
        return [source_of(self._shown_records())]

    def _in_notebook(self) -> Sequence[Table]:
        """The tables that a notebook shows, the most important one first."""
        return self.tables()

    def _repr_html_(self) -> str:
        return notebook_html(self._title(), self._in_notebook(), "use .table() or .frame()")
