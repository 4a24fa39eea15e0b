"""What calls put out, written as files: text and token ids, sound, and utterances with their times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from speechmeter.core.outputs import Output, SpeechFiles
from speechmeter.core.types import Batch, Measurement, Speech, by_batch
from speechmeter.core.utterances import UTTERANCES_FILE, Utterance, write_utterances

TEXT_FILE = "text.tsv"


def write_outputs(folder: Path, outputs: Iterable[tuple[Batch, Output]], *, speech: SpeechFiles | None = None) -> None:
    """`text.tsv` with a line `id<TAB>text` for each item; with `speech` a FLAC file for each item of sound."""
    lines: list[str] = []
    for batch, output in outputs:
        lines += [
            f"{_one_line(name)}\t{_one_line(text)}" for name, text in zip(_names(batch), output.lines, strict=False)
        ]
        if speech is not None:
            for name, sound in zip(_names(batch), output.speech, strict=False):
                _write_sound(folder, f"{speech.prefix}_{name}" if speech.prefix else name, sound, speech.rate)
    if lines:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TEXT_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")


def write_timed_utterances(folder: Path, outputs: Sequence[tuple[Batch, Output]], latency: Measurement | None) -> None:
    """`utterances.jsonl`, where every call held one utterance of audio with a reference, was timed, and put out text.

    `latency` tells which of them each of its values is of; the time of an utterance is the median of its own.
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


def _write_sound(folder: Path, name: str, sound: Speech, rate: int | None) -> None:
    import numpy as np
    import soundfile
    import soxr

    folder.mkdir(parents=True, exist_ok=True)
    plain = re.sub(r"[^\w.-]+", "-", name).strip(".-")[:80] or "item"
    samples = np.asarray(sound.samples, dtype=np.float32)
    if rate is not None and rate != sound.rate:
        samples = soxr.resample(samples, sound.rate, rate)
    soundfile.write(folder / f"{plain}.flac", np.clip(samples, -1.0, 1.0), rate or sound.rate)
