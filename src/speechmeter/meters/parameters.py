"""How many parameters: unique, with ties counted under every name, trainable; their bytes by dtype; and buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.protocols import Meter, Session
from speechmeter.core.scope import DTYPE, MODULE, Scope
from speechmeter.core.types import Measurement
from speechmeter.meters.flops.meter import SHAPES_THEN_REAL
from speechmeter.meters.weights import Weight, children_of, once, uncountable, weights_of


class ParametersMeter(Meter):
    """Counts over all torch modules and ONNX models of a subject, in total and per module.

    Any process will do; by its ways the engine knows that shapes are enough.
    """

    name = "parameters"
    metrics = (
        metrics.PARAMETERS,
        metrics.PARAMETERS_TIED,
        metrics.PARAMETER_BYTES,
        metrics.PARAMETERS_TRAINABLE,
        metrics.BUFFERS,
        metrics.BUFFER_BYTES,
    )
    ways = SHAPES_THEN_REAL

    def measure(self, session: Session) -> list[Measurement]:
        """Total, bytes by dtype, and one row for each module that the subject names and each of its children."""
        modules = session.prepared.modules
        reason = (
            uncountable(modules)
            if modules
            else "the model exposes no torch module, so its parameters cannot be counted"
        )
        if reason is not None:
            return [Measurement.absent(metric, reason) for metric in self.metrics]
        return count(modules)


def count(modules: Mapping[str, Any]) -> list[Measurement]:
    """All figures of these modules, which may be on any device, the fake and the meta one included."""
    weights = weights_of(modules)
    parameters = [weight for weight in weights if not weight.buffer]
    unique = once(parameters)
    buffers = once(weight for weight in weights if weight.buffer)
    by_dtype: Counter[str] = Counter()  # their sum is the total
    for weight in unique:
        for part in weight.parts:
            by_dtype[part.dtype] += part.size_bytes
    return [
        *_counts("total", parameters),
        _exact(metrics.PARAMETERS_TRAINABLE, _elements(weight for weight in unique if weight.trainable)),
        _exact(metrics.BUFFERS, _elements(buffers)),
        _exact(metrics.BUFFER_BYTES, sum(weight.size_bytes for weight in buffers)),
        *(_exact(metrics.PARAMETER_BYTES, size, Scope.of(DTYPE, dtype)) for dtype, size in sorted(by_dtype.items())),
        *_module_rows(modules),
    ]


def _counts(scope: str, parameters: Sequence[Weight]) -> list[Measurement]:
    unique = once(parameters)
    return [
        _exact(metrics.PARAMETERS, _elements(unique), scope),
        _exact(metrics.PARAMETERS_TIED, _elements(parameters), scope),
        _exact(metrics.PARAMETER_BYTES, sum(weight.size_bytes for weight in unique), scope),
    ]


def _module_rows(modules: Mapping[str, Any]) -> list[Measurement]:
    rows: list[Measurement] = []
    for name, module in modules.items():
        parts = {name: module} if len(modules) > 1 else {}
        parts.update({f"{name}.{child}": part for child, part in children_of(module).items()})
        for path, part in parts.items():
            parameters = [weight for weight in weights_of({path: part}) if not weight.buffer]
            if parameters:
                rows += _counts(Scope.of(MODULE, path), parameters)
    return rows


def _elements(weights: Iterable[Weight]) -> int:
    return sum(weight.elements for weight in weights)


def _exact(metric: Metric, value: int, scope: str = "total") -> Measurement:
    return Measurement.of(metric, [float(value)], scope=scope)
