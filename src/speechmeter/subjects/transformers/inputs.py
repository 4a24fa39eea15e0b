"""What a model is fed: the output of its own feature extractor, or token ids of its own vocabulary. Imports torch.

Text goes through the model's tokenizer. Without one, words (letters, where the vocabulary is one of letters) become
ids by a stable hash, and ids of another vocabulary are taken modulo ours; special ids are avoided. The number of ids,
on which the cost depends, is then that of words, letters or ids.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import transformers

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch
from speechmeter.subjects.common import RATE, waves
from speechmeter.subjects.transformers.sources import CODECS, PAIRED, extractors, feature_bands, is_hub_id

_BY_HAND = {"wav2vec2-bert": "SeamlessM4TFeatureExtractor"}
"""Where the library's own table is wrong: this model takes log-mel frames in pairs."""
_NEEDS_LIBROSA = "ParakeetFeatureExtractor"
_LETTERS = 256
"""A vocabulary of fewer symbols is one of letters or phones."""
_SPECIAL = ("pad_token_id", "bos_token_id", "eos_token_id", "unk_token_id", "decoder_start_token_id", "sep_token_id")


@dataclass(frozen=True, kw_only=True)
class Listener:
    """From waveforms to a model's inputs; `rate` is the sampling rate that it needs.

    Features of `bands` bands skip the extractor, in `pairs` of frames where the model takes them so; None where it
    takes no features.
    """

    extract: Callable[[Sequence[Any]], Mapping[str, Any]]
    rate: int
    notes: tuple[str, ...] = ()
    bands: int | None = None
    pairs: bool = False

    def features(self, batch: Batch) -> dict[str, Any]:
        """The inputs of one batch as tensors; every item without its padding, at the model's rate."""
        if isinstance(batch.data, tuple):
            raise SubjectError("this model takes sound, but its input is text", fix="use `audio` or `data`")
        if batch.data.ndim == 3:
            return self._passed_on(batch)
        items = waves(batch)
        if self.rate != RATE:
            import soxr

            items = [soxr.resample(wave, RATE, self.rate) for wave in items]
        return dict(self.extract(items))

    def _passed_on(self, batch: Batch) -> dict[str, Any]:
        """Features as they are, zeros behind the shorter ones, and which frames are true."""
        items, frames, bands = batch.data.shape
        if bands != self.bands:
            taken = "no features" if self.bands is None else f"features of {self.bands} bands"
            raise SubjectError(f"this model takes {taken}, but its input has {bands}", fix="use `audio` or `data`")
        data = torch.from_numpy(batch.data)
        mask = (torch.arange(frames)[None, :] < torch.tensor(batch.lengths)[:, None]).long()
        if self.pairs:  # a last frame without a partner is left out, as the library's extractor does
            whole = frames - frames % 2
            data, mask = data[:, :whole].reshape(items, whole // 2, 2 * bands), mask[:, 1:whole:2]
        return {"input_features": data, "attention_mask": mask}


def listener_of(source: str, config: Any, *, random: bool) -> Listener:
    """The model's own feature extractor, else its class with the sizes that the configuration states."""
    bands = feature_bands(config.model_type, config.to_dict())
    return replace(_heard_by(source, config, random=random), bands=bands, pairs=config.model_type in PAIRED)


def _heard_by(source: str, config: Any, *, random: bool) -> Listener:
    if is_hub_id(source) or (Path(source) / "preprocessor_config.json").is_file():
        return _listener(transformers.AutoFeatureExtractor.from_pretrained(source, trust_remote_code=False))
    name = _BY_HAND.get(config.model_type) or extractors().get(config.model_type)
    if name is None:
        raise SubjectError(
            f"transformers has no feature extractor for {config.model_type}",
            fix="use a directory with a preprocessor_config.json",
        )
    if name == _NEEDS_LIBROSA and find_spec("librosa") is None:
        return _without_librosa(config, random=random)
    return _listener(getattr(transformers, name)(**_sizes(config)))


def _listener(extractor: Any) -> Listener:
    rate = int(getattr(extractor, "sampling_rate", RATE))
    windows = "whisper" in type(extractor).__name__.lower()
    # Whisper takes windows of 30 s: its extractor pads to them by itself
    padding = {} if windows else {"padding": True}

    def extract(waves: Sequence[Any]) -> Mapping[str, Any]:
        made: Mapping[str, Any] = extractor(waves, sampling_rate=rate, return_tensors="pt", **padding)
        return made

    return Listener(extract=extract, rate=rate)


def _sizes(config: Any) -> dict[str, int]:
    """What an extractor must know of the model: bands, and the rate of those that do not work at 16 kHz."""
    if config.model_type in CODECS:
        return {"sampling_rate": config.sampling_rate}
    if config.model_type in PAIRED:
        bands = config.feature_projection_input_dim // 2
        return {"feature_size": bands, "num_mel_bins": bands}
    if config.model_type == "speech_to_text":
        return {"feature_size": config.input_feat_per_channel, "num_mel_bins": config.input_feat_per_channel}
    encoder = getattr(config, "encoder_config", None)
    bands = getattr(config, "num_mel_bins", None) or getattr(encoder, "num_mel_bins", None)
    return {"feature_size": bands} if bands and config.model_type != "speecht5" else {}


def _without_librosa(config: Any, *, random: bool) -> Listener:
    """Parakeet's front-end takes its mel bands from librosa; with random weights any bands of that size do."""
    if not random:
        raise SubjectError(f"{config.model_type} needs librosa for its features", fix="pip install librosa")
    bands = int(_sizes(config)["feature_size"])
    window, hop, fft = 400, 160, 512
    mel = torch.from_numpy(
        transformers.audio_utils.mel_filter_bank(
            num_frequency_bins=fft // 2 + 1,
            num_mel_filters=bands,
            min_frequency=0.0,
            max_frequency=RATE / 2,
            sampling_rate=RATE,
            norm="slaney",
            mel_scale="slaney",
        ).T
    ).float()
    shape = torch.hann_window(window, periodic=False)

    def extract(waves: Sequence[Any]) -> Mapping[str, Any]:
        lengths = torch.tensor([len(wave) for wave in waves])
        padded = torch.nn.utils.rnn.pad_sequence([torch.as_tensor(wave) for wave in waves], batch_first=True)
        spectrum = torch.stft(
            padded, fft, hop_length=hop, win_length=window, window=shape, return_complex=True, pad_mode="constant"
        )
        frames = torch.log(mel @ spectrum.abs().square() + 2**-24).transpose(1, 2)
        mask = torch.arange(frames.shape[1])[None, :] < (lengths // hop)[:, None]
        return {"input_features": frames * mask[..., None], "attention_mask": mask}

    return Listener(
        extract=extract,
        rate=RATE,
        notes=("librosa is not installed: other log-mel features of the same shape replace those of the model",),
    )


class Ids:
    """From words, letters and foreign ids to the plain ids of a vocabulary."""

    def __init__(self, config: Any, size: int) -> None:
        special = {getattr(config, name, None) for name in _SPECIAL}
        self._plain = [number for number in range(size) if number not in special]
        self.letters = size < _LETTERS

    def of(self, item: str | Sequence[int]) -> list[int]:
        """The ids of one item; one id for an empty one."""
        if isinstance(item, str):
            parts = list(item.strip()) if self.letters else item.split()
            numbers = [zlib.crc32(part.encode()) for part in parts]
        else:
            numbers = list(item)
        return [self._plain[number % len(self._plain)] for number in numbers or [0]]


def vocabulary_size(config: Any) -> int:
    """How many ids a text model knows."""
    size = getattr(config, "vocab_size", None)
    if size is None:  # a model and its vocoder in one configuration
        size = config.model_config.vocab_size
    return int(size)


def read_text(config: Any, tokenizer: Any, *, end: bool) -> Callable[[Batch], dict[str, Any]]:
    """A stage: lines or ids of a batch as padded ids and a mask; with `end` each item ends as the model expects it."""
    ids, pad = Ids(config, vocabulary_size(config)), getattr(config, "pad_token_id", None) or 0
    last = getattr(config, "eos_token_id", None) if end else None
    closing = [last] if isinstance(last, int) else []

    def features(batch: Batch) -> dict[str, Any]:
        if not isinstance(batch.data, tuple):
            raise SubjectError("this model takes text, but its input is sound", fix="use `text`")
        if tokenizer is not None and all(isinstance(item, str) for item in batch.data):
            made = tokenizer(list(batch.data), return_tensors="pt", padding=True)
            return {name: made[name] for name in ("input_ids", "attention_mask")}
        return padded([ids.of(item) + closing for item in batch.data], pad)

    return features


def padded(rows: Sequence[Sequence[int]], pad: int) -> dict[str, Any]:
    """Rows of ids as one tensor, and a mask that is 0 on the padding."""
    width = max(map(len, rows))
    made = torch.full((len(rows), width), pad, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for index, row in enumerate(rows):
        made[index, : len(row)] = torch.tensor(list(row))
        mask[index, : len(row)] = 1
    return {"input_ids": made, "attention_mask": mask}


def reading_notes(config: Any, tokenizer: Any) -> list[str]:
    """What a reader must know of the input of a model without a tokenizer."""
    if tokenizer is not None:
        return []
    what = "letters" if Ids(config, vocabulary_size(config)).letters else "words"
    return [f"no tokenizer files: {what} are hashed to token ids, and ids beyond the vocabulary wrap around"]
