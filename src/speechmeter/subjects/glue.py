"""From what one model puts out to what the next one takes: text, token ids, sound, and segments of sound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speechmeter.core.outputs import is_ids
from speechmeter.core.types import Batch, Speech

RATE = 16_000
_SHORTEST_S = 0.1


def next_batch(output: Any, fed: Batch, role: str) -> Batch:
    """The next model's batch. `fed` is what the chain began with. Raises TypeError when the output fits no model."""
    items = output if isinstance(output, list | tuple) else [output]
    if items and all(isinstance(item, str) for item in items):
        return _text(items, [len(item.split()) for item in items], fed)
    if items and all(isinstance(item, Speech) for item in items):
        return _sound([_at_rate(item) for item in items], _names(fed, len(items)))
    if items and all(is_ids(item) for item in items):
        return _text([tuple(item) for item in items], [len(item) for item in items], fed)
    if items and all(_is_segments(item) for item in items):
        return _segments(items, fed)
    raise TypeError(f"{role} puts out {type(output).__name__}: neither text, token ids, segments nor sound")


def _is_segments(item: Any) -> bool:
    """(start, end) in seconds; an item without speech has none."""
    return isinstance(item, list | tuple) and all(isinstance(part, tuple) and len(part) == 2 for part in item)


def _text(items: Sequence[Any], lengths: Sequence[int], fed: Batch) -> Batch:
    return Batch(data=tuple(items), items=len(items), ids=_names(fed, len(items)), lengths=tuple(lengths))


def _segments(items: Sequence[Sequence[tuple[float, float]]], fed: Batch) -> Batch:
    """The stretches of sound that hold speech, each an item; an item without any keeps a moment of itself."""
    voices, names = [], []
    for row, stretches in enumerate(items):
        for part, (start, end) in enumerate(stretches or [(0.0, _SHORTEST_S)]):
            cut = fed.data[row, round(start * RATE) : min(round(end * RATE), fed.lengths[row])]
            voices.append(cut if len(cut) else fed.data[row, : round(_SHORTEST_S * RATE)])
            names.append(f"{fed.ids[row]}-{part}" if fed.ids else f"{row}-{part}")
    return _sound(voices, tuple(names))


def _sound(voices: Sequence[Any], names: tuple[str, ...]) -> Batch:
    import numpy as np

    lengths = tuple(max(1, len(voice)) for voice in voices)
    data: Any = np.zeros((len(voices), max(lengths)), dtype=np.float32)
    for row, voice in enumerate(voices):
        data[row, : len(voice)] = voice
    return Batch(
        data=data,
        items=len(voices),
        ids=names,
        lengths=lengths,
        audio_s=sum(lengths) / RATE,
        padded_s=data.size / RATE,
    )


def _at_rate(sound: Speech) -> Any:
    import numpy as np
    import soxr

    samples = np.asarray(sound.samples, dtype=np.float32)
    return samples if sound.rate == RATE else soxr.resample(samples, sound.rate, RATE)


def _names(fed: Batch, count: int) -> tuple[str, ...]:
    return fed.ids if len(fed.ids) == count else tuple(str(index) for index in range(count))
