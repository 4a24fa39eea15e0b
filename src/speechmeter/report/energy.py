"""The energy table: joules per call and per audio hour, gross and net, and what follows from stated rates."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.assumed import ASSUMPTIONS, Assumed, assumed_estimate, assumed_metrics, check_view
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.labels import labelled
from speechmeter.report.tables import Cell, Row, Table, cell_of, list_table

_DOMAINS = {
    "GPU": (metrics.ENERGY_GPU, metrics.ENERGY_GPU_NET, metrics.POWER_GPU, metrics.POWER_GPU_IDLE),
    "processor": (metrics.ENERGY_CPU, metrics.ENERGY_CPU_NET, metrics.POWER_CPU, metrics.POWER_CPU_IDLE),
    "system": (metrics.ENERGY_SYSTEM, metrics.ENERGY_SYSTEM_NET, metrics.POWER_SYSTEM, metrics.POWER_SYSTEM_IDLE),
}


def energy(records: Sequence[Record], assumed: Assumed | None = None) -> list[Table]:
    """One table for each domain that was read or asked for: GPU, processor, system; a rated power has its own."""
    check_view(assumed or {}, "energy")
    asked = [name for name, shown in _DOMAINS.items() if any(r.find(shown[0].id) for r in records)]
    rates = {key: value for key, value in (assumed or {}).items() if key != "tdp_w"}
    tables = [_domain(records, name, rates) for name in asked or ["processor"]]
    if assumed and "tdp_w" in assumed:  # an estimate, kept apart from what a sensor read
        rows = [
            Row(labels=(label,), cells=(_assumed_cell(group, metrics.ENERGY_TDP, metrics.ENERGY_CPU, assumed),))
            for label, group in labelled(records)
        ]
        notes = [_assumed_note("tdp_w", assumed["tdp_w"])]
        tables.append(list_table("energy at the rated power", ("case",), (metrics.ENERGY_TDP,), rows, notes))
    return tables


def _assumed_note(key: str, value: float) -> str:
    return f"assumed: {ASSUMPTIONS[key]}: {value:g}."


def _domain(records: Sequence[Record], name: str, rates: Assumed) -> Table:
    gross, net, power, idle = _DOMAINS[name]
    shown = {
        gross: "energy",
        net: "net of idle",
        power: "power",
        idle: "idle power",
        metrics.ENERGY_PER_AUDIO_HOUR[gross]: "per audio hour",
        metrics.ENERGY_PER_AUDIO_HOUR[net]: "net per audio hour",
    }
    extra = assumed_metrics(rates)
    rows = []
    for label, group in labelled(records):
        cells = [cell_of(group, metric) for metric in shown]
        if cells[0].estimate is None:  # the sensor is missing: every figure of it is, for the same reason
            cells = [cells[0]] * len(cells)
        cells += [_assumed_cell(group, metric, gross, rates) for metric in extra]
        rows.append(Row(labels=(label,), cells=tuple(cells)))
    sensors = dict.fromkeys(m.source for r in records if (m := r.find(gross.id)) is not None and m.source)
    notes = [f"read from {sensor}." for sensor in sensors]
    notes += [_assumed_note(key, value) for key, value in rates.items()]
    columns = [*shown.values(), *(metric.title for metric in extra)]
    return list_table(f"energy, {name}", ("case",), [*shown, *extra], rows, notes, columns=columns)


def _assumed_cell(group: Sequence[Record], metric: Metric, energy: Metric, rates: Assumed) -> Cell:
    """What follows from a figure that is missing is missing for the same reason."""
    needs = metrics.LATENCY if metric is metrics.ENERGY_TDP else energy
    found = assumed_estimate(group, metric, energy, rates)
    return Cell(estimate=found) if found is not None else cell_of(group, needs)
