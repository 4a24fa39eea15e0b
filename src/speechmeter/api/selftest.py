"""Every meter on something whose cost is known on this host: truth, reading, error."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import monotonic

from speechmeter.analysis.derived import why_absent
from speechmeter.analysis.estimate import estimate
from speechmeter.api.finding import Finding
from speechmeter.api.live import measure
from speechmeter.api.runs import run_study
from speechmeter.api.selftest_live import live_findings
from speechmeter.api.starting import Options
from speechmeter.core import metrics
from speechmeter.core.device import Device
from speechmeter.core.errors import SensorError
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.launch.preflight import cuda_devices
from speechmeter.meters.nvml_device import device_handle, load_nvml
from speechmeter.plan.study import study_from_python
from speechmeter.subjects import known

_MIB = 2.0**20
_BY_TURNS = 6
"""Peaks and their truth cannot be timed at once: each is measured this many times, and the best are compared."""
_CLOCKED_S = 0.2
"""How long the truth of peaks is clocked in each turn."""
_REPEATS = 2
"""How often a failed check is repeated."""
_NO_TORCH = "torch is not installed: pip install 'speechmeter[torch]'"


@dataclass(frozen=True, kw_only=True)
class _Check:
    """What is run, and what it must read. `read` takes the figure from the records; by default the metric's."""

    meter: str
    what: str
    factory: str
    metric: Metric
    truth: float
    tolerance: float
    device: str = "cpu"
    read: Callable[[Sequence[Record]], float | None] | None = None


def _time_in_products(records: Sequence[Record]) -> float | None:
    """The share of operator time that the profiled pass gives to matrix products."""
    product = estimate(records, metrics.TIME_OPERATOR, "op:aten::mm")
    total = estimate(records, metrics.TIME_OPERATOR)
    return product.value / total.value if product is not None and total is not None else None


_CHECKS = (
    _Check(
        meter="memory", what=(
            "peak memory of a model that holds 64 MiB for 5 ms"
        ), factory="spikes", metric=metrics.MEMORY_CPU_PEAK,
        truth=float(known.SPIKE_BYTES), tolerance=2 * _MIB,
    ),
    _Check(
        meter="flops", what="FLOPs of LSTM, depthwise and linear layers", factory="layers", metric=metrics.FLOPS,
        truth=float(known.LAYERS_FLOPS), tolerance=0.005 * known.LAYERS_FLOPS,
    ),
    _Check(
        meter="parameters", what="parameters of LSTM, depthwise and linear layers", factory="layers",
        metric=metrics.PARAMETERS, truth=float(known.LAYERS_PARAMETERS), tolerance=0,
    ),
    _Check(
        meter="parameters",
        what="parameters, where one with several names counts once for each name", factory="layers",
        metric=metrics.PARAMETERS_TIED, truth=float(known.LAYERS_TIED), tolerance=0,
    ),
    _Check(
        meter="operators", what=(
            "time in matrix products / time in all operators, for a model that only multiplies matrices"
        ), factory="multiplies",
        metric=metrics.TIME_OPERATOR, truth=1.0, tolerance=0.05, read=_time_in_products,
    ),
    _Check(
        meter="hardware-flops", what="FLOPs of matrix products, as counted by the processor", factory="multiplies",
        metric=metrics.FLOPS_HARDWARE, truth=float(known.MULTIPLIES_FLOPS), tolerance=0.1 * known.MULTIPLIES_FLOPS,
    ),
)  # fmt: skip
_CUDA_CHECKS = (
    _Check(
        meter="memory", what=(
            "peak memory of a model that holds 64 MiB on the GPU"
        ), factory="spikes_on_cuda", metric=metrics.MEMORY_CUDA_GROWTH,
        truth=float(known.SPIKE_BYTES), tolerance=0, device="cuda",
    ),
    _Check(
        meter="flops", what=(
            "FLOPs of LSTM, depthwise and linear layers on the GPU"
        ), factory="layers", metric=metrics.FLOPS,
        truth=float(known.LAYERS_FLOPS), tolerance=0.005 * known.LAYERS_FLOPS, device="cuda",
    ),
)  # fmt: skip


def selftest() -> Iterator[Finding]:
    """Check one meter after another.

    Most run as in a study, in fresh processes; where the truth is clocked inside the call, in this process.
    A check that fails is repeated: other work on the machine disturbs one attempt, a broken meter fails in all.
    """
    checks = (*_CHECKS, *(_CUDA_CHECKS if cuda_devices() else ()))
    attempts: tuple[Callable[[], Finding], ...]
    attempts = (_latency_finding, _peaks_finding, *(partial(_finding, check) for check in checks), _energy_finding)
    for attempt in attempts:
        finding = attempt()
        for _ in range(_REPEATS):
            if finding.state != "failed":
                break
            finding = attempt()
        yield finding
    yield from live_findings()


