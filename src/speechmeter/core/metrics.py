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
    PARTS_EACH = "by name, by direction, a number for each value"
    LABELS_EACH = "list of rows: labels, module, and by direction a number for each value"


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
    "latency.v1", "s", "latency", "wall time of one call, device synchronised at both edges", combined="divided"
)
LATENCY_LOAD = _lower("latency_load.v1", "s", "load time", "wall time from asking for the subject to its being ready")
LATENCY_FIRST = _lower("latency_first.v1", "s", "first call", "wall time of the first call after loading")
LATENCY_WARMUP = _plain("latency_warmup.v1", "s", "warm-up calls", "wall time of calls made before the samples")
LATENCY_FIRST_ITEM = _lower(
    "latency_first_item.v1", "s", "time to first item", "from a stage's start to the first item it yields"
)
LATENCY_ITEM = _lower("latency_item.v1", "s", "time between items", "from one yielded item to the next")
PHASE = _plain(
    "phase.v1",
    "s",
    "phases",
    "wall time of each phase of a measuring process, named in the notes",
    short="time of each phase of a measuring process",
    notes={"phases": Note.TEXT_EACH},
)

OTHER_BUSY = _lower("other_busy.v1", "1", "used by others", "share of the case's cores in use by other processes")

AUDIO_SECONDS = _plain("audio_seconds.v1", "s", "audio", "true seconds of audio in one call", exact=True)
PADDED_SECONDS = _plain(
    "padded_seconds.v1", "s", "audio, padded", "seconds of audio in one call, padding included", exact=True
)
PADDING_WASTE = _lower(
    "padding_waste.v1", "1", "padding waste", "1 − true seconds of audio / seconds with padding, over all calls",
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
    "items_refused.v1", "1", "items left out", "items of a dataset that were asked for and could not be used",
    exact=True,
)  # fmt: skip
TOKENS = _plain("tokens.v1", "1", "tokens", "tokens generated by one call, all items together", exact=True)
AUDIO_MADE = _plain("audio_made_seconds.v1", "s", "audio made", "seconds of sound that one call puts out", exact=True)

MEMORY_CPU_TOTAL = _lower(
    "memory_cpu_total.v1", "bytes", "peak memory",
    "highest resident size of the process during one call: interpreter, libraries, weights and what the call takes",
    short="highest resident memory of the whole process during a call",
)  # fmt: skip
MEMORY_CPU_PEAK = _lower(
    "memory_cpu_peak.v1", "bytes", "peak memory growth",
    "highest resident size during one call minus the resident size before it",
    short="highest resident memory during a call minus that before it",
)  # fmt: skip
MEMORY_CPU_LOAD = _lower(
    "memory_cpu_load.v1",
    "bytes",
    "memory after load",
    "resident size of the process once the subject is loaded",
    short="resident memory of the process after loading",
)
MEMORY_WEIGHTS = _lower(
    "memory_weights.v1", "bytes", "weights",
    "memory held by parameters, buffers and packed weights, each storage counted once",
    exact=True,
)  # fmt: skip
MEMORY_CUDA_ALLOCATED = _lower(
    "memory_cuda_allocated.v1", "bytes", "peak allocated",
    "torch's highest allocated bytes during one call, weights included",
    short="most GPU memory that torch allocated during a call, weights included",
)  # fmt: skip
MEMORY_CUDA_GROWTH = _lower(
    "memory_cuda_growth.v1", "bytes", "peak allocated growth",
    "torch's highest allocated bytes during one call minus the allocated bytes before it",
    short="most GPU memory that torch allocated during a call minus that before it",
)  # fmt: skip
MEMORY_CUDA_RESERVED = _lower(
    "memory_cuda_reserved.v1", "bytes", "peak reserved",
    "torch's highest reserved bytes during one call that starts from an emptied cache",
    short="most GPU memory that torch reserved during a call",
)  # fmt: skip
MEMORY_CUDA_LOAD = _lower(
    "memory_cuda_load.v1",
    "bytes",
    "allocated after load",
    "torch's allocated bytes once the subject is loaded",
    short="GPU memory that torch holds after loading",
)
MEMORY_CUDA_PROCESS = _lower(
    "memory_cuda_process.v1",
    "bytes",
    "process on device",
    "device memory of the process after one call, by NVML",
)

