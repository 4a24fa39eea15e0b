"""The table that a study was made for: first in the output of `run`, in place of a grid for each model."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.core import metrics
from speechmeter.core.types import Record
from speechmeter.report.losses import is_loss, losses
from speechmeter.report.modules import module_times
from speechmeter.report.overview import summary
from speechmeter.report.tables import Table, with_notes

_LOSSES = frozenset({"latency", "memory", "agreement"})
_SUMMARY = frozenset({"latency", "memory", "parameters", "flops", "energy"})
_MORE = "grids by input size and batch: show RUN --metric rtf, or latency, memory, flops, energy"


def headline(records: Sequence[Record], statistic: str) -> tuple[list[Table], frozenset[str]]:
    """The first tables of a study, and the meters that need none of their own after them.

    Transducer losses are ranked; training steps and other profiled calls begin with the shares of their modules;
    several models are in one table. Any other study has no headline: every meter has its own table.
    """
    if records and all(map(is_loss, records)):
        return losses(records), _LOSSES
    if any(m.values for record in records for m in record.measurements if m.metric == metrics.TIME_MODULE.id):
        return module_times(records), frozenset({"modules"})
    if len({record.case.subject.name for record in records if record.status != "skipped"}) > 1:
        (table,) = summary(records, statistic)
        return (with_notes([table], [_MORE]), _SUMMARY) if table.columns else ([], frozenset())
    return [], frozenset()