def _finding(check: _Check) -> Finding:
    reading, excuse, trouble = None, "", ""
    if find_spec("torch") is None:
        excuse = _NO_TORCH
    else:
        records = _records(check)
        if check.read is not None:
            reading = check.read(records)
        elif (found := estimate(records, check.metric)) is not None:
            reading = found.value
        excuse = next((why for record in records if (why := why_absent(record, check.metric))), "")
        trouble = next((f"{r.status}: {r.reason}" for r in records if r.status != "ok"), "")
        if trouble:  # a subject of ours that fails is no excuse
            reading, excuse = None, ""
    unit = "1" if check.read is not None else check.metric.unit
    return Finding(
        meter=check.meter, what=check.what, unit=unit, truth=check.truth, tolerance=check.tolerance,
        reading=reading, excuse=excuse, trouble=trouble,
    )  # fmt: skip


def _records(check: _Check) -> tuple[Record, ...]:
    models = [{"name": check.factory, "load": f"python:speechmeter.subjects.known:{check.factory}"}]
    keys = {"models": models, "meters": [check.meter], "seconds": 1, "device": check.device, "rounds": 1}
    study = study_from_python(keys)
    with tempfile.TemporaryDirectory() as folder:
        return run_study(study, Options(output=Path(folder) / "run")).records


def _latency_finding() -> Finding:
    spins = known.Spins()
    result = measure(spins, None, meters=("latency",))
    found = result.record.find(metrics.LATENCY.id)
    samples = found.values if found is not None else ()
    return Finding(
        meter="latency",
        what="latency of calls of about 20 ms, compared with the model's own clock",
        unit="s",
        truth=median(spins.lasted_s[-len(samples) :]),
        tolerance=0.05 * known.SPIN_S,
        reading=result.latency_s,
        trouble=result.record.reason,
    )


def _peaks_finding() -> Finding:
    nothing = Finding(
        meter="peaks",
        what="peak arithmetic, compared with the fastest matrix product by the model's own clock",
        unit="flop/s",
        truth=None,
        tolerance=None,
    )
    if find_spec("torch") is None:
        return replace(nothing, excuse=_NO_TORCH)
    import torch

    products, results = known.Multiplied(), []
    for _ in range(_BY_TURNS):
        results.append(measure(products, torch.ones((known.SIDE, known.SIDE)), meters=("peaks",)))
        peak = results[-1].record.find(metrics.PEAK_FLOPS.id)
        # The meter's own size: on a busy machine small products fit between other work, and large ones do not.
        matrix = torch.ones((int(peak.notes["side"]),) * 2 if peak is not None and peak.values else (known.SIDE,) * 2)
        end = monotonic() + _CLOCKED_S
        while monotonic() < end:
            products(matrix)
    found = [figure.value for result in results if (figure := result.estimate(metrics.PEAK_FLOPS.id)) is not None]
    truth, trouble = products.best_flops_per_s, next((r.record.reason for r in results if r.record.reason), "")
    return replace(nothing, truth=truth, tolerance=0.5 * truth, reading=max(found, default=None), trouble=trouble)


def _energy_finding() -> Finding:
    """The energy counter of a GPU against the same card's power readings; elsewhere there is no second source."""
    nothing = Finding(
        meter="energy",
        what="energy of GPU calls, compared with the GPU's power readings",
        unit="J",
        truth=None,
        tolerance=None,
    )
    if not cuda_devices():
        return replace(nothing, excuse="no CUDA device; a CPU has no second energy sensor to compare with")
    try:
        nvml = load_nvml()
        handle = device_handle(nvml, Device(kind="cuda", index=0))
    except SensorError as error:
        return replace(nothing, excuse=str(error))
    import torch

    burns = known.Burns(lambda: float(nvml.nvmlDeviceGetPowerUsage(handle)) / 1e3)
    result = measure(burns, torch.ones((4096, 4096), device="cuda"), meters=("energy",))
    found = result.estimate(metrics.ENERGY_GPU.id)
    if found is None:
        why = why_absent(result.record, metrics.ENERGY_GPU)
        return replace(nothing, excuse=why or "")
    truth = burns.energy_j
    return replace(nothing, truth=truth, tolerance=0.1 * truth, reading=found.value)
