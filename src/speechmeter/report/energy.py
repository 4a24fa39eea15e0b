"""The energy table: joules per call and per audio hour, gross and net, and what follows from stated rates."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.assumed import ASSUMPTIONS, Assumed, assumed_estimate, assumed_metrics
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.grids import case_labels
from speechmeter.report.lists import list_table
from speechmeter.report.tables import Cell, Row, Table, by_case, cell_of

_DOMAINS = {
    "GPU": (metrics.ENERGY_GPU, metrics.ENERGY_GPU_NET, metrics.POWER_GPU, metrics.POWER_GPU_IDLE),
    "processor": (metrics.ENERGY_CPU, metrics.ENERGY_CPU_NET, metrics.POWER_CPU, metrics.POWER_CPU_IDLE),
    "system": (metrics.ENERGY_SYSTEM, metrics.ENERGY_SYSTEM_NET, metrics.POWER_SYSTEM, metrics.POWER_SYSTEM_IDLE),
}


def energy(records: Sequence[Record], stated: Assumed | None = None) -> list[Table]:
    """One table for each domain that was read or asked for: GPU, processor, system; a rated power has its own."""
    asked = [name for name, shown in _DOMAINS.items() if any(r.find(shown[0].id) for r in records)]
    rates = {key: value for key, value in (stated or {}).items() if key != "tdp_w"}
    tables = [_domain(records, name, rates) for name in asked or ["processor"]]
    return [*tables, *([_rated(records, stated)] if stated and "tdp_w" in stated else [])]


def _rated(records: Sequence[Record], stated: Assumed) -> Table:
    """An estimate, kept apart from what a sensor read."""
    labels = case_labels(records)
    rows = tuple(
        Row(labels=(labels[case_id],), cells=(_assumed_cell(group, metrics.ENERGY_TDP, metrics.ENERGY_CPU, stated),))
        for case_id, group in by_case(records).items()
    )
    notes = (_assumed_note("tdp_w", stated["tdp_w"]),)
    return list_table("energy at the rated power", ("case",), (metrics.ENERGY_TDP,), rows, notes=notes)


def _assumed_note(key: str, value: float) -> str:
    return f"assumed: {ASSUMPTIONS[key]}: {value:g}."


def _domain(records: Sequence[Record], name: str, stated: Assumed) -> Table:
    gross, net, power, idle = _DOMAINS[name]
    shown = (
        (gross, "energy"),
        (net, "net of idle"),
        (power, "power"),
        (idle, "idle power"),
        (metrics.ENERGY_PER_AUDIO_HOUR[gross], "per audio hour"),
        (metrics.ENERGY_PER_AUDIO_HOUR[net], "net per audio hour"),
    )
    extra = assumed_metrics(stated)
    labels = case_labels(records)
    rows = tuple(
        Row(
            labels=(labels[case_id],),
            cells=(
                *_read_cells(group, [metric for metric, _ in shown]),
                *(_assumed_cell(group, metric, gross, stated) for metric in extra),
            ),
        )
        for case_id, group in by_case(records).items()
    )
    sensors = dict.fromkeys(m.source for r in records if (m := r.find(gross.id)) is not None and m.source)
    return list_table(
        f"energy, {name}",
        ("case",),
        [*(metric for metric, _ in shown), *extra],
        rows,
        notes=(
            *(f"read from {sensor}." for sensor in sensors),
            *(_assumed_note(key, value) for key, value in stated.items()),
        ),
        columns=[*(title for _, title in shown), *(metric.title for metric in extra)],
    )


def _read_cells(group: Sequence[Record], shown: Sequence[Metric]) -> tuple[Cell, ...]:
    """Where the sensor is missing every figure of it is, with the same reason."""
    cells = tuple(cell_of(group, metric) for metric in shown)
    return (cells[0],) * len(cells) if cells[0].estimate is None else cells


def _assumed_cell(group: Sequence[Record], metric: Metric, energy: Metric, stated: Assumed) -> Cell:
    """What follows from a figure that is missing is missing for the same reason."""
    needs = metrics.LATENCY if metric is metrics.ENERGY_TDP else energy
    found = assumed_estimate(group, metric, energy, stated)
    return Cell(estimate=found) if found is not None else cell_of(group, needs)
