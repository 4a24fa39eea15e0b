"""How many parameters: unique, with ties counted under every name, trainable; their bytes by dtype; and buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.protocols import Phase, Session
from speechmeter.core.scope import DTYPE, MODULE, Scope
from speechmeter.core.types import Case, Measurement
from speechmeter.meters.flops.meter import SHAPES_THEN_REAL
from speechmeter.meters.weights import Weight, children_of, once, uncountable, weights_of


class ParametersMeter:
    """Counts over all torch modules and ONNX models of a subject, in total and per module."""

    name = "parameters"
    metrics = (
        metrics.PARAMETERS,
        metrics.PARAMETERS_TIED,
        metrics.PARAMETER_BYTES,
        metrics.PARAMETERS_TRAINABLE,
        metrics.BUFFERS,
        metrics.BUFFER_BYTES,
    )
    environ: Mapping[str, str] = MappingProxyType({})
    ways = SHAPES_THEN_REAL
    phase = Phase.TIMING  # any process will do; by its ways the engine knows that shapes are enough

    def unavailable(self, case: Case) -> str | None:
        """Only the loaded subject can say."""
        return None

    def measure(self, session: Session) -> list[Measurement]:
        """Total, bytes by dtype, and one row for each module that the subject names and each of its children."""
        modules = session.prepared.modules
        reason = uncountable(modules) if modules else "the subject names no torch module"
        if reason is not None:
            return [Measurement.absent(metric, reason) for metric in self.metrics]
        return count(modules)


def count(modules: Mapping[str, Any]) -> list[Measurement]:
    """All figures of these modules, which may be on any device, the fake and the meta one included."""
    weights = weights_of(modules)
    parameters = [weight for weight in weights if not weight.buffer]
    return [
        *_counts("total", parameters),
        *_extras(once(parameters), once(weight for weight in weights if weight.buffer)),
        *_by_dtype(once(parameters)),
        *_rows(modules),
    ]


def _counts(scope: str, parameters: Sequence[Weight]) -> list[Measurement]:
    unique = once(parameters)
    return [
        _exact(metrics.PARAMETERS, _elements(unique), scope),
        _exact(metrics.PARAMETERS_TIED, _elements(parameters), scope),
        _exact(metrics.PARAMETER_BYTES, _bytes(unique), scope),
    ]


def _extras(parameters: Sequence[Weight], buffers: Sequence[Weight]) -> list[Measurement]:
    return [
        _exact(metrics.PARAMETERS_TRAINABLE, _elements(weight for weight in parameters if weight.trainable)),
        _exact(metrics.BUFFERS, _elements(buffers)),
        _exact(metrics.BUFFER_BYTES, _bytes(buffers)),
    ]


def _by_dtype(parameters: Iterable[Weight]) -> list[Measurement]:
    """The bytes of the parameters by what they are stored as; their sum is the total."""
    sizes: Counter[str] = Counter()
    for weight in parameters:
        for part in weight.parts:
            sizes[part.dtype] += part.size_bytes
    return [_exact(metrics.PARAMETER_BYTES, size, Scope.of(DTYPE, dtype)) for dtype, size in sorted(sizes.items())]


def _rows(modules: Mapping[str, Any]) -> list[Measurement]:
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


def _bytes(weights: Iterable[Weight]) -> int:
    return sum(weight.size_bytes for weight in weights)


def _exact(metric: Metric, value: int, scope: str = "total") -> Measurement:
    return Measurement.of(metric, [float(value)], scope=scope)
