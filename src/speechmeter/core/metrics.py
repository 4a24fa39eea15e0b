"""What each figure means. One word, one formula: a changed formula gets a new version.

Records with different definitions are never compared silently, because the version is part of the id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, cast

from speechmeter.core import stated

Direction = Literal["lower", "higher", "neither"]
Combination = Literal["typical", "divided", "mean", "ratio", "conversations", "pooled", "stated"]
"""How raw values become one figure.

- `typical`: the geometric mean over rounds of each round's median.
- `divided`: the same for the whole call. A stage gets its share of that figure, so that the stages add up to the call.
- `mean`: the arithmetic mean over the calls of a round and over rounds. Rows of one table add up, because every row is
  taken over the same calls and rounds: one that a call does not have counts 0 there.
- `ratio`: one such mean over another, of the same rounds.
- `conversations`: the median, or another percentile, over the values of all conversations of all rounds.
- `pooled`: the sum of what is divided / the sum of what it is divided by, over all conversations of all rounds.
- `stated`: what a file of another tool says, with the interval that it says.
"""


class Note(Enum):
    """Kinds of values that a note of a measurement may have. Those named `EACH` hold one entry for each value."""

    TEXT = "text"
    TEXTS = "list of texts"
    TEXT_EACH = "list with a text for each value"
    FLAG = "true or false"
    WHOLE = "whole number of at least 0"
    WHOLE_EACH = "list with a whole number of at least 0 for each value"
    NUMBER = "number"
    NUMBER_OR_NONE = "number or nothing"
    NUMBERS = "number, or a list of them"
    NUMBER_EACH = "list with a number for each value"
    MAPPING = "mapping"
    ROWS = "list of [text, text, number]"
    PARTS_EACH = "mapping from name and direction to a list of numbers"
    STATED = "mapping from a statistic to [number, number or nothing, number or nothing]"
    LABELS_EACH = "list of rows [labels, module, numbers of each direction]"


COMMON_NOTES: Mapping[str, Note] = {
    "batches": Note.WHOLE, "sampled": Note.WHOLE_EACH, "notes": Note.TEXTS, "clocked": Note.FLAG,
    "recorded": Note.TEXTS, "shortened": Note.TEXT,
}  # fmt: skip
"""Notes that a measurement of any metric may carry."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A definition: id with version, unit, which way is better, and the formula in words.

    `exact` metrics do not vary between rounds (parameters, FLOPs); a spread in them is a defect. `combined` says how
    the figure of all others is made from calls and rounds.
    """

    id: str
    unit: str
    direction: Direction
    title: str
    formula: str
    exact: bool = False
    combined: Combination = "typical"
    signed: bool = False
    """Whether values below 0 have a meaning: a delay may end before it began, where a word was guessed."""
    short: str = ""
    """One plain line in place of the formula, where that is long: what tables print."""
    notes: Mapping[str, Note] = field(default_factory=dict, hash=False)
    """Notes that a measurement of it may carry beside `COMMON_NOTES`, and that tables are made from."""

    @property
    def definition(self) -> str:
        """What the metric is, in one line."""
        return self.short or self.formula

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
            raise ValueError(f"metric {metric.id} is already defined with a different formula: {known.formula!r}")


def find(name: str) -> Metric | None:
    """Return the definition for an id, or the newest version for a bare name; None when unknown."""
    if name in _registry:
        return _registry[name]
    versions = sorted(m.id for m in _registry.values() if m.name == name)
    return _registry[versions[-1]] if versions else None


def known() -> list[Metric]:
    """All registered definitions, by id."""
    return [_registry[key] for key in sorted(_registry)]


def _maker(direction: Direction, **usual: Any) -> Callable[..., Metric]:
    def make(id: str, unit: str, title: str, formula: str, **more: Any) -> Metric:
        return Metric(id=id, unit=unit, direction=direction, title=title, formula=formula, **{**usual, **more})

    return make


_lower, _plain = _maker("lower"), _maker("neither")
_higher = _maker("higher", exact=True)
"""Scores: of one run over utterances, which further rounds do not vary."""

_CALLS = {"calls": Note.NUMBERS}
_IMPORTED = {"file": Note.TEXT, "low": Note.NUMBER_OR_NONE, "high": Note.NUMBER_OR_NONE}
_DIRECTIONS = dict.fromkeys(("forward", "backward", "recompute"), Note.NUMBER_EACH)
_MODULE_ROW = {
    "calls": Note.NUMBER, "class": Note.TEXT, **_DIRECTIONS, "inside": Note.PARTS_EACH, "labels": Note.LABELS_EACH,
}  # fmt: skip

LATENCY = _lower(
    "latency.v1",
    "s",
    "latency",
    "wall time of one call; the device is synchronised before and after it",
    combined="divided",
)
LATENCY_LOAD = _lower("latency_load.v1", "s", "load time", "wall time to load the model until it is ready for a call")
LATENCY_FIRST = _lower("latency_first.v1", "s", "first call", "wall time of the first call after loading")
LATENCY_WARMUP = _plain(
    "latency_warmup.v1", "s", "warm-up calls", "wall time of each warm-up call, before the timed calls"
)
LATENCY_FIRST_ITEM = _lower(
    "latency_first_item.v1",
    "s",
    "time to first item",
    "time from the start of a stage to the first item that it yields",
)
LATENCY_ITEM = _lower("latency_item.v1", "s", "time between items", "time from one yielded item to the next")
LATENCY_INSIDE = _lower(
    "latency_inside.v1", "s", "latency by the model's own clock",
    "time of a call as the model itself reports it, by the clock of its own program",
)  # fmt: skip
PHASE = _plain(
    "phase.v1",
    "s",
    "phases",
    "wall time of each phase of a measuring process. The notes of the measurement name the phases",
    short="time of each phase of a measuring process",
    notes={"phases": Note.TEXT_EACH, "start": Note.TEXT},
)

OTHER_BUSY = _lower(
    "other_busy.v1",
    "1",
    "used by others",
    "share of the CPU cores of the case that processes used which the model had not started",
    short="share of the CPU cores of the case that other processes used",
)
CPU_STARTED = _lower(
    "cpu_started.v1", "1", "cores used by started processes",
    "CPU time of the processes that the model started / wall time, while it was measured",
)  # fmt: skip

AUDIO_SECONDS = _plain("audio_seconds.v1", "s", "audio", "seconds of audio in one call, without padding", exact=True)
PADDED_SECONDS = _plain(
    "padded_seconds.v1", "s", "audio, padded", "seconds of audio in one call, with padding", exact=True
)
PADDING_WASTE = _lower(
    "padding_waste.v1", "1", "padding waste",
    "1 − seconds of audio without padding / seconds with padding, over all calls",
    exact=True,
)  # fmt: skip
CELLS = _plain(
    "cells.v1", "1", "cells", "lattice cells of one call: the sum over its items of T frames × (U tokens + 1)",
    exact=True,
)  # fmt: skip
CELLS_PADDED = _plain(
    "cells_padded.v1", "1", "cells, padded", "lattice cells of one call: items × largest T × (largest U + 1)",
    exact=True,
)  # fmt: skip
CELL_WASTE = _lower(
    "cell_waste.v1", "1", "cell waste", "1 − lattice cells / lattice cells with padding, over all calls", exact=True
)
ITEMS = _plain("items.v1", "1", "items", "number of utterances (or other inputs) in one call", exact=True)
ITEMS_REFUSED = _plain(
    "items_refused.v1", "1", "items left out", "number of requested items of a dataset that could not be used",
    exact=True,
)  # fmt: skip
TOKENS = _plain("tokens.v1", "1", "tokens", "tokens that one call generates, summed over its items", exact=True)
AUDIO_MADE = _plain("audio_made_seconds.v1", "s", "audio made", "seconds of audio that one call generates", exact=True)

OUTPUT_SKETCH = _plain(
    "output_sketch.v1", "1", "sketch of the outputs",
    "for each of the first items: of text, 48 bits of its SHA-256; of numbers, how many there are, and 256 sums over "
    "them with signs and places drawn once for all models. The squared distance of two sketches estimates that of the "
    "outputs",
    exact=True, short="what `tune` compares outputs by",
    notes={"items": Note.TEXTS, "kind": Note.TEXT, "width": Note.WHOLE},
)  # fmt: skip
OUTPUT_NOT_FINITE = _lower(
    "output_not_finite.v1", "1", "values not finite", "values of the outputs that are infinite or not a number",
    exact=True,
)  # fmt: skip

MEMORY_CPU_TOTAL = _lower(
    "memory_cpu_total.v1", "bytes", "peak memory",
    "highest resident memory of the process during one call. This includes the interpreter, the libraries, the "
    "weights, the memory of the call itself, and the processes that the model started",
    short="highest resident memory of the whole process during a call",
)  # fmt: skip
MEMORY_CPU_PEAK = _lower(
    "memory_cpu_peak.v1", "bytes", "peak memory growth",
    "highest resident memory of the process and of those that it started during one call, minus their resident memory "
    "before the call",
    short="highest resident memory during a call, minus the resident memory before the call",
)  # fmt: skip
MEMORY_CPU_LOAD = _lower(
    "memory_cpu_load.v1",
    "bytes",
    "memory after load",
    "resident memory of the process, and of those that it started, after the model is loaded",
    short="resident memory of the process after loading",
)
MEMORY_CPU_STARTED = _lower(
    "memory_cpu_started.v1", "bytes", "of it, started processes",
    "part of the peak memory that is in processes which the model started: of each its own memory, and its share of "
    "the pages that several processes map (PSS)",
    short="part of the peak memory that is in processes which the model started",
)  # fmt: skip
MEMORY_WEIGHTS = _lower(
    "memory_weights.v1", "bytes", "weights",
    "memory of parameters, buffers and packed weights; each storage is counted once",
    exact=True,
)  # fmt: skip
MEMORY_CUDA_ALLOCATED = _lower(
    "memory_cuda_allocated.v1", "bytes", "peak allocated",
    "highest GPU memory that torch had allocated during one call, weights included",
    short="highest GPU memory that torch had allocated during a call, weights included",
)  # fmt: skip
MEMORY_CUDA_GROWTH = _lower(
    "memory_cuda_growth.v1", "bytes", "peak allocated growth",
    "highest GPU memory that torch had allocated during one call, minus what was allocated before the call",
    short="highest GPU memory that torch had allocated during a call, minus that before the call",
)  # fmt: skip
MEMORY_CUDA_RESERVED = _lower(
    "memory_cuda_reserved.v1", "bytes", "peak reserved",
    "highest GPU memory that torch had reserved during one call. Torch's memory cache is emptied before the call",
    short="highest GPU memory that torch had reserved during a call",
)  # fmt: skip
MEMORY_CUDA_LOAD = _lower(
    "memory_cuda_load.v1",
    "bytes",
    "allocated after load",
    "GPU memory that torch has allocated after the model is loaded",
    short="GPU memory that torch has allocated after loading",
)
MEMORY_CUDA_PROCESS = _lower(
    "memory_cuda_process.v1",
    "bytes",
    "process on device",
    "GPU memory of the process and of those that it started after one call, as NVML reports it",
)

MEMORY_TENSORS_PEAK = _lower(
    "memory_tensors_peak.v1", "bytes", "peak of tensors",
    "highest memory that torch had allocated on the device during one call, minus what was allocated when the call "
    "began. The profiler measures it",
    exact=True,
    short="highest memory that torch had allocated during a call, minus that before the call",
    notes={"operators": Note.ROWS},
)  # fmt: skip
MEMORY_AT_PEAK = _lower(
    "memory_at_peak.v1", "bytes", "held at the peak",
    "memory that a module allocated during one call and that was not yet freed when the call reached its memory peak",
    exact=True, short="memory that a module allocated and that was not yet freed at the memory peak of the call",
)  # fmt: skip


def _energy(domain: str, what: str) -> Metric:
    formula = f"energy of the {what} for one call, idle power included"
    return _lower(f"energy_{domain}.v1", "J", f"energy, {what}", formula, notes=_CALLS)


def _energy_net(domain: str, what: str) -> Metric:
    formula = f"energy of the {what} for one call − idle power of the {what} × time of the call"
    short = f"energy of the {what} for one call, without its idle power"
    return _lower(f"energy_{domain}_net.v1", "J", f"net energy, {what}", formula, short=short)


def _power(domain: str, what: str) -> Metric:
    return _plain(
        f"power_{domain}.v1",
        "W",
        f"power, {what}",
        f"mean power of the {what} during the calls, or while conversations are held",
    )


def _power_idle(domain: str, what: str) -> Metric:
    formula = f"mean power of the {what} after the model is loaded and before the calls"
    return _plain(f"power_{domain}_idle.v1", "W", f"idle power, {what}", formula)


ENERGY_GPU, ENERGY_GPU_NET = _energy("gpu", "GPU"), _energy_net("gpu", "GPU")
ENERGY_CPU, ENERGY_CPU_NET = _energy("cpu", "processor"), _energy_net("cpu", "processor")
ENERGY_SYSTEM, ENERGY_SYSTEM_NET = _energy("system", "system"), _energy_net("system", "system")
POWER_GPU, POWER_GPU_IDLE = _power("gpu", "GPU"), _power_idle("gpu", "GPU")
POWER_CPU, POWER_CPU_IDLE = _power("cpu", "processor"), _power_idle("cpu", "processor")
POWER_SYSTEM, POWER_SYSTEM_IDLE = _power("system", "system"), _power_idle("system", "system")
ENERGY_PER_AUDIO_HOUR = {
    energy: _lower(
        f"{energy.name}_per_audio_hour.v1",
        "J",
        f"{energy.title} per audio hour",
        f"{energy.name} of a call / seconds of audio in the call, without padding × 3600",
        short=f"{energy.title}, for one hour of audio",
    )
    for energy in (ENERGY_GPU, ENERGY_GPU_NET, ENERGY_CPU, ENERGY_CPU_NET, ENERGY_SYSTEM, ENERGY_SYSTEM_NET)
}
ENERGY_TDP = _lower(
    "energy_tdp.v1", "J", "energy at the rated power",
    "latency × the rated power (TDP) that the reader gave. This is an estimate: no sensor was read",
    short="latency × the given rated power (TDP); an estimate, no sensor was read",
)  # fmt: skip
CO2_PER_AUDIO_HOUR = _lower(
    "co2_per_audio_hour.v1", "g", "CO2 per audio hour", "energy per audio hour × the given grams of CO2 per kWh"
)
COST_PER_1000_AUDIO_HOURS = _lower(
    "cost_per_1000_audio_hours.v1", "currency", "cost per 1,000 audio hours",
    "energy per audio hour × 1,000 × the given price per kWh",
)  # fmt: skip

MACHINE_COST = _lower(
    "machine_cost.v1", "currency", "machine cost per 1,000 audio hours",
    "real-time factor × 1,000 × the given price of one hour of the machine",
)  # fmt: skip

MEMORY_NEEDED = _lower(
    "memory_needed.v2", "bytes", "memory needed",
    "memory of the weights + peak memory growth of a call. If a case has several batches, the batch with the largest "
    "growth counts. For a cascade of models, it is the largest need of a single model, as if that model ran alone",
    short="weights plus the peak memory growth of a call",
)  # fmt: skip

PARAMETERS = _plain(
    "parameters.v1",
    "1",
    "parameters",
    "number of elements in all parameters; a shared parameter counts once",
    exact=True,
)
PARAMETERS_TIED = _plain(
    "parameters_tied.v1", "1", "parameters, tied ones twice",
    "number of elements in all parameters; a shared parameter counts once for each of its names",
    exact=True, short="number of elements in all parameters; a shared parameter counts once for each name",
)  # fmt: skip
PARAMETER_BYTES = _plain(
    "parameter_bytes.v1", "bytes", "parameter bytes", "memory of all parameters in bytes", exact=True
)
PARAMETERS_TRAINABLE = _plain(
    "parameters_trainable.v1", "1", "trainable parameters",
    "number of elements in the parameters that need a gradient; a shared one counts once",
    exact=True,
)  # fmt: skip
BUFFERS = _plain(
    "buffers.v1", "1", "buffers", "number of elements in all buffers; a shared buffer counts once", exact=True
)
BUFFER_BYTES = _plain("buffer_bytes.v1", "bytes", "buffer bytes", "memory of all buffers in bytes", exact=True)

FLOPS = _plain(
    "flops.v1", "flop", "FLOPs",
    "floating-point operations of the matrix products and convolutions of one call, without the backward pass. A "
    "multiply-accumulate counts as 2 operations (of complex numbers: 8)",
    exact=True, short="matrix arithmetic of one call, forward pass; a multiply-accumulate counts as 2",
    notes={**_CALLS, "unknown": Note.MAPPING, "no arithmetic by torch in": Note.TEXTS},
)  # fmt: skip
FLOPS_BACKWARD = _plain(
    "flops_backward.v1", "flop", "FLOPs, backward",
    "floating-point operations of the matrix products and convolutions in the backward pass of one call, recomputed "
    "parts included. They are counted as in `flops`",
    exact=True, short="matrix arithmetic of the backward pass of one call, recomputed parts included",
    notes={"recompute": Note.NUMBER_EACH, "attention": Note.TEXTS},
)  # fmt: skip
FLOPS_HARDWARE = _plain(
    "flops_hardware.v1", "flop", "FLOPs, by hardware",
    "floating-point operations that the processor executed in one call, in single and double precision, by its "
    "hardware counters. Each element of a vector instruction counts",
    short="floating-point operations of one call by the processor's hardware counters",
)  # fmt: skip
ELEMENT_OPS = _plain(
    "element_ops.v1", "op", "element operations",
    "operations of activations, normalisations, softmax and sums, with a fixed number of operations for each element. "
    "They are not part of `flops`",
    exact=True, short="operations of activations, normalisations, softmax and sums; FLOPs do not include them",
    notes=_CALLS,
)  # fmt: skip
BYTES_MOVED = _plain(
    "bytes_moved.v1", "bytes", "bytes moved",
    "bytes that operators read and write in one call. Each operator counts each of its tensors once",
    exact=True, short="bytes that operators read and write in one call",
    notes=_CALLS,
)  # fmt: skip
FLOPS_PER_AUDIO_SECOND = _plain(
    "flops_per_audio_second.v1", "flop", "FLOPs per audio second",
    "FLOPs of a call / seconds of audio in the call, without padding",
    exact=True,
)  # fmt: skip
FLOPS_PER_TOKEN = _plain(
    "flops_per_token.v1", "flop", "FLOPs per token",
    "FLOPs of a call, encoder included / number of tokens that it generated",
    exact=True,
)  # fmt: skip
TIME_OPERATOR = _lower(
    "time_operator.v1", "s", "time in operator",
    "time of an operator in one profiled call, with the kernels that it launches. Profiling slows calls down, so use "
    "it "
    "for shares and not as a latency",
    combined="mean", short="time of an operator in a profiled call; only for shares, because profiling slows calls",
    notes={"calls": Note.NUMBER, "inside": Note.PARTS_EACH},
)  # fmt: skip
OPERATOR_SHARE = _plain(
    "operator_share.v2", "1", "share of operator time",
    "mean time in an operator (or in all operators of one kind) / mean time in all operators, over the same profiled "
    "calls",
    combined="ratio", short="share of the time of all operators",
)  # fmt: skip
TIME_OPERATOR_TOTAL = _lower(
    "time_operator_total.v1", "s", "total time",
    "time of an operator and of the operators that it calls, in one profiled call. On a GPU, it is the time of all "
    "kernels that they launched. The time of an inner operator also counts for the operator that calls it",
    combined="mean", short="time of an operator and of the operators that it calls, in a profiled call",
)  # fmt: skip
OPERATOR_CALLS = _plain(
    "operator_calls.v1", "1", "calls", "how often an operator runs in one profiled call", exact=True
)
MEMORY_OPERATOR = _lower(
    "memory_operator.v1", "bytes", "memory",
    "memory that torch allocated on the device of the case while an operator and the operators that it calls ran, "
    "minus "
    "the memory that torch freed meanwhile, in one call",
    combined="mean", short="memory that an operator and the operators that it calls allocated, minus what they freed",
)  # fmt: skip
MEMORY_OPERATOR_OWN = _lower(
    "memory_operator_own.v1", "bytes", "its own memory",
    "net memory (allocated minus freed) of an operator during one call of the model, on the device of the case, "
    "without the operators that it calls",
    combined="mean", short="memory that an operator itself allocated, minus what it freed",
)  # fmt: skip
TIME_MODULE = _lower(
    "time_module.v1", "s", "time in module",
    "CPU time of a module without its submodules, in one profiled call: forward, backward and recomputed. Profiling "
    "slows calls down, so use it for shares and not as a latency",
    combined="mean",
    short="CPU time of a module without its submodules, in a profiled call; only for shares",
    notes=_MODULE_ROW,
)  # fmt: skip
TIME_GPU = _lower(
    "time_gpu.v1", "s", "GPU busy time",
    "time in which at least one kernel ran on the GPU, in one profiled call. For a module, the time in which its own "
    "kernels ran; time in which several kernels ran is divided among them",
    combined="mean", short="time in which the GPU ran at least one kernel, in a profiled call",
    notes=_MODULE_ROW,
)  # fmt: skip
MODULE_SHARE = _plain(
    "module_share.v3", "%", "share",
    "100 × mean time of a module or label, with everything that runs inside it / mean time of the call, over the same "
    "profiled calls. On a GPU, both are GPU busy times. The share of one direction (forward or backward) is the time "
    "of a row in that direction / the time of all rows in that direction",
    combined="ratio", short="share of the call's time, including everything that runs inside",
)  # fmt: skip
MODULE_CALLS = _plain(
    "module_calls.v1", "1", "calls of module", "how often a module is called in one call, without recomputation",
    exact=True,
)  # fmt: skip
MEMORY_MODULE = _lower(
    "memory_module.v1", "bytes", "peak of module",
    "highest GPU memory that torch had allocated during the forward pass of a module, minus what was allocated when it "
    "began",
    short="highest GPU memory during the forward pass of a module, minus the GPU memory before it",
)  # fmt: skip
MODULE_MFU = Metric(
    id="mfu_module.v1", unit="1", direction="higher", title="MFU of module",
    formula="FLOPs of a module, forward and backward / (its share of the call × latency) / peak arithmetic",
    short="share of the device's peak arithmetic that a module reaches",
)  # fmt: skip
TIME_SPLIT = _lower(
    "time_split.v2", "s", "time by kind",
    "time of one profiled call, divided by kind of work. Each instant counts for the first of these that applies: a "
    "kernel ran, memory was copied or set, the CPU was in the CUDA runtime, the CPU worked, nothing ran",
    combined="mean", short="time of a profiled call by kind of work: kernel, copy, runtime, CPU, idle",
)  # fmt: skip
TIME_BUSY = _lower(
    "time_busy.v1", "s", "busy time",
    "time of one profiled call in which the CPU ran an operator or the CUDA runtime; for the GPU, in which it ran a "
    "kernel or a copy",
    combined="mean", short="time in which the CPU or the GPU worked, in a profiled call",
)  # fmt: skip
GPU_IDLE = _lower(
    "gpu_idle.v2", "1", "GPU idle",
    "mean time in which the GPU ran no kernel and no copy / mean time of the same profiled calls",
    combined="ratio", short="share of a profiled call in which the GPU neither computed nor copied",
)  # fmt: skip
TRACE_BYTES = _plain(
    "trace_bytes.v1",
    "bytes",
    "trace",
    "compressed size of the trace file, which records one or two steps",
    exact=True,
    notes={"file": Note.TEXT, "left_out": Note.NUMBER, "shorter_than_us": Note.NUMBER},
)
LAUNCH_BOUND = _plain(
    "launch_bound.v2", "1", "latency / GPU busy time",
    "latency / mean GPU busy time of the profiled calls of the same round. Above 1, the GPU waits for a part of the "
    "call",
    short="latency / GPU busy time; far above 1, the GPU mostly waits for the CPU",
)  # fmt: skip
GPU_CLOCK = _plain(
    "gpu_clock.v1", "MHz", "GPU clock", "clock rate of the GPU's multiprocessors before and after the measurement"
)
GPU_TEMPERATURE = _plain(
    "gpu_temperature.v1",
    "°C",
    "GPU temperature",
    "temperature of the GPU before and after the measurement",
)
PEAK_FLOPS = Metric(
    id="peak_flops.v1", unit="flop/s", direction="higher", title="peak arithmetic",
    formula="fastest of several large square matrix products in the case's dtype on its device",
    short="fastest matrix product measured on the device",
)  # fmt: skip
PEAK_BANDWIDTH = Metric(
    id="peak_bandwidth.v1", unit="bytes/s", direction="higher", title="peak bandwidth",
    formula="fastest of several copies of a large tensor on the device; bytes read and bytes written both count",
    short="fastest copy measured on the device; bytes read and bytes written both count",
)  # fmt: skip
MFU = Metric(
    id="mfu.v1", unit="1", direction="higher", title="model FLOPs utilisation",
    formula="FLOPs of a call, forward and backward / its latency / peak arithmetic",
    short="share of the device's peak arithmetic that a call reaches",
)  # fmt: skip
BANDWIDTH = Metric(
    id="bandwidth.v1", unit="bytes/s", direction="higher", title="bandwidth",
    formula="bytes moved by a call / its latency. This is an upper bound, because caches serve some of the reads and "
    "writes",
    short="bytes moved by a call / its latency; an upper bound, because caches serve some of it",
)  # fmt: skip
BANDWIDTH_SHARE = Metric(
    id="bandwidth_share.v1", unit="1", direction="higher", title="share of peak bandwidth",
    formula="bandwidth / peak bandwidth",
)  # fmt: skip

LATENCY_PER_TOKEN = _lower(
    "latency_per_token.v1",
    "s",
    "time per token",
    "latency of a call / number of tokens that it generated, over all its items",
)
RTF = _lower(
    "rtf.v2", "1", "real-time factor",
    "latency of a call / seconds of audio in the call, without padding. For speech synthesis from text, the generated "
    "audio counts. For several batches: sum of latencies / sum of audio",
    combined="divided", short="latency / seconds of audio; below 1 is faster than real time",
)  # fmt: skip
RTF_CPU = _lower(
    "rtf_cpu.v2", "1", "real-time factor, CPU busy",
    "mean busy time of the CPU in a profiled call / mean seconds of audio in the same calls, without padding",
    combined="ratio", short="CPU busy time of a call / seconds of audio",
)  # fmt: skip
RTF_GPU = _lower(
    "rtf_gpu.v2", "1", "real-time factor, GPU busy",
    "mean busy time of the GPU in a profiled call / mean seconds of audio in the same calls, without padding",
    combined="ratio", short="GPU busy time of a call / seconds of audio",
)  # fmt: skip
RANK_CORRELATION = _plain(
    "rank_correlation.v1",
    "1",
    "rank correlation",
    "Spearman's rho between two metrics, over the models measured at one input size and batch",
    short="Spearman's rho: 1 if both metrics rank the models in the same order, -1 if in reverse",
)
REAL_OVER_NOISE = _plain(
    "real_over_noise.v1", "1", "real / noise",
    "value of a metric on real audio / its value on noise, for one model at one input size",
    short="value of a metric on real audio / its value on noise",
)  # fmt: skip
RTFX = Metric(
    id="rtfx.v2", unit="1", direction="higher", title="inverse real-time factor", formula="1 / rtf",
    short="seconds of audio / latency; above 1 is faster than real time",
)  # fmt: skip
THROUGHPUT = Metric(
    id="throughput.v2", unit="1/s", direction="higher", title="throughput",
    formula="items in a call / latency. For several batches: sum of items / sum of latencies",
    short="items processed per second",
)  # fmt: skip

LARGEST_FITTING = _higher(
    "largest_fitting.v1", "1", "largest that fits",
    "largest tested value of an axis at which no call ran out of memory. It is below the smallest value at which a "
    "call "
    "did",
    short="largest tested size at which no call ran out of memory",
)  # fmt: skip
SMALLEST_FAILING = _plain(
    "smallest_failing.v1", "1", "smallest that does not fit",
    "smallest tested value of an axis at which a call ran out of memory", exact=True,
    short="smallest tested size at which a call ran out of memory",
)  # fmt: skip
LARGEST_SAFE = _higher(
    "largest_safe.v1",
    "1",
    "with margin",
    "largest that fits × (1 − safety margin), rounded down to a whole step",
    short="largest size that fits, minus the safety margin",
)
GROWTH_EXPONENT = _plain(
    "growth_exponent.v1", "1", "exponent",
    "slope of a straight line through log(value) over log(size), fitted by least squares to all sizes of one row",
    short="k if the value grows as size^k: 1 is linear, 2 is quadratic",
)  # fmt: skip
GROWTH_EXPONENT_LOCAL = _plain(
    "growth_exponent_local.v1", "1", "exponent at the end",
    "slope of log(value) over log(size) between two sizes: the largest size, and the largest size that is at most two "
    "thirds of it",
    short="k between two of the largest sizes, if the value grows as size^k",
)  # fmt: skip
QUADRATIC_SHARE = _plain(
    "quadratic_share.v1", "%", "quadratic part",
    "100 × c·x² / (a + b·x + c·x²) at the largest size x. The coefficients a, b and c are at least 0 and are fitted by "
    "least squares of relative errors",
    short="share of the term c·x² in a fitted curve a + b·x + c·x², at the largest size",
)  # fmt: skip
SATURATION_BATCH = _plain(
    "saturation_batch.v1", "1", "saturating batch",
    "smallest batch whose throughput is within 10 % of the best throughput of cases that differ only in batch size",
    short="smallest batch whose throughput is within 10 % of the best throughput",
)  # fmt: skip

FLOOR = _plain(
    "floor.v1", "s", "floor",
    "for a loss alone: bytes to read (logits without padding) and to write (gradients with padding) / peak bandwidth. "
    "For a whole step with an exact loss: FLOPs of the joiner's three matrix products over the cells without padding / "
    "peak arithmetic",
    short="shortest possible time for the work, from the measured peaks of the device",
)  # fmt: skip
FLOOR_RATIO = _lower(
    "floor_ratio.v1",
    "1",
    "latency / floor",
    "latency of a call / floor, the shortest possible time for its work on the device",
)
LOSS_DEVIATION = _lower(
    "loss_deviation.v1", "1", "deviation of the loss",
    "relative error of an utterance's loss against the float64 reference, largest over all utterances",
    exact=True, short="largest relative error of an utterance's loss against the float64 reference",
)  # fmt: skip
GRADIENT_DEVIATION = _lower(
    "gradient_deviation.v1", "1", "deviation of the gradient",
    "relative L2 error of an utterance's gradient against the float64 reference, largest over all utterances",
    exact=True, short="largest relative error of an utterance's gradient against the float64 reference",
)  # fmt: skip
SHARED_TRIAL = "whole step"
"""The label of the deviations that compare the same tensors of every loss: a step of 343 frames and 80 labels."""

ANSWERED = _plain(
    "answered.v1", "1", "answered",
    "1 for an utterance whose output contains text, 0 for an utterance whose output is empty",
    exact=True,
    notes={"utterances": Note.TEXT_EACH, "speakers": Note.TEXT_EACH},
)  # fmt: skip
WORD_ERRORS = _lower(
    "word_errors.v1", "1", "word errors",
    "smallest number of word substitutions, deletions and insertions that turn the reference of an utterance into the "
    "output",
    exact=True, short="words to substitute, delete or insert to turn the reference into the output",
)  # fmt: skip
REFERENCE_WORDS = _plain(
    "reference_words.v1", "1", "reference words", "number of words in the reference of an utterance", exact=True
)
WORD_ERRORS_OPEN_ASR = _lower(
    "word_errors_open_asr.v1", "1", "word errors (Open ASR)",
    "smallest number of word substitutions, deletions and insertions that turn the reference of an utterance into the "
    "output, after the English normaliser of the Open ASR Leaderboard. Two words that are one word in the other text, "
    "such as `white paper` and `whitepaper`, are no error (kaldialign with merge_compounds)",
    exact=True, short="word errors after the leaderboard's normaliser; a split or joined compound is none",
)  # fmt: skip
REFERENCE_WORDS_OPEN_ASR = _plain(
    "reference_words_open_asr.v1", "1", "reference words (Open ASR)",
    "number of words in the reference of an utterance, after the English normaliser of the Open ASR Leaderboard",
    exact=True, short="words of the reference after the leaderboard's normaliser",
)  # fmt: skip
CHARACTER_ERRORS = _lower(
    "character_errors.v1",
    "1",
    "character errors",
    "smallest number of character substitutions, deletions and insertions that turn the reference of an utterance into "
    "the output. Spaces between words count as characters",
    exact=True,
    short="characters to substitute, delete or insert to turn the reference into the output",
)
REFERENCE_CHARACTERS = _plain(
    "reference_characters.v1", "1", "reference characters",
    "number of characters in the reference of an utterance, spaces included",
    exact=True,
)  # fmt: skip
BLEU_STATISTICS = _plain(
    "bleu_statistics.v1", "1", "BLEU statistics",
    "for each utterance: length of the output, length of the reference, and for n from 1 to 4 the number of matching "
    "n-grams and of n-grams in the output",
    exact=True, short="n-gram counts of each utterance, from which BLEU is computed",
)  # fmt: skip
CHRF_STATISTICS = _plain(
    "chrf_statistics.v1", "1", "chrF statistics",
    "for each utterance and for n from 1 to 6: number of character n-grams in the output, in the reference and in both",
    exact=True, short="character n-gram counts of each utterance, from which chrF is computed",
)  # fmt: skip
WER = _lower(
    "wer.v1",
    "%",
    "WER",
    "100 × sum of word errors / sum of reference words, over all utterances",
    exact=True,
    short="word errors / words of the references, over all utterances",
    notes=_IMPORTED,
)
WER_OPEN_ASR = _lower(
    "wer_open_asr.v1", "%", "WER (Open ASR)",
    "100 × sum of word_errors_open_asr / sum of reference_words_open_asr, over all utterances: the WER of the Open ASR "
    "Leaderboard for English",
    exact=True, short="word errors / reference words over all utterances, as the Open ASR Leaderboard counts them",
    notes=_IMPORTED,
)  # fmt: skip
CER = _lower(
    "cer.v1",
    "%",
    "CER",
    "100 × sum of character errors / sum of reference characters, over all utterances",
    exact=True,
    short="character errors / characters of the references, over all utterances",
    notes=_IMPORTED,
)
BLEU = _higher(
    "bleu.v1", "1", "BLEU",
    "sacrebleu's corpus BLEU, 0 to 100: brevity penalty × geometric mean of the n-gram precisions for n from 1 to 4, "
    "with exponential smoothing",
    short="sacrebleu's corpus BLEU, 0 to 100",
    notes=_IMPORTED,
)  # fmt: skip
CHRF = _higher(
    "chrf.v1", "1", "chrF",
    "sacrebleu's corpus chrF2, 0 to 100: F score of the mean precision and mean recall of character n-grams; recall "
    "has "
    "twice the weight",
    short="sacrebleu's corpus chrF2, 0 to 100",
    notes=_IMPORTED,
)  # fmt: skip
COMPLETENESS = _higher(
    "completeness.v1",
    "%",
    "completeness",
    "100 × number of utterances whose output contains text / number of all utterances",
)
WER_DIFFERENCE = _lower(
    "wer_difference.v1", "%", "ΔWER",
    "WER of the first system minus that of the second system, over the same utterances",
    exact=True,
)  # fmt: skip
CER_DIFFERENCE = _lower(
    "cer_difference.v1", "%", "ΔCER",
    "CER of the first system minus that of the second system, over the same utterances",
    exact=True,
)  # fmt: skip
BLEU_DIFFERENCE = _higher(
    "bleu_difference.v1",
    "1",
    "ΔBLEU",
    "BLEU of the first system minus that of the second system, over the same utterances",
)
CHRF_DIFFERENCE = _higher(
    "chrf_difference.v1",
    "1",
    "ΔchrF",
    "chrF of the first system minus that of the second system, over the same utterances",
)

_TALKS = {
    "of": Note.WHOLE_EACH, "missing": Note.NUMBERS, "timeout_s": Note.NUMBER_OR_NONE, "withheld": Note.TEXTS,
    "normaliser": Note.TEXT, "above": Note.NUMBER_EACH, "below": Note.NUMBER_EACH, "word": Note.WHOLE_EACH,
    "heard_by": Note.TEXT, "prebuffer_s": Note.NUMBER,
}  # fmt: skip
"""Notes of live metrics.

