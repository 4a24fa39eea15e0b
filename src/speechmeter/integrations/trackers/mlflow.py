"""Figures in MLflow: an experiment for the run, and an MLflow run for each case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speechmeter.api.figures import ExportedCase

_MOST = 500
"""Figures in one call. MLflow takes up to a thousand."""
_MOST_NAMES = 100
"""Parameters or tags in one call."""
_LONGEST = 500
"""Characters of a parameter. Older servers take no more."""


def write(cases: Sequence[ExportedCase], run: str, target: str | None) -> str:
    """Log every case. `target` is a tracking URI or a folder; None is what MLflow's own settings say.

    Each figure is a metric, and the ends of its interval are two more: `latency`, `latency_low`, `latency_high`.
    """
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag

    client = MlflowClient(tracking_uri=target)
    found = client.get_experiment_by_name(run)
    experiment = client.create_experiment(run) if found is None else found.experiment_id
    for case in cases:
        tags = {"mlflow.runName": case.name, "speechmeter.case": case.id, "speechmeter.started": case.started}
        made: Any = client.create_run(experiment, tags=tags)
        began = made.info.start_time
        params = [Param(name, str(value)[:_LONGEST]) for name, value in case.settings.items()]
        units = [RunTag(f"unit.{one.key}", one.metric.unit) for one in case.figures]
        values = [Metric(key, value, began, 0) for one in case.figures for key, value in one.values.items()]
        client.log_batch(made.info.run_id, params=params[:_MOST_NAMES])
        for start in range(0, len(units), _MOST_NAMES):
            client.log_batch(made.info.run_id, tags=units[start : start + _MOST_NAMES])
        for start in range(0, len(values), _MOST):
            client.log_batch(made.info.run_id, metrics=values[start : start + _MOST])
        client.set_terminated(made.info.run_id)
    return f"{len(cases)} runs in the MLflow experiment {run}"
