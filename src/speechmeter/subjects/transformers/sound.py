"""Sound that models make, from tensors to `Speech`. Imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speechmeter.core.types import Speech, Stage

Sound = tuple[Any, Sequence[int]]
"""Waveforms (items, samples), and how many samples of each are true."""
_RATES = {
    "fastspeech2_conformer_hifigan": 22_050,
    "fastspeech2_conformer_with_hifigan": 22_050,
    "univnet": 24_000,
}
"""Where the configuration does not state the sampling rate: that of the data the released models were trained on."""


def spoken(sound: Sound, rate: int) -> list[Speech]:
    """Waveforms as `Speech` on the CPU, without padding."""
    waves, lengths = sound
    held = waves.detach().float().cpu()
    return [Speech(samples=wave[:length], rate=rate) for wave, length in zip(held, lengths, strict=True)]


def spoken_stage(rate: int) -> Stage:
    """The last stage of a model that speaks."""
    return Stage(name="decode", fn=lambda sound: spoken(sound, rate))


def waves_of(made: Any) -> Any:
    """(items, samples), whatever dimensions of one a model leaves."""
    return made.reshape(1, -1) if made.dim() == 1 else made.reshape(made.shape[0], -1)


def rate_of(config: Any) -> int:
    """The sampling rate of what a model of this configuration puts out."""
    return int(getattr(config, "sampling_rate", None) or _RATES[config.model_type])
