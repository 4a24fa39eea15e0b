"""Where speech is in a recording, and where each word is: found once by a named tool, so that all systems share it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.live import Anchors, Word
from speechmeter.core.plugins import nearest
from speechmeter.workloads import sound
from speechmeter.workloads.selection import Selection, Usable, Watch
from speechmeter.workloads.sound import RATE, Taste

SILERO, ENERGY, POCKETSPHINX, NONE = "silero", "energy", "pocketsphinx", "none"
_FRAME_S, _FRAMES_IN_A_ROW = 0.01, 3
_FLOOR_DB, _BELOW_PEAK_DB = -60.0, 40.0
_FULL_SCALE = 32_767
_ALIGNER_FRAME_S, _PAD_S = 0.01, 0.3
_ALTERNATIVE = re.compile(r"\(\d+\)$")
_NO_WORD = re.compile(r"^[<\[(+]")

Span = tuple[float, float]
Find = Callable[[Any], Span | None]
Align = Callable[[Any, str], tuple[Word, ...]]


class UnalignedError(Exception):
    """The words of one item cannot be aligned: the reason in one line."""


@dataclass(frozen=True, kw_only=True)
class Tools:
    """A detector of speech and, where words are wanted, an aligner; each with the name that is written to the list."""

    find: Find
    finder: str
    align: Align | None = None
    aligner: str = ""


@dataclass(frozen=True, kw_only=True)
class Anchored:
    """The items with their anchors, and for how many there is no speech or no time of words: id and reason."""

    selection: Selection
    silent: tuple[str, ...] = ()
    unaligned: tuple[tuple[str, str], ...] = ()


def tools(detector: str, words: str) -> Tools:
    """The tools of these names. Raises InputError for an unknown one, or one that is not installed."""
    for given, known, key in ((detector, DETECTORS, "detector"), (words, (*ALIGNERS, NONE), "words")):
        if given not in known:
            raise InputError(f"`{key}` cannot be {given!r}", key=key, fix=nearest(given, list(known)))
    needed = {SILERO: ("silero_vad", "silero-vad"), POCKETSPHINX: ("pocketsphinx", "pocketsphinx")}
    for given, key in ((detector, "detector"), (words, "words")):
        module, extra = needed.get(given, ("", ""))
        if module and find_spec(module) is None:
            other = f"`{key}: {ENERGY if key == 'detector' else NONE}`"
            fix = f"pip install 'speechmeter[{extra}]', or use {other}"
            raise InputError(f"{given} is not installed", key=key, fix=fix)
    find, finder = DETECTORS[detector]()
    if words == NONE:
        return Tools(find=find, finder=finder)
    align, aligner = ALIGNERS[words]()
    return Tools(find=find, finder=finder, align=align, aligner=aligner)


def anchored(selection: Selection, taste: Taste, use: Tools, watch: Watch = lambda done, of: None) -> Anchored:
    """Every item with its anchors. What the list itself states is kept, and only what is missing is looked for."""
    items: list[Usable] = []
    silent: list[str] = []
    unaligned: list[tuple[str, str]] = []
    for index, item in enumerate(selection.items):
        said = item.utterance
        samples = sound.read(said, taste)
        found = _with_speech(said.anchors, samples, use)
        if found.speech_end_s is None:
            silent.append(said.id)
        elif use.align is not None and said.text and not found.words:
            try:
                found = replace(found, words=use.align(samples, said.text), source=f"{found.source}; {use.aligner}")
            except UnalignedError as error:
                unaligned.append((said.id, str(error)))
        items.append(replace(item, utterance=replace(said, anchors=found)))
        watch(index + 1, len(selection.items))
    return Anchored(selection=replace(selection, items=tuple(items)), silent=tuple(silent), unaligned=tuple(unaligned))


def _with_speech(known: Anchors, samples: Any, use: Tools) -> Anchors:
    if known.speech_start_s is not None and known.speech_end_s is not None:
        return known
    span = use.find(samples)
    if span is None:
        return known
    start_s, end_s = span
    return replace(
        known,
        speech_start_s=start_s if known.speech_start_s is None else known.speech_start_s,
        speech_end_s=end_s if known.speech_end_s is None else known.speech_end_s,
        source="; ".join(filter(None, (known.source, use.finder))),
    )


def _energy() -> tuple[Find, str]:
    """Frames of 10 ms whose level is above −60 dBFS and above the loudest frame less 40 dB, three in a row."""
    return energy_span, (
        f"energy: speech is louder than {_FLOOR_DB:g} dBFS and at most {_BELOW_PEAK_DB:g} dB quieter "
        "than the loudest 10 ms"
    )


def energy_span(samples: Any) -> Span | None:
    """(start, end) of all that is loud, in seconds; None where nothing is."""
    import numpy as np

    size = round(_FRAME_S * RATE)
    frames = np.asarray(samples, dtype=np.float64)[: len(samples) // size * size].reshape(-1, size)
    if not len(frames):
        return None
    frames = frames - np.mean(samples)  # an offset of the microphone is no sound
    level_db = 10 * np.log10(np.maximum((frames**2).mean(axis=1), 1e-12))
    loud = level_db > max(_FLOOR_DB, float(level_db.max()) - _BELOW_PEAK_DB)
    runs = np.convolve(loud, np.ones(_FRAMES_IN_A_ROW), mode="valid") == _FRAMES_IN_A_ROW
    starts = np.flatnonzero(runs)
    if not len(starts):
        return None
    return float(starts[0] * _FRAME_S), float((starts[-1] + _FRAMES_IN_A_ROW) * _FRAME_S)


def _silero() -> tuple[Find, str]:
    import silero_vad
    import torch

    model = silero_vad.load_silero_vad()

    def find(samples: Any) -> Span | None:
        # Silence behind it: the detector ends speech after 0.1 s without any, and many files are cut before that.
        sound_then_silence = torch.nn.functional.pad(torch.from_numpy(samples.copy()), (0, RATE // 2))
        spans = silero_vad.get_speech_timestamps(sound_then_silence, model, sampling_rate=RATE, speech_pad_ms=0)
        return (spans[0]["start"] / RATE, min(spans[-1]["end"], len(samples)) / RATE) if spans else None

    return find, f"silero-vad {version('silero-vad')}"


def _pocketsphinx() -> tuple[Align, str]:
    return forced_alignment, f"words by pocketsphinx {version('pocketsphinx')}, forced alignment"


@cache
def _aligning_decoder() -> Any:
    from pocketsphinx import Decoder

    return Decoder(lm=None, loglevel="FATAL")


def forced_alignment(samples: Any, text: str) -> tuple[Word, ...]:
    """The words of the text with their times. Raises UnalignedError, for example for a word without pronunciation."""
    import numpy as np

    decoder = _aligning_decoder()
    spoken = spoken_words(text)
    unknown = [word for word in spoken if decoder.lookup_word(word) is None]
    if unknown or not spoken:
        raise UnalignedError(f"no pronunciation of {', '.join(unknown[:3])}" if unknown else "the text has no words")
    decoder.reinit_feat()
    # Silence around it: in a file that is cut close, the aligner would give the edges to the outer words.
    padded = np.pad(samples, round(_PAD_S * RATE))
    length_s = len(samples) / RATE
    try:
        decoder.set_align_text(" ".join(spoken))
        decoder.start_utt()
        decoder.process_raw((padded.clip(-1, 1) * _FULL_SCALE).astype("int16").tobytes(), full_utt=True)
        decoder.end_utt()
    except RuntimeError as error:
        raise UnalignedError(f"pocketsphinx failed: {error}") from error
    found = [
        Word(
            text=_ALTERNATIVE.sub("", segment.word),
            start_s=min(length_s, max(0.0, segment.start_frame * _ALIGNER_FRAME_S - _PAD_S)),
            end_s=min(length_s, max(0.0, (segment.end_frame + 1) * _ALIGNER_FRAME_S - _PAD_S)),
        )
        for segment in decoder.seg() or ()
        if not _NO_WORD.match(segment.word)
    ]
    if [word.text for word in found] != spoken:
        raise UnalignedError(f"only {len(found)} of {len(spoken)} words could be aligned with the sound")
    return tuple(found)


def spoken_words(text: str) -> list[str]:
    """Lower-case words without punctuation, as a pronouncing dictionary lists them."""
    plain = text.lower().replace("’", "'").replace("-", " ")
    return [word for part in plain.split() if (word := re.sub(r"[^\w']", "", part).strip("'"))]


DETECTORS: Mapping[str, Callable[[], tuple[Find, str]]] = {SILERO: _silero, ENERGY: _energy}
ALIGNERS: Mapping[str, Callable[[], tuple[Align, str]]] = {POCKETSPHINX: _pocketsphinx}


@dataclass(frozen=True, kw_only=True)
class Joined:
    """Several utterances as one stream with pauses between them: its samples, text and anchors."""

    id: str
    samples: Any
    text: str | None
    anchors: Anchors


def joined(
    selection: Selection, taste: Taste, *, length_s: float, pause_s: float, watch: Watch = lambda done, of: None
) -> list[Joined]:
    """Utterances one after another, each stream at least `length_s` long; the last one may be shorter."""
    streams: list[Joined] = []
    group: list[tuple[Usable, Any]] = []
    held_s = 0.0
    for index, item in enumerate(selection.items):
        samples = sound.read(item.utterance, taste)
        group.append((item, samples))
        held_s += len(samples) / RATE + pause_s
        if held_s - pause_s >= length_s or index + 1 == len(selection.items):
            streams.append(_join(group, pause_s, len(streams)))
            group, held_s = [], 0.0
        watch(index + 1, len(selection.items))
    return streams


def _join(group: Sequence[tuple[Usable, Any]], pause_s: float, number: int) -> Joined:
    import numpy as np

    pause: Any = np.zeros(round(pause_s * RATE), dtype=np.float32)
    pieces: list[Any] = []
    words: list[Word] = []
    spans: list[Span] = []
    at_s = 0.0
    for index, (item, samples) in enumerate(group):
        pieces += [pause, samples] if index else [samples]
        at_s += len(pause) / RATE if index else 0.0
        own = item.utterance.anchors
        words += [replace(word, start_s=word.start_s + at_s, end_s=word.end_s + at_s) for word in own.words]
        if own.speech_start_s is not None and own.speech_end_s is not None:
            spans.append((own.speech_start_s + at_s, own.speech_end_s + at_s))
        at_s += len(samples) / RATE
    utterances = [item.utterance for item, _ in group]
    every_word = all(one.anchors.words for one in utterances)  # a gap would look like words that were not said
    texts = [one.text for one in utterances]
    anchors = Anchors(
        speech_start_s=spans[0][0] if len(spans) == len(group) else None,
        speech_end_s=spans[-1][1] if len(spans) == len(group) else None,
        words=tuple(words) if every_word else (),
        source=utterances[0].anchors.source if spans else "",
    )
    return Joined(
        id=f"{number:04d}-{utterances[0].id.replace('/', '-')}",
        samples=np.concatenate(pieces),
        text=None if any(text is None for text in texts) else " ".join(text for text in texts if text),
        anchors=anchors,
    )
