"""What a model that hears is fed: its own feature extractor's output, at its own sampling rate. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import transformers

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch
from speechmeter.subjects.transformers.catalogue import CODECS, PAIRED, extractors, feature_bands
from speechmeter.subjects.transformers.sources import is_hub_id

RATE = 16_000
_BY_HAND = {"wav2vec2-bert": "SeamlessM4TFeatureExtractor"}
"""Where the library's own table is wrong: this model hears log-mel frames in pairs."""
_NEEDS_LIBROSA = "ParakeetFeatureExtractor"


@dataclass(frozen=True, kw_only=True)
class Listener:
    """From waveforms to a model's inputs; `rate` is the one it hears at.

    Features of `bands` bands are passed on past the extractor, `pairs` of frames together where the model hears them
    so; None where the model takes no features.
    """

    extract: Callable[[Sequence[Any]], Mapping[str, Any]]
    rate: int
    notes: tuple[str, ...] = ()
    bands: int | None = None
    pairs: bool = False

    def features(self, batch: Batch) -> dict[str, Any]:
        """The inputs of one batch as tensors; every item without its padding, at the model's rate."""
        if isinstance(batch.data, tuple):
            raise SubjectError("this model hears sound, and what it is fed is text", fix="feed it sound")
        if batch.data.ndim == 3:
            return self._passed_on(batch)
        waves = [wave[:length] for wave, length in zip(batch.data, batch.lengths, strict=True)]
        return dict(self.extract(waves if self.rate == RATE else [_resampled(wave, self.rate) for wave in waves]))

    def _passed_on(self, batch: Batch) -> dict[str, Any]:
        """Features as they are, zeros behind the shorter ones, and which frames are true."""
        items, frames, bands = batch.data.shape
        if bands != self.bands:
            taken = "no features" if self.bands is None else f"features of {self.bands} bands"
            raise SubjectError(f"this model takes {taken}, and is fed features of {bands}", fix="feed it sound")
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
            f"{config.model_type} hears nothing: transformers has no extractor for it", fix="name another head"
        )
    if name == _NEEDS_LIBROSA and find_spec("librosa") is None:
        return _without_librosa(config, random=random)
    return _listener(getattr(transformers, name)(**_sizes(config)))


def _listener(extractor: Any) -> Listener:
    rate = int(getattr(extractor, "sampling_rate", RATE))
    windows = "whisper" in type(extractor).__name__.lower()
    # Whisper hears windows of 30 s: its extractor pads to them, whatever `padding` says elsewhere
    padding = {} if windows else {"padding": True}

    def extract(waves: Sequence[Any]) -> Mapping[str, Any]:
        made: Mapping[str, Any] = extractor(waves, sampling_rate=rate, return_tensors="pt", **padding)
        return made

    return Listener(extract=extract, rate=rate)


def _sizes(config: Any) -> dict[str, int]:
    """What an extractor must know of the model: bands, and the rate of those that do not hear at 16 kHz."""
    if config.model_type in CODECS:
        return {"sampling_rate": config.sampling_rate}
    if config.model_type in PAIRED:
        bands = config.feature_projection_input_dim // 2
        return {"feature_size": bands, "num_mel_bins": bands}
    if config.model_type == "speech_to_text":
        return {"feature_size": config.input_feat_per_channel, "num_mel_bins": config.input_feat_per_channel}
    bands = getattr(config, "num_mel_bins", None) or getattr(_encoder_config(config), "num_mel_bins", None)
    return {"feature_size": bands} if bands and config.model_type != "speecht5" else {}


def _encoder_config(config: Any) -> Any:
    return getattr(config, "encoder_config", None)


def _resampled(wave: Any, rate: int) -> Any:
    import soxr

    return soxr.resample(wave, RATE, rate)


def _without_librosa(config: Any, *, random: bool) -> Listener:
    """Parakeet's front-end takes its mel bands from librosa; with random weights any bands of that size will do."""
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

    return Listener(extract=extract, rate=RATE, notes=("features: log-mel of the same shape, as librosa is not here",))
