"""What calls put out, written as files: text and token ids, sound, and utterances with their times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from speechmeter.core.outputs import Output
from speechmeter.core.types import Batch, Measurement, Speech
from speechmeter.core.utterances import UTTERANCES_FILE, Utterance, write_utterances

TEXT_FILE = "text.tsv"


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


def write_timed_utterances(folder: Path, outputs: Sequence[tuple[Batch, Output]], latency: Measurement | None) -> None:
    """`utterances.jsonl`, where every call held one utterance of audio with a reference, was timed, and put out text.

    `latency` holds the calls by turns; the time of an utterance is the median of its own.
    """
    if latency is None or len(latency.values) < len(outputs) or not any(output.is_text for _, output in outputs):
        return
    if not all(batch.items == 1 and batch.audio_s and batch.references for batch, _ in outputs):
        return
    utterances = [
        Utterance(
            name=_names(batch)[0],
            duration_s=batch.audio_s or 0.0,
            time_s=median(latency.values[turn :: len(outputs)]),
            reference=batch.references[0],
            output=_one_line(" ".join(output.lines)),
        )
        for turn, (batch, output) in enumerate(outputs)
    ]
    write_utterances(folder / UTTERANCES_FILE, utterances)


def _names(batch: Batch) -> Sequence[str]:
    return batch.ids or [str(index) for index in range(batch.items)]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _write_sound(folder: Path, name: str, sound: Speech) -> None:
    import numpy as np
    import soundfile

    folder.mkdir(parents=True, exist_ok=True)
    plain = re.sub(r"[^\w.-]+", "-", name).strip(".-")[:80] or "item"
    samples = np.clip(np.asarray(sound.samples, dtype=np.float32), -1.0, 1.0)
    soundfile.write(folder / f"{plain}.flac", samples, sound.rate)