MEMORY_TENSORS_PEAK = _lower(
    "memory_tensors_peak.v1", "bytes", "peak of tensors",
    "highest bytes of torch's allocations on the device during one call minus those at its start, by the profiler",
    exact=True, short="most memory that torch held on the device during a call minus that before it",
    notes={"operators": Note.ROWS},
)  # fmt: skip
MEMORY_AT_PEAK = _lower(
    "memory_at_peak.v1", "bytes", "held at the peak",
    "bytes that the work of a module allocated during one call and that were alive at the peak",
    exact=True, short="memory that a module allocated and that was still held at the peak",
)  # fmt: skip


def _energy(domain: str, what: str) -> Metric:
    formula = f"energy of the {what} for one call, idle included"
    return _lower(f"energy_{domain}.v1", "J", f"energy, {what}", formula, notes=_CALLS)


def _energy_net(domain: str, what: str) -> Metric:
    formula = f"energy of the {what} for one call minus its idle power times the time of a call"
    short = f"energy of the {what} for one call, without its idle power"
    return _lower(f"energy_{domain}_net.v1", "J", f"net energy, {what}", formula, short=short)


def _power(domain: str, what: str) -> Metric:
    return _plain(f"power_{domain}.v1", "W", f"power, {what}", f"mean power of the {what} during the calls")


def _power_idle(domain: str, what: str) -> Metric:
    formula = f"mean power of the {what} before the calls, the subject loaded"
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
        f"{energy.name} of a call / true seconds of audio in it × 3600",
        short=f"{energy.title}, for one hour of audio",
    )
    for energy in (ENERGY_GPU, ENERGY_GPU_NET, ENERGY_CPU, ENERGY_CPU_NET, ENERGY_SYSTEM, ENERGY_SYSTEM_NET)
}
ENERGY_TDP = _lower(
    "energy_tdp.v1", "J", "energy at the rated power",
    "latency × a rated power (TDP) that the reader stated: an estimate, no sensor was read",
    short="latency × the stated rated power (TDP); no sensor was read",
)  # fmt: skip
CO2_PER_AUDIO_HOUR = _lower(
    "co2_per_audio_hour.v1", "g", "CO2 per audio hour", "energy per audio hour × a stated g CO2 per kWh"
)
COST_PER_1000_AUDIO_HOURS = _lower(
    "cost_per_1000_audio_hours.v1", "currency", "cost per 1,000 audio hours",
    "energy per audio hour × 1,000 × a stated price per kWh",
)  # fmt: skip

MEMORY_NEEDED = _lower(
    "memory_needed.v2", "bytes", "memory needed",
    "weights + peak growth of a call, of several batches that of the one which grows most; "
    "of a cascade, that of the model which needs most, as if alone",
    short="weights plus the peak memory growth of a call",
)  # fmt: skip

PARAMETERS = _plain(
    "parameters.v1", "1", "parameters", "elements of all parameters, shared ones counted once", exact=True
)
PARAMETERS_TIED = _plain(
    "parameters_tied.v1", "1", "parameters, ties twice", "elements of all parameters under every name they have",
    exact=True, short="elements of all parameters, shared ones counted under every name",
)  # fmt: skip
PARAMETER_BYTES = _plain("parameter_bytes.v1", "bytes", "parameter bytes", "storage of all parameters", exact=True)
PARAMETERS_TRAINABLE = _plain(
    "parameters_trainable.v1", "1", "trainable parameters",
    "elements of the parameters that take a gradient, shared ones counted once",
    exact=True,
)  # fmt: skip
BUFFERS = _plain("buffers.v1", "1", "buffers", "elements of all buffers, shared ones counted once", exact=True)
BUFFER_BYTES = _plain("buffer_bytes.v1", "bytes", "buffer bytes", "storage of all buffers", exact=True)

