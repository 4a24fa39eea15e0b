"""What each figure means. One word, one formula: a changed formula gets a new version.

Records with different definitions are never compared silently, because the version is part of the id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

Direction = Literal["lower", "higher", "neither"]
Combination = Literal["typical", "divided", "mean", "ratio"]
"""How raw values become one figure.

- `typical`: the geometric mean over rounds of each round's median.
- `divided`: the same for the whole call. A stage gets its share of that figure, so that the stages add up to the call.
- `mean`: the arithmetic mean over the calls of a round and over rounds. Rows of one table add up, because every row is
  taken over the same calls and rounds: one that a call does not have counts 0 there.
- `ratio`: one such mean over another, of the same rounds.
"""


class Note(Enum):
    """Kinds of values that a note of a measurement may have. Those named `EACH` hold one entry for each value."""

    TEXT = "text"
    TEXTS = "list of texts"
    TEXT_EACH = "text for each value"
    FLAG = "true or false"
    WHOLE = "whole number from 0 on"
    WHOLE_EACH = "whole number from 0 on for each value"
    NUMBER = "number"
    NUMBER_OR_NONE = "number or nothing"
    NUMBERS = "number, or a list of them"
    NUMBER_EACH = "number for each value"
    MAPPING = "mapping"
    ROWS = "list of [text, text, number]"
    PARTS_EACH = "mapping from name and direction to a list of numbers"
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
PHASE = _plain(
    "phase.v1",
    "s",
    "phases",
    "wall time of each phase of a measuring process. The notes of the measurement name the phases",
    short="time of each phase of a measuring process",
    notes={"phases": Note.TEXT_EACH},
)

OTHER_BUSY = _lower(
    "other_busy.v1", "1", "used by others", "share of the CPU cores of the case that other processes used"
)

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
ITEMS = _plain("items.v1", "1", "items", "items in one call", exact=True)
ITEMS_REFUSED = _plain(
    "items_refused.v1", "1", "items left out", "number of requested items of a dataset that could not be used",
    exact=True,
)  # fmt: skip
TOKENS = _plain("tokens.v1", "1", "tokens", "tokens that one call generates, summed over its items", exact=True)
AUDIO_MADE = _plain("audio_made_seconds.v1", "s", "audio made", "seconds of audio that one call generates", exact=True)

MEMORY_CPU_TOTAL = _lower(
    "memory_cpu_total.v1", "bytes", "peak memory",
    "highest resident memory of the process during one call. This includes the interpreter, the libraries, the weights "
    "and the memory of the call itself",
    short="highest resident memory of the whole process during a call",
)  # fmt: skip
MEMORY_CPU_PEAK = _lower(
    "memory_cpu_peak.v1", "bytes", "peak memory growth",
    "highest resident memory of the process during one call, minus its resident memory before the call",
    short="highest resident memory during a call, minus the resident memory before the call",
)  # fmt: skip
MEMORY_CPU_LOAD = _lower(
    "memory_cpu_load.v1",
    "bytes",
    "memory after load",
    "resident memory of the process after the model is loaded",
    short="resident memory of the process after loading",
)
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
    "GPU memory of the process after one call, as NVML reports it",
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
    return _plain(f"power_{domain}.v1", "W", f"power, {what}", f"mean power of the {what} during the calls")


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
    "parameters_tied.v1", "1", "parameters, ties twice",
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
    "multiply-accumulate counts as 2, of complex numbers as 8",
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
    "mean time in an operator, or in all operators of a kind / mean time in all operators, over the same profiled "
    "calls",
    combined="ratio", short="share of the time of all operators",
)  # fmt: skip
TIME_OPERATOR_TOTAL = _lower(
    "time_operator_total.v1", "s", "with what is inside",
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
    "a figure on real audio / the same figure on noise, for one model at one input size",
    short="a figure on real audio / the same figure on noise",
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
    "smallest_failing.v1", "1", "smallest that does not",
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
    "slope of a straight line through log(figure) over log(size), fitted by least squares to all sizes of one row",
    short="k where a figure grows as size^k: 1 is linear, 2 is quadratic",
)  # fmt: skip
GROWTH_EXPONENT_LOCAL = _plain(
    "growth_exponent_local.v1", "1", "exponent at the end",
    "slope of log(figure) over log(size) between two sizes: the largest size, and the largest size that is at most two "
    "thirds of it",
    short="the same exponent between two of the largest sizes",
)  # fmt: skip
QUADRATIC_SHARE = _plain(
    "quadratic_share.v1", "%", "quadratic part",
    "100 × c·x² / (a + b·x + c·x²) at the largest size x. The coefficients a, b and c are at least 0 and are fitted by "
    "least squares of relative errors",
    short="share of the term c·x² in a fitted curve a + b·x + c·x², at the largest size",
)  # fmt: skip
SATURATION_BATCH = _plain(
    "saturation_batch.v1", "1", "saturating batch",
    "smallest batch whose throughput is within 10 % of the best throughput in its row",
    short="smallest batch whose throughput is within 10 % of the best throughput",
)  # fmt: skip

FLOOR = _plain(
    "floor.v1", "s", "floor",
    "for a loss alone: (bytes of the logits without padding, read + bytes of the gradients with padding, written) / "
    "peak "
    "bandwidth. For a whole step with an exact loss: FLOPs of the joiner's three matrix products over the cells "
    "without "
    "padding / peak arithmetic",
    short="shortest possible time for the work, from the measured peaks of the device",
)  # fmt: skip
FLOOR_RATIO = _lower("floor_ratio.v1", "1", "latency / floor", "latency of a call / shortest possible time (floor)")
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

register(value for value in list(globals().values()) if isinstance(value, Metric))
register(ENERGY_PER_AUDIO_HOUR.values())
