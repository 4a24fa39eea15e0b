"""What calls put out, kept as plain data and written as files: text, token ids, sound. Tensors are let go."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speechmeter.core.types import Batch, Speech

TEXT_FILE = "text.tsv"


@dataclass(frozen=True, kw_only=True)
class Output:
    """What one call put out, item by item: lines of text (or of token ids), or sound; both empty for anything else."""

    lines: tuple[str, ...] = ()
    speech: tuple[Speech, ...] = ()
    is_text: bool = False


def output_of(last: Any) -> Output:
    """What can be kept of the last stage's output."""
    items = last if isinstance(last, list | tuple) else [last]
    if not items:
        return Output()
    if all(isinstance(item, str) for item in items):
        return Output(lines=tuple(items), is_text=True)
    if all(isinstance(item, Speech) for item in items):
        return Output(speech=tuple(items))
    if all(isinstance(item, list | tuple) and all(type(part) is int for part in item) for item in items):
        return Output(lines=tuple(" ".join(map(str, item)) for item in items))
    return Output()


def write_outputs(folder: Path, outputs: Iterable[tuple[Batch, Output]], *, speech: bool) -> None:
    """`text.tsv` with a line `id<TAB>text` for each item; with `speech` a FLAC file for each item of sound."""
    lines: list[str] = []
    for batch, output in outputs:
        lines += [f"{name}\t{_one_line(text)}" for name, text in zip(_names(batch), output.lines, strict=False)]
        if speech:
            for name, sound in zip(_names(batch), output.speech, strict=False):
                _write_sound(folder, name, sound)
    if lines:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TEXT_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _names(batch: Batch) -> Sequence[str]:
    return batch.ids or [str(index) for index in range(batch.items)]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _write_sound(folder: Path, name: str, sound: Speech) -> None:
    import numpy as np
    import soundfile

    folder.mkdir(parents=True, exist_ok=True)
    plain = re.sub(r"[^\w.-]+", "-", name).strip(".-") or "item"
    samples = np.clip(np.asarray(sound.samples, dtype=np.float32), -1.0, 1.0)
    soundfile.write(folder / f"{plain}.flac", samples, sound.rate)