FLOPS = _plain(
    "flops.v1", "flop", "FLOPs",
    "matrix arithmetic of one call outside the backward pass, 2 per real multiply-accumulate, 8 per complex one",
    exact=True, short="matrix arithmetic of one call, forward pass; a multiply-accumulate counts as 2",
    notes={**_CALLS, "unknown": Note.MAPPING, "no arithmetic by torch in": Note.TEXTS},
)  # fmt: skip
FLOPS_BACKWARD = _plain(
    "flops_backward.v1", "flop", "FLOPs, backward", "the same inside the backward pass, recomputed parts included",
    exact=True, short="matrix arithmetic of the backward pass of one call, recomputed parts included",
    notes={"recompute": Note.NUMBER_EACH, "attention": Note.TEXTS},
)  # fmt: skip
FLOPS_HARDWARE = _plain(
    "flops_hardware.v1", "flop", "FLOPs, by hardware",
    "floating-point operations retired by the processor in one call, single and double precision, "
    "by hardware counters; vector width included",
    short="floating-point operations of one call by the processor's hardware counters",
)  # fmt: skip
ELEMENT_OPS = _plain(
    "element_ops.v1", "op", "element operations",
    "activations, normalisations, softmax, sums: a stated number of operations an element, FLOPs not included",
    exact=True, short="operations of activations, normalisations, softmax and sums; FLOPs do not include them",
    notes=_CALLS,
)  # fmt: skip
BYTES_MOVED = _plain(
    "bytes_moved.v1", "bytes", "bytes moved", "what operators read and write in one call, each tensor once an operator",
    exact=True, short="bytes that operators read and write in one call",
    notes=_CALLS,
)  # fmt: skip
FLOPS_PER_AUDIO_SECOND = _plain(
    "flops_per_audio_second.v1", "flop", "FLOPs per audio second", "FLOPs of a call / true seconds of audio in it",
    exact=True,
)  # fmt: skip
FLOPS_PER_TOKEN = _plain(
    "flops_per_token.v1", "flop", "FLOPs per token", "FLOPs of a call / tokens it generated, encoder included",
    exact=True,
)  # fmt: skip
TIME_OPERATOR = _lower(
    "time_operator.v1", "s", "time in operator",
    "time of an operator in one call of a profiled pass, kernels below it included: for shares, not for latency",
    combined="mean", short="time of an operator in a profiled call; for shares only, profiling slows calls",
    notes={"calls": Note.NUMBER, "inside": Note.PARTS_EACH},
)  # fmt: skip
OPERATOR_SHARE = _plain(
    "operator_share.v2", "1", "share of operator time",
    "mean time in an operator, or in all operators of a kind / mean time in all operators, of the same profiled calls",
    combined="ratio", short="share of the time of all operators",
)  # fmt: skip
TIME_OPERATOR_TOTAL = _lower(
    "time_operator_total.v1", "s", "with what is inside",
    "time of an operator with the operators inside it, in one call of a profiled pass; on a GPU that of all kernels "
    "they started. Operators inside each other share it",
    combined="mean", short="time of an operator and of the operators inside it, in a profiled call",
)  # fmt: skip
OPERATOR_CALLS = _plain(
    "operator_calls.v1", "1", "calls", "how often an operator runs in one call of a profiled pass", exact=True
)
MEMORY_OPERATOR = _lower(
    "memory_operator.v1", "bytes", "memory",
    "bytes that torch allocated minus those it freed while an operator and what is inside it ran, in one call, on the "
    "device of the case",
    combined="mean", short="memory that an operator and those inside it allocated minus what they freed",
)  # fmt: skip
MEMORY_OPERATOR_OWN = _lower(
    "memory_operator_own.v1", "bytes", "its own memory",
    "bytes that torch allocated minus those it freed while an operator ran and no other inside it, in one call, on the "
    "device of the case",
    combined="mean", short="memory that an operator itself allocated minus what it freed",
)  # fmt: skip
TIME_MODULE = _lower(
    "time_module.v1", "s", "time in module",
    "CPU time of a module outside those inside it, forward, backward and recomputed, in one call of a profiled pass: "
    "for shares, not for latency",
    combined="mean", short="CPU time of a module itself in a profiled call; for shares only, profiling slows calls",
    notes=_MODULE_ROW,
)  # fmt: skip
TIME_GPU = _lower(
    "time_gpu.v1", "s", "GPU busy time",
    "time in which at least one kernel ran, in one call of a profiled pass; of a module, while kernels of its own ran, "
    "instants with several kernels split among them",
    combined="mean", short="time in which the GPU ran a kernel, in a profiled call",
    notes=_MODULE_ROW,
)  # fmt: skip
MODULE_SHARE = _plain(
    "module_share.v3", "%", "share",
    "100 × mean time of a module or label with all that is inside it / mean time of the call, of the same profiled "
    "calls; on a GPU busy times; of a row in one direction / time of all rows in it",
    combined="ratio", short="share of the call's time, including everything that runs inside",
)  # fmt: skip
MODULE_CALLS = _plain(
    "module_calls.v1", "1", "calls of module", "how often a module is called in one call, recomputing not counted",
    exact=True,
)  # fmt: skip
MEMORY_MODULE = _lower(
    "memory_module.v1", "bytes", "peak of module",
    "torch's highest allocated CUDA bytes while the forward of a module ran minus those when it began",
    short="most GPU memory allocated in the forward pass of a module minus that before it",
)  # fmt: skip
MODULE_MFU = Metric(
    id="mfu_module.v1", unit="1", direction="higher", title="MFU of module",
    formula="FLOPs of a module, forward and backward / (its share of the call × latency) / peak arithmetic",
    short="share of the device's peak arithmetic that a module reaches",
)  # fmt: skip
TIME_SPLIT = _lower(
    "time_split.v2", "s", "time by kind",
    "time in which a kernel ran, else memory was copied or set, else the runtime was called, else the CPU worked, "
    "else nothing; one profiled call",
    combined="mean", short="time of a profiled call by kind of work: kernel, copy, runtime, CPU, idle",
)  # fmt: skip
TIME_BUSY = _lower(
    "time_busy.v1", "s", "busy time",
    "time in which the CPU was in an operator or the runtime, or the GPU in a kernel or a copy; one profiled call",
    combined="mean", short="time in which the CPU or the GPU worked, in a profiled call",
)  # fmt: skip
GPU_IDLE = _lower(
    "gpu_idle.v2", "1", "GPU idle",
    "mean time in which the GPU ran no kernel and copied nothing / mean time of the same profiled calls",
    combined="ratio", short="share of a profiled call in which the GPU neither computed nor copied",
)  # fmt: skip
TRACE_BYTES = _plain(
    "trace_bytes.v1",
    "bytes",
    "trace",
    "compressed size of the trace file of a step or two",
    exact=True,
    notes={"file": Note.TEXT, "left_out": Note.NUMBER, "shorter_than_us": Note.NUMBER},
)
LAUNCH_BOUND = _plain(
    "launch_bound.v2", "1", "latency / GPU busy time",
    "latency / mean GPU busy time of the profiled calls of the same round: above 1, waiting",
    short="latency / GPU busy time; far above 1, the GPU waits for the CPU",
)  # fmt: skip
GPU_CLOCK = _plain("gpu_clock.v1", "MHz", "GPU clock", "clock of the multiprocessors before and after the passes")
GPU_TEMPERATURE = _plain(
    "gpu_temperature.v1",
    "°C",
    "GPU temperature",
    "before and after the passes",
    short="temperature of the GPU before and after the passes",
)
PEAK_FLOPS = Metric(
    id="peak_flops.v1", unit="flop/s", direction="higher", title="peak arithmetic",
    formula="fastest of several large square matrix products in the case's dtype on its device",
    short="fastest matrix product measured on the device",
)  # fmt: skip
PEAK_BANDWIDTH = Metric(
    id="peak_bandwidth.v1", unit="bytes/s", direction="higher", title="peak bandwidth",
    formula="fastest of several copies of a large tensor on the device, bytes read plus bytes written",
    short="fastest copy measured on the device, bytes read plus bytes written",
)  # fmt: skip
MFU = Metric(
    id="mfu.v1", unit="1", direction="higher", title="model FLOPs utilisation",
    formula="FLOPs of a call, forward and backward / its latency / peak arithmetic",
    short="share of the device's peak arithmetic that a call reaches",
)  # fmt: skip
BANDWIDTH = Metric(
    id="bandwidth.v1", unit="bytes/s", direction="higher", title="bandwidth",
    formula="bytes moved by a call / its latency: an upper bound, caches hold some of them",
)  # fmt: skip
BANDWIDTH_SHARE = Metric(
    id="bandwidth_share.v1", unit="1", direction="higher", title="share of peak bandwidth",
    formula="bandwidth / peak bandwidth",
)  # fmt: skip

