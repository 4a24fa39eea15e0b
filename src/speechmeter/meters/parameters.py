"""How many parameters: unique, with ties counted under every name, and their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.protocols import MAIN, Session
from speechmeter.core.types import Case, Measurement
from speechmeter.meters.shapes import SHAPES, SHAPES_THEN_REAL

Named = tuple[str, Any]


class ParametersMeter:
    """Counts over all torch modules of a subject, in total and per module."""

    name = "parameters"
    metrics = (metrics.PARAMETERS, metrics.PARAMETERS_TIED, metrics.PARAMETER_BYTES)
    environ: Mapping[str, str] = MappingProxyType({})
    ways = SHAPES_THEN_REAL

    def process(self, case: Case) -> str:
        """Beside the FLOPs when they are asked for, or alone: shapes are enough. Else it rides with the timing."""
        alone = case.meters == (self.name,)
        return SHAPES if alone or "flops" in case.meters else MAIN

    def unavailable(self, case: Case) -> str | None:
        """Only the loaded subject can say."""
        return None

    def measure(self, session: Session) -> list[Measurement]:
        """Total, and one row for each module that the subject names and each of its children."""
        modules = session.prepared.modules
        if not modules:
            return [Measurement.absent(metric, "the subject names no torch module") for metric in self.metrics]
        names = [pair for module in modules.values() for pair in module.named_parameters(remove_duplicate=False)]
        return [*_counts("total", names), *_rows(modules)]


def _counts(scope: str, names: Iterable[Named]) -> list[Measurement]:
    tied = [parameter for _, parameter in names]
    unique = list({id(parameter): parameter for parameter in tied}.values())
    readings: list[tuple[Metric, int]] = [
        (metrics.PARAMETERS, sum(p.numel() for p in unique)),
        (metrics.PARAMETERS_TIED, sum(p.numel() for p in tied)),
        (metrics.PARAMETER_BYTES, sum(p.numel() * p.element_size() for p in unique)),
    ]
    return [Measurement.of(metric, [float(value)], scope=scope) for metric, value in readings]


def _rows(modules: Mapping[str, Any]) -> list[Measurement]:
    rows: list[Measurement] = []
    for name, module in modules.items():
        parts = {name: module} if len(modules) > 1 else {}
        parts.update({f"{name}.{child}": part for child, part in module.named_children()})
        for path, part in parts.items():
            named = list(part.named_parameters(remove_duplicate=False))
            if named:
                rows += _counts(f"module:{path}", named)
    return rows
