"""What was measured: subjects, input, clock, settings, what was random, and what the figures mean."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.core import metrics
from speechmeter.core.axes import CORE_AXES, LATE_DEFAULTS, LIVE_AXES, NONE, SHARED_AXES, axis_names
from speechmeter.core.hosts import HOST
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import STAGE, Scope
from speechmeter.core.types import Record, Spec
from speechmeter.report.caveats import record_notes, study_notes
from speechmeter.report.labels import batching
from speechmeter.report.methods import conversations
from speechmeter.report.methods.words import Groups, capital, cut, has_values, listed

TOOL = "Speechmeter"
_QUALITY = "quality"
_MEASURED: dict[str, tuple[str, tuple[Metric, ...]]] = {
    "latency": ("latency", (metrics.LATENCY,)),
    "memory": ("peak memory", (metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CPU_PEAK, metrics.MEMORY_CUDA_ALLOCATED)),
    "parameters": ("parameter counts", (metrics.PARAMETERS,)),
    "flops": ("floating-point operations", (metrics.FLOPS,)),
    "energy": ("energy", (metrics.ENERGY_GPU, metrics.ENERGY_CPU, metrics.ENERGY_SYSTEM)),
    _QUALITY: ("accuracy", (metrics.WORD_ERRORS, metrics.CHARACTER_ERRORS)),
    "modules": ("time by module", (metrics.TIME_MODULE,)),
    "operators": ("time by operator", (metrics.TIME_OPERATOR,)),
}
"""Of the usual meters: what they measure in words, and the metrics of which at least one is then there."""
_DEFINED = ("memory", "flops", "parameters", "energy")
_KINDS = {
    "transducer-loss": ("transducer loss", "transducer losses"),
    "train": ("training step", "training steps"),
    "train-python": ("training step", "training steps"),
    "cascade": ("cascade", "cascades"),
}
_MODEL = ("model", "models")
_CLOCKED = {
    "model": "the model alone",
    "+decode": "the model and decoding",
    "+features": "feature extraction, the model and decoding",
    "+copy": "feature extraction, the copy to the device, the model and decoding",
    "+load": "loading of the data, feature extraction, the copy to the device, the model and decoding",
}
_IN_OTHER_SENTENCES = (
    "device", "dtype", "threads", "cores", "boundary", "seconds", "batch", "batch_seconds", "max_frames", HOST,
    *axis_names(LIVE_AXES),
)  # fmt: skip
_FED = {"data": "recordings of", "text": "text of", "features": "features", "shapes": "utterance shapes of"}
_RANDOM = "random"
_MOST_NOTES = 4


def subjects(groups: Groups, versions: Sequence[str]) -> str:
    """What was measured of what, and with which version of the tool."""
    kinds: dict[tuple[str, str], dict[str, None]] = {}
    for group in groups:
        kinds.setdefault(_KINDS.get(group[0].case.subject.plugin, _MODEL), {})[group[0].case.subject.name] = None
    of = [
        f"one {one} ({listed(names)})" if len(names) == 1 else f"{len(names)} {many} ({listed(names)})"
        for (one, many), names in kinds.items()
    ]
    had = []
    for name in dict.fromkeys(name for group in groups for name in group[0].case.meters):
        words, needed = _MEASURED.get(name, (name, ()))
        if not needed or any(has_values(groups, metric) for metric in needed):
            had.append(words)
    had += conversations.measured(groups)
    return f"We measured {listed(had) or 'no figure'} of {listed(of)} with {f'{TOOL} {listed(versions)}'.rstrip()}."


def fed(groups: Groups) -> str:
    """The input: what it was, how long items were, and how they were batched."""
    cases = [group[0].case for group in groups]
    seed = listed(sorted({str(case.protocol.seed) for case in cases}))
    specs = {case.workload.name: case.workload for case in cases}
    what = listed((_source(spec, groups, seed) for spec in specs.values()), "or")
    seconds = sorted({case.axes.seconds for case in cases if case.axes.seconds is not None})
    called = [case for case in cases if case.live is None]  # a live system is fed one item at a time, bit by bit
    rules = dict.fromkeys(batching(case) for case in called)
    sizes = sorted({size for case in called if (size := case.axes.batch) and batching(case) == f"batch {size}"})
    others = [rule.replace("_", " ") for rule in rules if rule and not rule.startswith("batch ")]
    length = f"Items lasted {listed(f'{value:g}' for value in seconds)} s" if seconds else ""
    batch = [f"fed in batches of {listed(map(str, sizes))}"] if sizes else []
    batch += [f"batched by {listed(others)}"] if others else []
    fed_in = f"{' and' if length else 'Items'} were {listed(batch)}" if batch else ""
    return f"The input was {what}.{f' {length}{fed_in}.' if length or fed_in else ''}"


def _source(spec: Spec, groups: Groups, seed: str) -> str:
    if spec.plugin == "audio":
        return {
            "noise": f"Gaussian noise at 16 kHz (seed {seed})",
            "sample": f"the speech sample that ships with {TOOL}, shortened or repeated to this length",
        }.get(spec.source) or (
            f"the recordings in {spec.name}" if "files" in spec.options else
            f"the recording {spec.name}, shortened or repeated to this length"
        )  # fmt: skip
    own = [record for group in groups for record in group if record.case.workload == spec and record.status == "ok"]
    own = [record for record in own if record.case.live is None]  # of conversations, there is a sentence of its own
    items, audio_s = (_total(own, metric) for metric in (metrics.ITEMS, metrics.AUDIO_SECONDS))
    size = [f"{items:,.0f} items" if items else "", f"{audio_s:,.0f} s of audio" if audio_s else ""]
    held = ", ".join(filter(None, size))
    words = _FED.get(spec.plugin, spec.plugin)
    named = words.removesuffix(" of") if spec.name == spec.plugin else f"{words} {spec.name}"
    return f"{named}{f' ({held})' if held else ''}"


def _total(records: Sequence[Record], metric: Metric) -> float:
    """Of all batches, in the first record that has it."""
    found = (record.find(metric.id) for record in records)
    return next((sum(one.values) for one in found if one is not None and one.values), 0.0)


def timed(groups: Groups) -> bool:
    """Whether latency was asked for and measured."""
    return any("latency" in group[0].case.meters for group in groups) and has_values(groups, metrics.LATENCY)


def clock(groups: Groups) -> str:
    """What was timed: the stages that the records have, else what the boundary means."""
    if not timed(groups):
        return ""
    found: dict[str, bool] = {}
    records = (record for group in groups for record in group)
    for record in sorted(records, key=lambda record: -len(record.measurements)):  # a whole chain is in its order
        for m in record.measurements:
            if m.metric == metrics.LATENCY.id and (scope := Scope.parse(m.scope)).kind == STAGE:
                found[scope.path] = found.get(scope.path, False) or bool(m.notes.get("clocked", True))
    inside, outside = ([name for name, clocked in found.items() if clocked is wanted] for wanted in (True, False))
    boundaries = sorted({group[0].case.axes.boundary for group in groups})
    what = listed((_CLOCKED.get(name, name) for name in boundaries), "or")
    if inside:
        what = f"the {'stage' if len(inside) == 1 else 'stages'} {listed(inside)}"
    left = f"; {listed(outside)} {'was' if len(outside) == 1 else 'were'} not timed" if outside else ""
    return (
        "Latency is the wall time of one call, with the device synchronised at both ends; the clock covers "
        f"{what}{left} (boundary {listed(boundaries)})."
    )


def settings(groups: Groups) -> str:
    """Device, number format, threads, and every other axis that is not as usual or that varies."""
    here = [group for group in groups if not conversations.is_server(group[0].case)]
    if not here:
        return ""
    axes = [{**LATE_DEFAULTS, **group[0].case.axes} for group in here]
    device = listed("GPU" if group[0].case.device.is_cuda else "CPU" for group in here)
    dtype = listed(str(one["dtype"]) for one in axes if "dtype" in one)
    threads = sorted({int(one["threads"]) for one in axes if one.get("threads")})
    what = "Models" if any(group[0].case.live is not None for group in here) else "Calls"
    text = f"{what} ran on the {device}{f' in {dtype}' if dtype else ''}"
    text += f" with {listed(map(str, threads))} thread{'' if threads == [1] else 's'}" if threads else ""
    usual = {axis.name: axis.default for axis in (*CORE_AXES, *SHARED_AXES)}
    others = []
    for name in dict.fromkeys(name for one in axes for name in one if name not in _IN_OTHER_SENTENCES):
        held = dict.fromkeys(one[name] for one in axes if name in one)
        if any(value not in (None, False, NONE, usual.get(name)) for value in held):
            texts = [("on" if value else "off") if isinstance(value, bool) else str(value) for value in held]
            others.append(f"{name.replace('_', ' ')} {listed(texts, 'or')}")
    return f"{text}{f'; {listed(others)}' if others else ''}."


def randomness(groups: Groups) -> str:
    """What was random, as models and input say it, and the seed."""
    about: dict[str, dict[str, None]] = {}
    for group in groups:
        for note in (note for record in group for note in record_notes(record) if _RANDOM in note):
            about.setdefault(note, {})[group[0].case.subject.name] = None
    everyone = {group[0].case.subject.name for group in groups}
    said = []
    for note, names in about.items():
        of = "all of them" if everyone <= set(names) else listed(names)
        only_weights = "random weights" in note and "features" not in note
        weights = f"The weights of {of} were random: calls cost the same, and their output has no meaning."
        said.append(weights if only_weights else f"Of {of}: {note}.")
    seeds = sorted({str(p.seed) for group in groups if "seed" not in (p := group[0].case.protocol).absent})
    said += [f"Random numbers were seeded with {listed(seeds)}."] if seeds else []
    return " ".join(dict.fromkeys(said))


def notes(groups: Groups) -> str:
    """What else models and input say: items that were resampled, threads that a library ignores."""
    found = [note for note in study_notes([record for group in groups for record in group]) if _RANDOM not in note]
    return f"Notes: {'; '.join(found[:_MOST_NOTES])}." if found else ""


def other_figures(groups: Groups) -> str:
    """Definitions of what is not a time, where energy was read, how texts were scored, and what could not be had."""
    defined = [metric for name in _DEFINED for metric in _MEASURED[name][1] if has_values(groups, metric)]
    said = [f"{capital(metric.title)}: {metric.formula}." for metric in defined]
    readings = [m for group in groups for record in group for m in record.measurements]
    energy = {metric.id for metric in _MEASURED["energy"][1]}
    sources = sorted({m.source for m in readings if m.values and m.source and m.metric in energy})
    said += [f"Energy was read from {listed(sources)}."] if sources else []
    rules = [rule for group in groups if (rule := group[0].case.protocol.quality) is not None]
    normalisers = listed(rule.normaliser for rule in rules if rule.normaliser)
    said += [f"Texts were normalised by {normalisers} before they were scored."] if normalisers else []
    for words, those in _MEASURED.values():
        ids = {metric.id for metric in those}
        reasons = sorted({m.unavailable for m in readings if m.unavailable and m.metric in ids})
        if reasons and not any(has_values(groups, metric) for metric in those):
            said.append(f"{capital(words)} could not be measured ({cut(reasons[0])}).")
    return " ".join(said)