LATENCY_PER_TOKEN = _lower(
    "latency_per_token.v1", "s", "time per token", "latency of a call / tokens it generated, all items together"
)
RTF = _lower(
    "rtf.v2", "1", "real-time factor",
    "latency / true seconds of audio in a call (the audio that was made, where a synthesiser hears none); of several "
    "batches sum of latencies / sum of audio",
    combined="divided", short="latency / seconds of audio; below 1 is faster than real time",
)  # fmt: skip
RTF_CPU = _lower(
    "rtf_cpu.v2", "1", "real-time factor, CPU busy",
    "mean busy time of the CPU in a profiled call / mean true seconds of audio in the same calls",
    combined="ratio", short="CPU busy time of a call / seconds of audio",
)  # fmt: skip
RTF_GPU = _lower(
    "rtf_gpu.v2", "1", "real-time factor, GPU busy",
    "mean busy time of the GPU in a profiled call / mean true seconds of audio in the same calls",
    combined="ratio", short="GPU busy time of a call / seconds of audio",
)  # fmt: skip
RANK_CORRELATION = _plain(
    "rank_correlation.v1",
    "1",
    "rank correlation",
    "Spearman's rho of two figures over the models of one cell",
    short="Spearman's rho over models: 1 if both figures rank them alike, -1 if in reverse",
)
REAL_OVER_NOISE = _plain(
    "real_over_noise.v1", "1", "real / noise",
    "a figure on real audio divided by the same figure on noise, of one model at one size",
    short="a figure on real audio / the same figure on noise",
)  # fmt: skip
RTFX = Metric(
    id="rtfx.v2", unit="1", direction="higher", title="inverse real-time factor", formula="1 / rtf",
    short="seconds of audio / latency; above 1 is faster than real time",
)  # fmt: skip
THROUGHPUT = Metric(
    id="throughput.v2", unit="1/s", direction="higher", title="throughput",
    formula="items in a call / latency; of several batches sum of items / sum of latencies",
    short="items processed per second",
)  # fmt: skip

