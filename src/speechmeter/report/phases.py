"""Where the time of a call goes: by kind of work, and busy time beside wall time over a grid."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.core import metrics
from speechmeter.core.scope import SPLIT, Scope
from speechmeter.core.types import Record
from speechmeter.report.grids import case_labels, grids
from speechmeter.report.lists import list_table, measured
from speechmeter.report.recorded import recorded_notes
from speechmeter.report.tables import Row, Table, by_case, cell_of

_KINDS = {"kernel": "kernel", "memcpy": "copies", "runtime": "runtime", "cpu": "CPU", "idle": "idle"}
_RATIOS = (metrics.GPU_IDLE, metrics.LAUNCH_BOUND)
_BESIDE = {"wall": (metrics.RTF,), "CPU + CUDA": (metrics.RTF_CPU, metrics.RTF_GPU)}
_BESIDE_ON_CPU = {"wall": (metrics.RTF,), "CPU": (metrics.RTF_CPU,)}


def split(records: Sequence[Record]) -> list[Table]:
    """One row a case: an average call by what was under way, how long the GPU was idle, and latency over its work."""
    labels = case_labels(records)
    on_gpu = _on_gpu(records)
    kinds, ratios = (_KINDS, _RATIOS) if on_gpu else ({kind: _KINDS[kind] for kind in ("cpu", "idle")}, ())
    rows = tuple(
        Row(
            labels=(labels[case_id],),
            cells=(
                *(cell_of(group, metrics.TIME_SPLIT, Scope.of(SPLIT, kind)) for kind in kinds),
                *(cell_of(group, metric) for metric in ratios),
            ),
        )
        for case_id, group in by_case(records).items()
        if measured(group, metrics.TIME_SPLIT)
    )
    columns = (*kinds.values(), *(metric.title for metric in ratios))
    shown = (metrics.TIME_SPLIT, *ratios)
    notes = recorded_notes(records, metrics.TIME_SPLIT)
    return [list_table("time by kind", ("case",), shown, rows, notes, columns=columns)] if rows else []


def split_rtf(records: Sequence[Record], statistic: str = "geomean") -> list[Table]:
    """Grids of the real-time factor: by wall time, and by the time that the CPU and the GPU were busy.

    The latter are in one cell as `CPU + CUDA`. They overlap: their sum is no time of a call.
    """
    tables = []
    for on_gpu, beside in ((False, _BESIDE_ON_CPU), (True, _BESIDE)):
        own = [record for record in records if _on_gpu([record]) is on_gpu]
        tables += grids(own, metrics.RTF, statistic=statistic, beside=beside)
    return tables


def _on_gpu(records: Sequence[Record]) -> bool:
    return any(record.case.device.is_cuda for record in records)