`of`: the conversation of each value, as an index into those of `live_answered`. `missing`: the conversations that gave
no answer within `timeout_s`. `withheld`: why others have no value. `above` and `below`: what is divided, and by what.
`word`: the word of the reference that a value is about, as an index. `heard_by`: the recogniser that heard the sound.
`prebuffer_s`: seconds of sound that came before it was played.
"""


def _delay(id: str, title: str, formula: str, short: str = "", unit: str = "s") -> Metric:
    """A time of each conversation, or of each word or text in it."""
    return _lower(id, unit, title, formula, combined="conversations", signed=True, short=short, notes=_TALKS)


def _talks(make: Callable[..., Metric], id: str, unit: str, title: str, formula: str, short: str = "") -> Metric:
    """A ratio of sums over conversations."""
    return make(id, unit, title, formula, combined="pooled", short=short, notes=_TALKS, exact=False)


LIVE_ANSWERED = _plain(
    "live_answered.v1", "1", "live answers",
    "1 for a conversation that ended without an error and has a final text with at least one word, 0 for any other. If "
    "the reference has no words, or the system gives no text at all, the text is not required. A system that speaks "
    "needs audible sound instead",
    short="1 for a conversation with a final text and without an error, else 0",
    notes={**_TALKS, "utterances": Note.TEXT_EACH, "speakers": Note.TEXT_EACH, "streams": Note.WHOLE_EACH,
           "errors": Note.TEXT_EACH},
)  # fmt: skip
LIVE_COMPLETENESS = _talks(
    _higher, "live_completeness.v1", "%", "live completeness",
    "100 × number of conversations that ended without an error and have a final text with at least one word / number "
    "of all conversations. A system that speaks needs audible sound instead of a text",
    "share of conversations that ended without an error and have a final text, or audible sound",
)  # fmt: skip
FIRST_PARTIAL_FROM_SEND = _delay(
    "first_partial_from_send.v1", "first text after the first chunk",
    "time from the moment at which the first chunk of audio was due to the first partial or final text with a word",
    "time from the moment at which the first chunk of audio was due to the first text",
)  # fmt: skip
FIRST_PARTIAL_FROM_ONSET = _delay(
    "first_partial_from_onset.v1", "first text after speech starts",
    "time from the true start of speech to the first partial or final text with a word. Below 0: text before speech",
    "time from the true start of speech to the first text",
)  # fmt: skip
FIRST_PARTIAL_SERVICE = _delay(
    "first_partial_service.v1", "first text, without client delay",
    "time from the moment at which the first chunk of audio was sent to the first partial or final text with "
    "a word. Unlike first_partial_from_send, it does not include the delay of the client",
    "time from when the first chunk was sent (not when it was due) to the first text",
)  # fmt: skip
EARLY_TEXT = _talks(
    _lower, "early_text.v1", "%", "text before speech",
    "100 × number of conversations whose first text with a word came before the true start of speech / number of "
    "conversations with a text",
    "share of conversations with text before the true start of speech",
)  # fmt: skip
FINAL_DELAY = _delay(
    "final_delay.v1", "final delay",
    "time from the true end of speech to the last final text with a word that changed the committed text, which is "
    "the text of all finals. The end of speech is a property of the recording and the same for all systems. A "
    "conversation without a final text, or with an error, counts as longer than the timeout",
    "time from the true end of speech until the text is final",
)  # fmt: skip
FINALIZE_DELAY = _delay(
    "finalize_delay.v1", "delay after finish",
    "time from the moment at which the end of the input was due to be signalled (finish) to the last final text with a "
    "word that changed the committed text. Unlike final_delay, it does not include the detection of the end of speech",
    "time from when the end of the input (finish) was due until the text is final",
)  # fmt: skip
FINALIZE_SERVICE = _delay(
    "finalize_service.v1", "delay after finish, without client delay",
    "time from the moment at which the end of the input was signalled (finish) to the last final text with a "
    "word that changed the committed text. Unlike finalize_delay, it does not include the delay of the client",
    "time from when finish was called (not when it was due) until the text is final",
)  # fmt: skip
ENDPOINT_DELAY = _delay(
    "endpoint_delay.v1", "endpoint delay",
    "time from the true end of speech to the last decision of the system that the turn has ended. Below 0: too early",
    "time from the true end of speech to the system's decision that the turn has ended",
)  # fmt: skip
REQUEST_LATENCY = _delay(
    "request_latency.v1", "request latency",
    "time from the moment at which a request was due until the last final text with a word; only with `pace: fast`. "
    "With arrivals at a rate, it includes waiting in queues, also in the client's own. A request without an answer, "
    "or with an error, counts as longer than the timeout",
    "time from the moment at which a request was due until its answer is complete",
)  # fmt: skip
FIRST_TOKEN = _delay(
    "first_token.v1", "first piece of the answer",
    "time from the moment at which a request was due until the first text with a word, if the "
        "answer comes in several messages; only with `pace: fast`",
    "time from when a request was due until the first part of its answer with a word",
)  # fmt: skip
OPEN_DELAY = _delay(
    "open_delay.v1", "delay of opening",
    "time from the moment at which a conversation was due until it was open and its audio began; a connection that "
    "is open in time has 0. No other delay of a paced conversation includes it. A conversation that was never open "
    "counts as longer than the timeout",
    "time from when a conversation was due until it was open",
)  # fmt: skip
CLIENT_QUEUE = _delay(
    "client_queue.v2", "late starts",
    "time from the moment at which a request was due until the client began it, before it connects; only with arrivals "
    "at a rate and `pace: fast`",
    "time from the moment at which a request was due until the client began it",
)  # fmt: skip
EARLY_ENDPOINT = _talks(
    _lower, "early_endpoint.v1", "%", "early endpoints",
    "100 × number of conversations in which the system decided before the true end of speech that the turn has ended / "
    "number of conversations with such a decision",
    "share of conversations whose turn the system ended before the true end of speech",
)  # fmt: skip
WORD_LAG = _delay(
    "word_lag.v2", "word lag",
    "for each word that is correct in the final text of a conversation without an error: time from the end of the word "
    "in the audio to the first text from which on all texts contain it. To find a word in a text, the text is aligned "
    "with the most similar beginning of the final text. word_coverage is the share of words that are correct",
    "time from the end of a word to the text from which on it never changes; correct words only",
)  # fmt: skip
WORD_LAG_FIRST = _delay(
    "word_lag_first.v2", "word lag, first",
    "time from the end of a word in the audio to the first text that contains it, even if a later text drops it again. "
    "For the same words as word_lag",
    "time from the end of a word to the first text that contains it; correct words only",
)  # fmt: skip
WORD_COVERAGE = _talks(
    _higher, "word_coverage.v2", "%", "words with a lag",
    "100 × number of words of the reference that are correct in the final text / number of words of the reference with "
    "known times. A conversation that ended with an error has no final text",
    "share of the words of the reference for which word_lag is known",
)  # fmt: skip
PARTIAL_CHURN = _talks(
    _lower, "partial_churn.v1", "1", "rewritten words",
    "normalised erasure, also known as UPWR: number of words of a text that come after the first difference from the "
    "next text, summed over all texts up to the final one / number of words of the final text",
    "number of words that were shown and later changed / number of words of the final text",
)  # fmt: skip
PARTIAL_CHURN_RAW = _talks(
    _lower, "partial_churn_raw.v1", "1", "rewritten words, raw text",
    "partial_churn without text normalisation: a change of case or punctuation also counts",
    "changed words / words of the final text; a change of case or punctuation also counts",
)  # fmt: skip
PARTIAL_CHURN_LENIENT = _talks(
    _lower, "partial_churn_lenient.v1", "1", "rewritten words, lenient",
    "partial_churn, but the last word of a text does not count if the next text only completes it (some, something)",
    "changed words / words of the final text; completing the last word is not a change",
)  # fmt: skip
PARTIAL_REVISIONS = _talks(
    _lower, "partial_revisions.v1", "1", "revisions",
    "number of texts that changed or removed a word of the previous text / number of conversations. Also known as UPSR",
    "mean number of texts in a conversation that changed or removed a shown word",
)  # fmt: skip
CHUNK_WAIT = _delay(
    "chunk_wait.v1", "chunk wait",
    "time from the true end of speech to the moment at which the chunk with the end of speech was due. It is the part "
    "of final_delay that the chunk size causes",
    "part of final_delay that the chunk size causes: the wait for the end of the last chunk",
)  # fmt: skip
PARTIAL_GAP = _delay("partial_gap.v1", "time between texts", "time from one text to the next text with other words")
TAIL_LOSS = _talks(
    _lower, "tail_loss.v2", "%", "tail loss",
    "100 × number of words of the reference after its last correct word / number of words of the reference. A "
    "conversation that ended with an error has no correct word",
    "share of the words of the reference that are missing at its end",
)  # fmt: skip
MUTE_LONGEST = _delay(
    "mute_longest.v1", "longest mute",
    "longest stretch of speech, in seconds without pauses, during which no text with a new word came",
    "longest stretch of speech, without pauses, during which no text with a new word came",
)  # fmt: skip
LAAL = _delay(
    "laal.v1", "LAAL",
    "length-adaptive average lagging, computation-aware: (1 / τ) × sum for i from 1 to τ of (dᵢ − (i − 1) × |X| / "
    "max(words of the final text, words of the reference)). dᵢ: moment from which on the first i words of the final "
    "text no longer change. |X|: seconds of audio. τ: the first i with dᵢ ≥ |X|. If d₁ > |X|, it is d₁",
    "mean delay of words against an ideal system (LAAL, computation-aware)",
)  # fmt: skip
KEEP_UP = _delay(
    "keep_up.v1", "slope of the delay",
    "slope of a straight line through the delay of the text over the position in the stream, fitted by least squares "
    "after the first 10 s, for streams of at least 60 s. 0: the system keeps up",
    "growth of the text's delay, in seconds per second of the stream; 0: the system keeps up",
    unit="s/s",
)  # fmt: skip
BACKLOG = _delay(
    "backlog.v2", "largest backlog",
    "largest amount of speech in a conversation, in seconds without pauses, that was already spoken but not yet in the "
    "text. The text covers the audio up to the last correct word that no later text changed, or up to the end time "
    "that a final states, whichever is later. A word counts from its end on. Without times of words, all audio from "
    "the start to the end of speech counts as speech",
    "most seconds of speech, without pauses, that were already spoken but not yet in the text",
)  # fmt: skip
LIVE_WER = _talks(
    _lower, "live_wer.v2", "%", "live WER",
    "100 × sum of word errors of the final texts / sum of reference words, over all conversations. Without a final "
    "text, or with an error, all words count as deleted",
    "word errors / reference words; without a final text or with an error: all words are errors",
)  # fmt: skip
LIVE_WER_DELTA = _lower(
    "live_wer_delta.v1", "%", "live WER − offline WER",
    "live WER minus the WER of the same system on whole recordings, over the same utterances",
    exact=True,
)  # fmt: skip
LIVE_RTF = _talks(
    _lower, "live_rtf.v1", "1", "busy time / audio",
    "sum of the times that the engine computed / sum of seconds of audio that it was fed, silence included",
    "time that the engine computed / audio that it was fed, silence included",
)  # fmt: skip
_AT_A_LEVEL = (
    "seconds of audio (if the system is given text: of sound made) of the complete conversations that ended under full "
    "load / seconds of full load. Complete: with a final text (if the system speaks: audible sound) and without an "
    "error. Full load: from the start of the last stream until the end of the first one. If conversations arrive at a "
    "rate: from the end of the first complete conversation, which is not counted, to the end of the last"
)
LIVE_THROUGHPUT = _talks(
    _higher, "live_throughput.v1", "1", "throughput",
    _AT_A_LEVEL,
    "seconds of audio of complete conversations in each second under full load",
)  # fmt: skip
GOODPUT = _talks(
    _higher, "goodput.v1", "1", "goodput",
    f"{_AT_A_LEVEL}. Only conversations whose delays are within all bounds of the SLO count",
    "throughput of the conversations that were within the bounds of the SLO",
)  # fmt: skip
SLO_SHARE = _plain(
    "slo_share.v1", "%", "conversations within a limit",
    "100 × number of conversations within a limit of the SLO / number of all conversations; one without an answer is "
    "beyond every limit. In brackets: a lower and an upper bound, each with 95 % confidence. They are those of the "
    "exact binomial distribution or of Student's t over rounds, whichever are wider",
    short="share of conversations within the limit; in brackets, lower and upper 95 % bounds",
)  # fmt: skip
TTFS_PIPECAT = _delay(
    "ttfs_pipecat.v1", "TTFS as Pipecat defines it",
    "time from the true end of speech to the last final text with a word that came within 2.2 s of it (Pipecat waits "
    "2 s after its voice activity detector, which reports after 0.2 s). Conversations whose last such final came "
    "before the end of speech, or never, are left out, as in Pipecat",
    "Pipecat's time to final segment; conversations without one are left out",
)  # fmt: skip
TTFT_VLLM = _delay(
    "ttft_vllm.v1", "TTFT as vLLM defines it",
    "time from the start of the request, which is here the send of the first chunk, to the first "
        "partial or final, even "
    "if its text is empty. Conversations without a partial or final are left out, as in vLLM's benchmark",
    "vLLM's time to first token: the first event counts, even if it is empty",
)  # fmt: skip
_TEXT_DUE = "the moment at which the text, or its first token, was due"
_PLAYED = "playback starts when the pre-buffer of the plan has arrived, and continues as soon as sound arrives"
FIRST_BYTE = _delay(
    "first_byte.v1", "first byte of sound",
    f"time from {_TEXT_DUE} to the first sample of sound. A file header does not count as sound. If the system is "
    "given speech instead of text, the time starts at the true end of speech",
    "time from when the text was due to the first sample of sound; a header does not count",
)  # fmt: skip
FIRST_SOUND = _delay(
    "first_sound.v1", "first sound",
    f"time from {_TEXT_DUE} to the first audible sample (the onset), if playback starts with the first sample that "
    "arrives. It is the later of two moments: the arrival of the piece that contains the onset, and first_byte plus "
    "the position of the onset in the sound. The onset is the start of the first 3 successive frames of 10 ms whose "
    "root mean square, after the mean of all samples is subtracted, is above -60 dBFS and at most 40 dB below the "
    "loudest frame. An answer without an onset counts as longer than the timeout. If the system is given speech "
    "instead of text, the time starts at the true end of speech",
    "time from when the text was due to the first audible sample (time to first audio)",
)  # fmt: skip
FIRST_SOUND_COLD = _lower(
    "first_sound_cold.v1", "s", "first sound, cold",
    "first_sound of the first conversation of a round, which is a warm-up and in no other figure",
    short="first_sound of the first conversation of a round, which is a warm-up",
    signed=True, notes=_TALKS,
)  # fmt: skip
FIRST_SOUND_REPEATED = _delay(
    "first_sound_repeated.v1", "first sound, repeated texts",
    "first_sound of texts that had been sent before in the same round, warm-up included; a system may answer these "
    "from a cache",
    "first_sound of texts that had been sent before in the same round",
)  # fmt: skip
REPEATED_TEXTS = _talks(
    _lower, "repeated_texts.v1", "%", "repeated texts",
    "100 × number of texts that had been sent before in the same round, warm-up included / number of texts",
    "share of texts that had been sent before in the same round",
)  # fmt: skip
LEADING_SILENCE = _delay(
    "leading_silence.v1", "leading silence",
    "position of the onset in the sound: the part of first_sound that the voice causes, if no gap comes before it",
    "seconds of sound before the onset",
)  # fmt: skip
TRAILING_SILENCE = _delay(
    "trailing_silence.v1", "trailing silence",
    "seconds of sound after the last 3 successive frames of 10 ms above the threshold of the onset (see first_sound)",
    "seconds of sound after the end of its speech",
)  # fmt: skip
SOUND_GAP = _delay(
    "sound_gap.v1", "time between pieces of sound", "time from the arrival of one piece of sound to that of the next"
)
UNDERRUN_LONGEST = _delay(
    "underrun_longest.v1", "longest underrun",
    f"longest pause of playback in an answer; {_PLAYED} after a pause. An answer that comes in one piece has no pause",
    "longest pause of playback in an answer, after the pre-buffer of the plan",
)  # fmt: skip
UNDERRUN_TOTAL = _delay(
    "underrun_total.v1", "underrun, sum",
    f"sum of all pauses of playback in an answer; {_PLAYED} after a pause. An answer that comes in one piece has no "
    "pause",
    "sum of all pauses of playback in an answer, after the pre-buffer of the plan",
)  # fmt: skip
UNDERRUN_COUNT = _talks(
    _lower, "underrun_count.v1", "1", "underruns",
    f"number of pauses of playback / number of answers in several pieces; {_PLAYED} after a pause",
    "mean number of pauses of playback in an answer, after the pre-buffer of the plan",
)  # fmt: skip
PREBUFFER_NEEDED = _delay(
    "prebuffer_needed.v1", "delay that avoids underruns",
    "how long after the first sample playback would have to start, so that there is no pause: the maximum over all "
    "pieces of (arrival of the piece - arrival of the first piece - seconds of sound before the piece). It does not "
    "depend on the pre-buffer",
    "how much later playback would have to start, so that there is no pause",
)  # fmt: skip
SPEECH_RTF = _talks(
    _lower, "speech_rtf.v1", "1", "speech RTF",
    "sum of the times from when the texts were due to the last sample of sound / sum of seconds of sound",
    "time to the last sample / seconds of sound made",
)  # fmt: skip
SPEECH_CHARACTERS = _talks(
    _higher, "speech_characters.v1", "1/s", "characters per second",
    "sum of characters of the texts / sum of the times from when they were due to the last sample of sound",
    "characters of text per second, from when the text was due to the last sample of sound",
)  # fmt: skip
SPEECH_WORDS = _talks(
    _higher, "speech_words.v1", "1/s", "words per second",
    "sum of words of the texts / sum of the times from when they were due to the last sample of sound",
    "words of text per second, from when the text was due to the last sample of sound",
)  # fmt: skip
SOUND_MADE = _talks(
    _plain, "sound_made.v1", "s", "sound made", "sum of seconds of sound / number of conversations",
    "mean seconds of sound of an answer",
)  # fmt: skip
SPEAKING_RATE = _talks(
    _plain, "speaking_rate.v1", "1/s", "speaking rate",
    "sum of words of the texts / sum of seconds of sound between leading and trailing silence",
    "words per second of speech in the sound",
)  # fmt: skip
SOUND_LEVEL = _plain(
    "sound_level.v1", "dB", "level of the speech",
    "root mean square of all frames of 10 ms above the threshold of the onset (see first_sound), in dB relative to "
    "full scale",
    short="root mean square of the speech in the sound, in dB relative to full scale",
    combined="conversations", signed=True, notes=_TALKS,
)  # fmt: skip
CLIPPING = _delay(
    "clipping.v1", "clipped samples",
    "100 × number of samples within 0.1 % of full scale / number of samples, of each answer",
    "share of the samples of an answer that are at full scale",
    unit="%",
)  # fmt: skip
ROUND_TRIP_WER = _talks(
    _lower, "round_trip_wer.v1", "%", "round-trip WER",
    "100 × sum of word errors in the transcripts of the plan's recogniser / sum of words of the texts. It includes "
    "the errors of the recogniser, so it is no score of the voice alone. Without sound, all words count as deleted",
    "word errors of the plan's recogniser, which hears the sound / words of the texts",
)  # fmt: skip
BARGE_IN_STOP = _delay(
    "barge_in_stop.v1", "barge-in stop",
    "time from the start of the user's interruption to the end of the system's sound: to the end of playback of all "
    "sound that arrived, or to the moment at which the system ended the answer early, because a player then drops "
    "the rest",
    "time from the user's interruption to the end of the system's sound",
)  # fmt: skip
VOICE_TO_VOICE = _delay(
    "voice_to_voice.v1", "voice to voice",
    "time from the true end of the user's speech to the first audible sample of the answer, as in first_sound. It is "
    "the sum of its parts: voice_recognition, voice_thinking, voice_synthesis and voice_onset",
    "time from the end of the user's speech to the first audible sample of the answer",
)  # fmt: skip
VOICE_RECOGNITION = _delay(
    "voice_recognition.v1", "until the text is final",
    "part of voice_to_voice: from the true end of speech to the last final text before the answer is given to the "
    "synthesiser",
    "part of voice_to_voice: from the end of speech to the final text",
)  # fmt: skip
VOICE_THINKING = _delay(
    "voice_thinking.v1", "until the answer is text",
    "part of voice_to_voice: from the last final text of the user's speech to the moment at which the synthesiser "
    "gets the text of the answer",
    "part of voice_to_voice: from the final text to the text of the answer",
)  # fmt: skip
VOICE_SYNTHESIS = _delay(
    "voice_synthesis.v1", "until the first byte",
    "part of voice_to_voice: from the text of the answer to the first sample of sound; if the system reports no "
    "texts, from the end of speech",
    "part of voice_to_voice: from the text of the answer to the first sample",
)  # fmt: skip
VOICE_ONSET = _delay(
    "voice_onset.v1", "until it is audible",
    "part of voice_to_voice: from the first sample of sound to the first audible one",
    "part of voice_to_voice: from the first sample to the first audible one",
)  # fmt: skip
_SENDS = "of the client's send delay, over all chunks of a round"
_LATE = "The send delay of a chunk is the moment at which its send began minus the moment at which it was due"
CLIENT_SLIP_P50 = _lower(
    "client_slip_p50.v1",
    "s",
    "send delay, p50",
    f"50th percentile {_SENDS}. {_LATE}",
    short=f"50th percentile {_SENDS}",
)
CLIENT_SLIP_P99 = _lower(
    "client_slip_p99.v1",
    "s",
    "send delay, p99",
    f"99th percentile {_SENDS}. {_LATE}",
    short=f"99th percentile {_SENDS}",
)
CLIENT_SLIP_MAX = _lower(
    "client_slip_max.v1", "s", "send delay, max", f"maximum {_SENDS}. {_LATE}", short=f"maximum {_SENDS}"
)
CLIENT_LAG_P99 = _lower(
    "client_lag_p99.v1", "s", "event-loop lag, p99",
    "99th percentile over a round: how late the client's event loop woke from a wait of 10 ms",
)  # fmt: skip
CLIENT_LAG_MAX = _lower(
    "client_lag_max.v1", "s", "event-loop lag, max",
    "maximum over a round: how late the client's event loop woke from a wait of 10 ms",
)  # fmt: skip
CLIENT_BUSY = _lower(
    "client_busy.v1",
    "1",
    "client CPU share",
    "CPU time of the thread that sends audio and receives texts / wall time of the round",
)
MEMORY_LIVE = _lower(
    "memory_live.v1", "bytes", "memory while live",
    "highest resident memory of the process that holds the conversations and of those that it started, from the first "
    "to the last of them; if each stream has its own process, the sum over these processes. A server is read apart",
    short="highest resident memory while conversations were held",
)  # fmt: skip
MEMORY_SERVER = _lower(
    "memory_server.v1", "bytes", "memory of the server",
    "highest sum of the resident sizes of a server and all processes that it started, read every 0.1 s while "
    "conversations were held; memory that processes share counts in each",
    short="highest resident memory of a server and its child processes, while it was measured",
)  # fmt: skip
CPU_SERVER = _lower(
    "cpu_server.v1", "1", "cores used by the server",
    "CPU time of a server and all processes that it started / wall time, while conversations were held",
    short="CPU time of a server and its child processes / wall time, while it was measured",
)  # fmt: skip

_OF_FILES = {
    stated.STATED: Note.STATED, stated.COUNT: Note.NUMBER, stated.REQUESTS: Note.NUMBERS, stated.FILE: Note.TEXT,
}  # fmt: skip
STATED: Mapping[str, Metric] = {
    one.name: Metric(
        id=f"{one.name}.v1", unit=one.unit, direction=cast(Direction, one.direction), title=one.title,
        formula=one.formula, short=one.short, combined="stated", notes=_OF_FILES,
    )
    for one in stated.EVERY
}  # fmt: skip
"""Figures of other tools, by name."""

register(value for value in list(globals().values()) if isinstance(value, Metric))
register(STATED.values())
register(ENERGY_PER_AUDIO_HOUR.values())