LARGEST_FITTING = _higher(
    "largest_fitting.v1", "1", "largest that fits",
    "largest value of an axis at which no call ran out of memory, below the smallest at which one did",
    short="largest size at which no call ran out of memory",
)  # fmt: skip
SMALLEST_FAILING = _plain(
    "smallest_failing.v1", "1", "smallest that does not",
    "smallest value of an axis at which a call ran out of memory", exact=True,
    short="smallest size at which a call ran out of memory",
)  # fmt: skip
LARGEST_SAFE = _higher(
    "largest_safe.v1",
    "1",
    "with margin",
    "largest that fits × (1 − safety margin), rounded down to a whole step",
    short="largest size that fits, less the safety margin",
)
GROWTH_EXPONENT = _plain(
    "growth_exponent.v1", "1", "exponent",
    "slope of log(figure) over log(size), least squares over the sizes of one line",
    short="k where a figure grows as size^k: 1 is linear, 2 is quadratic",
)  # fmt: skip
GROWTH_EXPONENT_LOCAL = _plain(
    "growth_exponent_local.v1", "1", "exponent at the end",
    "slope of log(figure) over log(size) from the largest size up to two thirds of the last one to the last",
    short="the exponent between the largest sizes only",
)  # fmt: skip
QUADRATIC_SHARE = _plain(
    "quadratic_share.v1", "%", "quadratic part",
    "100 × c·x² / (a + b·x + c·x²) at the largest size, none of them negative, least squares of relative errors",
    short="share of the quadratic term in a + b·x + c·x², fitted, at the largest size",
)  # fmt: skip
SATURATION_BATCH = _plain(
    "saturation_batch.v1", "1", "saturating batch",
    "smallest batch whose throughput is within 10 % of the best of its line",
    short="smallest batch whose throughput is within 10 % of the best",
)  # fmt: skip

