"""How a chain of stages is run: the same way whether it is timed, counted or only warmed up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter_ns
from typing import Any

from speechmeter.core.metrics import AUDIO_MADE, TOKENS
from speechmeter.core.scope import STAGE, Scope
from speechmeter.core.types import Measurement, Speech, Stage

_iterator_types: dict[type, bool] = {}


def is_stream(value: Any) -> bool:
    """Whether a stage returned an iterator, whose work is still to be done.

    Runs inside the clock, so the answer is kept by type: a lookup takes 60 ns, asking a type 400.
    """
    kind = type(value)
    known = _iterator_types.get(kind)
    if known is None:
        known = _iterator_types[kind] = hasattr(kind, "__next__")
    return known


def drain(stream: Any, stamps_ns: list[int] | None = None) -> list[Any]:
    """Pull every item out of an iterator; append the clock after each to `stamps_ns`."""
    items = []
    for item in stream:
        if stamps_ns is not None:
            stamps_ns.append(perf_counter_ns())
        items.append(item)
    return items


def run_stage(stage: Stage, state: Any) -> Any:
    """Run one stage and return its output; of an iterator, the list of its items."""
    output = stage.fn(state)
    return drain(output) if is_stream(output) else output


def step(stage: Stage, outputs: list[Any]) -> None:
    """Run one stage on the last of the outputs and append its own."""
    outputs.append(run_stage(stage, outputs[-1]))


def made_by(stages: Sequence[Stage], calls: Sequence[Sequence[Any]]) -> list[Measurement]:
    """Tokens and seconds of sound that calls put out, one value a call: by stage and in total; no row for nothing.

    `calls` are the outputs of the stages, call by call. The sound of a call is that of its last stage.
    """
    tokens = {
        stage.name: [float(stage.tokens(outputs[index])) for outputs in calls]
        for index, stage in enumerate(stages)
        if stage.tokens is not None
    }
    sound = {
        stage.name: [seconds_of(outputs[index]) or 0.0 for outputs in calls]
        for index, stage in enumerate(stages)
        if seconds_of(calls[0][index]) is not None
    }
    total = [sum(call) for call in zip(*tokens.values(), strict=True)]
    last = sound.get(stages[-1].name)
    several = len(stages) > 1
    return [
        *([Measurement.of(TOKENS, total)] if total else []),
        *([Measurement.of(AUDIO_MADE, last)] if last else []),
        *(Measurement.of(TOKENS, made, scope=Scope.of(STAGE, name)) for name, made in tokens.items() if several),
        *(Measurement.of(AUDIO_MADE, made, scope=Scope.of(STAGE, name)) for name, made in sound.items() if several),
    ]


def seconds_of(output: Any) -> float | None:
    """Seconds of sound in what a stage put out; None when it is no sound."""
    if isinstance(output, Speech):
        return output.seconds
    if isinstance(output, list | tuple) and output and all(isinstance(item, Speech) for item in output):
        return float(sum(item.seconds for item in output))
    return None


def run_chain(stages: Iterable[Stage], state: Any) -> list[Any]:
    """Run the stages in order, iterators drained, and return the output of each."""
    outputs = []
    for stage in stages:
        state = run_stage(stage, state)
        outputs.append(state)
    return outputs
