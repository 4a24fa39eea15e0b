"""What calls return: text, token ids and sound as files, and results that are not there yet."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from io import IOBase
from itertools import islice
from pathlib import Path
from statistics import median
from types import FunctionType
from typing import Any

from speechmeter.core.outputs import Output, SpeechFiles
from speechmeter.core.types import Batch, Measurement, Speech, by_batch
from speechmeter.core.utterances import UTTERANCES_FILE, Utterance, write_utterances

TEXT_FILE = "text.tsv"
SOUND_SUFFIX = ".flac"


def write_outputs(folder: Path, outputs: Iterable[tuple[Batch, Output]], *, speech: SpeechFiles | None = None) -> None:
    """`text.tsv` with a line `id<TAB>text` for each item; with `speech` a FLAC file for each item of sound."""
    lines: list[str] = []
    for batch, output in outputs:
        lines += [
            f"{_one_line(name)}\t{_one_line(text)}" for name, text in zip(_names(batch), output.lines, strict=False)
        ]
        if speech is not None:
            for name, sound in zip(_names(batch), output.speech, strict=False):
                write_speech(folder, speech, name, sound)
    if lines:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TEXT_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")


def write_timed_utterances(folder: Path, outputs: Sequence[tuple[Batch, Output]], latency: Measurement | None) -> None:
    """`utterances.jsonl`, where every call held one utterance of audio with a reference, was timed, and put out text.

    `latency` says which call each of its values is of; the time of an utterance is the median of its own.
    """
    if latency is None or len(latency.values) < len(outputs) or not any(output.is_text for _, output in outputs):
        return
    if not all(batch.items == 1 and batch.audio_s and batch.references for batch, _ in outputs):
        return
    utterances = [
        Utterance(
            name=_names(batch)[0],
            duration_s=batch.audio_s or 0.0,
            time_s=median(own),
            reference=batch.references[0],
            output=_one_line(" ".join(output.lines)),
        )
        for (batch, output), own in zip(outputs, by_batch(latency), strict=True)
    ]
    write_utterances(folder / UTTERANCES_FILE, utterances)


def _names(batch: Batch) -> Sequence[str]:
    return batch.ids or [str(index) for index in range(batch.items)]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def write_speech(folder: Path, files: SpeechFiles, name: str, sound: Speech) -> None:
    """A FLAC file of what a model said about the item `name`."""
    import numpy as np
    import soundfile
    import soxr

    rate = files.rate
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{files.prefix}_{name}" if files.prefix else name
    plain = re.sub(r"[^\w.-]+", "-", name).strip(".-")[:80] or "item"
    samples = np.asarray(sound.samples, dtype=np.float32)
    if rate is not None and rate != sound.rate:
        samples = soxr.resample(samples, sound.rate, rate)
    soundfile.write(folder / f"{plain}{SOUND_SUFFIX}", np.clip(samples, -1.0, 1.0), rate or sound.rate)


_DEEPEST, _MOST_PARTS = 4, 100
"""How far into a result is looked, and at how many parts of each container."""

_NO_RESULTS = frozenset({"torch", "numpy", "builtins", "threading"})
"""Packages whose objects hold no results in their attributes."""


def unfinished(output: Any) -> str:
    """What inside a result is still to be computed, in words; empty when all of it is there.

    The time of a call that returns such a result says nothing about the work.
    """
    for path, value in _parts(output, "", 0):
        kind = _kind(value, whole=not path)
        if kind:
            return f"{kind} (at {path})" if path else kind
    return ""


def _parts(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    yield path, value
    if depth == _DEEPEST:
        return
    for name, part in islice(_inside(value), _MOST_PARTS):
        yield from _parts(part, f"{path}{name}", depth + 1)


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{index}]", part) for index, part in enumerate(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((f".{field.name}", getattr(value, field.name, None)) for field in dataclasses.fields(value))
    elif type(value).__module__.partition(".")[0] not in _NO_RESULTS and type(getattr(value, "__dict__", None)) is dict:
        yield from ((f".{name}", part) for name, part in vars(value).items() if not name.startswith("_"))


def _kind(value: Any, *, whole: bool) -> str:
    """What an object is that has not done its work yet; of an iterator only inside a result: a whole one is drained."""
    kind = type(value)
    if inspect.isawaitable(value) or hasattr(kind, "__anext__"):
        return "a coroutine" if inspect.iscoroutine(value) else "an awaitable"
    if hasattr(kind, "done") and (hasattr(kind, "result") or hasattr(kind, "wait")):
        return "a future"
    if hasattr(kind, "ready") and hasattr(kind, "get"):
        return "an asynchronous result"
    if hasattr(kind, "block_until_ready"):
        return "an array that is computed asynchronously"
    if callable(getattr(kind, "is_alive", None)) and callable(getattr(kind, "join", None)):
        return "a thread or process that is still running" if value.is_alive() else ""
    if isinstance(value, FunctionType | partial):
        return "a function that is still to be called"
    if callable(getattr(kind, "result", None)):
        return "a future"
    return "an iterator" if hasattr(kind, "__next__") and not whole and not isinstance(value, IOBase) else ""