FLOOR = _plain(
    "floor.v1", "s", "floor",
    "of a loss alone: bytes of true logits read and of padded gradients written / peak bandwidth; of an exact step: "
    "FLOPs of the joiner's three products over true cells / peak arithmetic",
    short="least time that the measured peaks of the device allow for the same work",
)  # fmt: skip
FLOOR_RATIO = _lower("floor_ratio.v1", "1", "latency / floor", "latency of a call / its floor")
LOSS_DEVIATION = _lower(
    "loss_deviation.v1", "1", "deviation of the loss",
    "relative distance of an utterance's loss from the float64 oracle's, the worst of all utterances",
    exact=True, short="largest relative error of an utterance's loss against the float64 reference",
)  # fmt: skip
GRADIENT_DEVIATION = _lower(
    "gradient_deviation.v1", "1", "deviation of the gradient",
    "relative L2 distance of an utterance's gradient from the float64 oracle's, the worst of all utterances",
    exact=True, short="largest relative error of an utterance's gradient against the float64 reference",
)  # fmt: skip

ANSWERED = _plain(
    "answered.v1", "1", "answered", "1 for an utterance whose output holds text, 0 for one whose output is empty",
    exact=True,
    notes={"utterances": Note.TEXT_EACH, "speakers": Note.TEXT_EACH},
)  # fmt: skip
WORD_ERRORS = _lower(
    "word_errors.v1", "1", "word errors",
    "substituted, deleted and inserted words of an utterance, by the fewest that turn the reference into the output",
    exact=True, short="words to substitute, delete or insert to turn the reference into the output",
)  # fmt: skip
REFERENCE_WORDS = _plain(
    "reference_words.v1", "1", "reference words", "words in the reference of an utterance", exact=True
)
CHARACTER_ERRORS = _lower(
    "character_errors.v1",
    "1",
    "character errors",
    "the same of characters, spaces between words included",
    exact=True,
    short="characters to substitute, delete or insert to turn the reference into the output",
)
REFERENCE_CHARACTERS = _plain(
    "reference_characters.v1", "1", "reference characters", "characters in the reference of an utterance, with spaces",
    exact=True,
)  # fmt: skip
BLEU_STATISTICS = _plain(
    "bleu_statistics.v1", "1", "BLEU statistics",
    "for each utterance lengths of output and reference, matching n-grams, n-grams of the output; n from 1 to 4",
    exact=True, short="n-gram counts of each utterance, from which BLEU is computed",
)  # fmt: skip
CHRF_STATISTICS = _plain(
    "chrf_statistics.v1", "1", "chrF statistics",
    "for each utterance, for n from 1 to 6: character n-grams of the output, of the reference, matching ones",
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
    "sacrebleu's corpus BLEU, 0 to 100: brevity penalty × geometric mean of four n-gram precisions, smoothed (exp)",
    short="sacrebleu's corpus BLEU, 0 to 100",
    notes=_IMPORTED,
)  # fmt: skip
CHRF = _higher(
    "chrf.v1", "1", "chrF",
    "sacrebleu's corpus chrF2, 0 to 100: F score of mean precision and recall of character n-grams, recall twice",
    short="sacrebleu's corpus chrF2, 0 to 100",
    notes=_IMPORTED,
)  # fmt: skip
COMPLETENESS = _higher(
    "completeness.v1", "%", "completeness", "100 × utterances whose output holds text / all utterances"
)
WER_DIFFERENCE = _lower(
    "wer_difference.v1", "%", "ΔWER", "WER of the first system minus that of the second, over the same utterances",
    exact=True,
)  # fmt: skip
CER_DIFFERENCE = _lower(
    "cer_difference.v1", "%", "ΔCER", "CER of the first system minus that of the second, over the same utterances",
    exact=True,
)  # fmt: skip
BLEU_DIFFERENCE = _higher(
    "bleu_difference.v1", "1", "ΔBLEU", "BLEU of the first system minus that of the second, over the same utterances"
)
CHRF_DIFFERENCE = _higher(
    "chrf_difference.v1", "1", "ΔchrF", "chrF of the first system minus that of the second, over the same utterances"
)

register(value for value in list(globals().values()) if isinstance(value, Metric))
register(ENERGY_PER_AUDIO_HOUR.values())
