"""What each figure means. One word, one formula: a changed formula gets a new version.

Records with different definitions are never compared silently, because the version is part of the id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Direction = Literal["lower", "higher", "neither"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A definition: id with version, unit, which way is better, and the formula in words.

    `exact` metrics do not vary between rounds (parameters, FLOPs); a spread in them is a defect.
    """

    id: str
    unit: str
    direction: Direction
    title: str
    formula: str
    exact: bool = False

    @property
    def name(self) -> str:
        """The id without its version: `latency` for `latency.v1`."""
        return self.id.rpartition(".")[0] or self.id


_registry: dict[str, Metric] = {}


def register(metrics: Iterable[Metric]) -> None:
    """Add definitions. The same id with another definition is a programming error and raises ValueError."""
    for metric in metrics:
        known = _registry.setdefault(metric.id, metric)
        if known != metric:
            raise ValueError(f"metric {metric.id} is already defined otherwise: {known.formula!r}")


def find(name: str) -> Metric | None:
    """Return the definition for an id, or the newest version for a bare name; None when unknown."""
    if name in _registry:
        return _registry[name]
    versions = sorted(m.id for m in _registry.values() if m.name == name)
    return _registry[versions[-1]] if versions else None


def known() -> list[Metric]:
    """All registered definitions, by id."""
    return [_registry[key] for key in sorted(_registry)]


def _lower(id: str, unit: str, title: str, formula: str, *, exact: bool = False) -> Metric:
    return Metric(id=id, unit=unit, direction="lower", title=title, formula=formula, exact=exact)


def _plain(id: str, unit: str, title: str, formula: str, *, exact: bool = False) -> Metric:
    return Metric(id=id, unit=unit, direction="neither", title=title, formula=formula, exact=exact)


LATENCY = _lower("latency.v1", "s", "latency", "wall time of one call, device synchronised at both edges")
LATENCY_LOAD = _lower("latency_load.v1", "s", "load time", "wall time from asking for the subject to its being ready")
LATENCY_FIRST = _lower("latency_first.v1", "s", "first call", "wall time of the first call after loading")
LATENCY_WARMUP = _plain("latency_warmup.v1", "s", "warm-up calls", "wall time of calls made before the samples")
LATENCY_FIRST_ITEM = _lower(
    "latency_first_item.v1", "s", "time to first item", "from a stage's start to the first item it yields"
)
LATENCY_ITEM = _lower("latency_item.v1", "s", "time between items", "from one yielded item to the next")
PHASE = _plain("phase.v1", "s", "phases", "wall time of each phase of a measuring process, named in the notes")

OTHER_BUSY = _lower("other_busy.v1", "1", "used by others", "share of the case's cores in use by other processes")

AUDIO_SECONDS = _plain("audio_seconds.v1", "s", "audio", "true seconds of audio in one call", exact=True)
ITEMS = _plain("items.v1", "1", "items", "items in one call", exact=True)

MEMORY_CPU_PEAK = _lower(
    "memory_cpu_peak.v1", "bytes", "peak memory growth",
    "highest resident size during one call minus the resident size before it",
)  # fmt: skip
MEMORY_CPU_LOAD = _lower(
    "memory_cpu_load.v1",
    "bytes",
    "memory after load",
    "resident size of the process once the subject is loaded",
)
MEMORY_WEIGHTS = _lower(
    "memory_weights.v1", "bytes", "weights",
    "memory held by parameters, buffers and packed weights, each storage counted once",
    exact=True,
)  # fmt: skip
MEMORY_CUDA_ALLOCATED = _lower(
    "memory_cuda_allocated.v1", "bytes", "peak allocated",
    "torch's highest allocated bytes during one call, weights included",
)  # fmt: skip
MEMORY_CUDA_GROWTH = _lower(
    "memory_cuda_growth.v1", "bytes", "peak allocated growth",
    "torch's highest allocated bytes during one call minus the allocated bytes before it",
)  # fmt: skip
MEMORY_CUDA_RESERVED = _lower(
    "memory_cuda_reserved.v1", "bytes", "peak reserved",
    "torch's highest reserved bytes during one call that starts from an emptied cache",
)  # fmt: skip
MEMORY_CUDA_LOAD = _lower(
    "memory_cuda_load.v1",
    "bytes",
    "allocated after load",
    "torch's allocated bytes once the subject is loaded",
)
MEMORY_CUDA_PROCESS = _lower(
    "memory_cuda_process.v1",
    "bytes",
    "process on device",
    "device memory of the process after one call, by NVML",
)

PARAMETERS = _plain(
    "parameters.v1", "1", "parameters", "elements of all parameters, shared ones counted once", exact=True
)
PARAMETERS_TIED = _plain(
    "parameters_tied.v1", "1", "parameters, ties twice", "elements of all parameters under every name they have",
    exact=True,
)  # fmt: skip
PARAMETER_BYTES = _plain("parameter_bytes.v1", "bytes", "parameter bytes", "storage of all parameters", exact=True)
PARAMETERS_TRAINABLE = _plain(
    "parameters_trainable.v1", "1", "trainable parameters",
    "elements of the parameters that take a gradient, shared ones counted once",
    exact=True,
)  # fmt: skip
BUFFERS = _plain("buffers.v1", "1", "buffers", "elements of all buffers, shared ones counted once", exact=True)
BUFFER_BYTES = _plain("buffer_bytes.v1", "bytes", "buffer bytes", "storage of all buffers", exact=True)

RTF = _lower("rtf.v1", "1", "real-time factor", "processing time of a call / true seconds of audio in it")
RTFX = Metric(
    id="rtfx.v1", unit="1", direction="higher", title="inverse real-time factor",
    formula="sum of true audio seconds / sum of processing time",
)  # fmt: skip
THROUGHPUT = Metric(
    id="throughput.v1", unit="1/s", direction="higher", title="throughput",
    formula="sum of items / sum of processing time",
)  # fmt: skip

register(value for value in list(globals().values()) if isinstance(value, Metric))
