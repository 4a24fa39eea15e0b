"""Silero VAD: where in a recording somebody speaks, in windows of 512 samples. The weights are in its package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from typing import TYPE_CHECKING, Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.live import Live
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Batch, Case, Segments, Stage
from speechmeter.subjects.common import RATE, check_no_source, installed
from speechmeter.subjects.live.hearing import Heard, Hearing, hearing

if TYPE_CHECKING:
    import torch

    Windows = tuple[torch.Tensor, tuple[int, ...]]
    """A tensor by item, and how many true samples each item has."""

_WINDOW = 512


class SileroVadSubject:
    """`silero-vad`: copy → model (a probability of speech for each window) → decode (segments in seconds)."""

    summary = "Silero VAD, voice activity detection: segments of speech in seconds"
    axes: tuple[Axis, ...] = ()
    options: tuple[Option, ...] = ()
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs torch and silero-vad, whose package holds the model."""
        return installed("silero_vad", "torch", extra="silero-vad")

    def check(self, case: Case) -> None:
        """It takes no source."""
        check_no_source(case)

    def unavailable(self, case: Case) -> str | None:
        """The model is a TorchScript file with float32 written into it; it was only tried on the CPU."""
        if not case.device.is_cpu:
            return f"silero-vad is supported on the CPU only, not on {case.device}"
        if case.axes.dtype != "float32":
            return f"silero-vad runs in float32 only, not in {case.axes.dtype}"
        if case.axes.compile:
            return "silero-vad is TorchScript, which torch.compile does not accept"
        return None

    def not_live(self, case: Case) -> str | None:
        """Live it says when speech ends, and nothing else."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the TorchScript model of the package."""
        import silero_vad

        from speechmeter.subjects import torch_runtime as runtime

        runtime.configure(case)  # after the import above, which sets torch to one thread
        model = silero_vad.load_silero_vad()
        at_16_khz = {"silero-vad": model._model}  # the file holds a second network, for 8 kHz, which does not run

        def probabilities(windows: Windows) -> Windows:
            samples, lengths = windows
            return model.audio_forward(samples, RATE), lengths

        idle = [silero_vad.load_silero_vad()] if case.live is not None else []  # each stream has a state of its own
        hear = hearing(lambda: _Endpointer(idle.pop() if idle else silero_vad.load_silero_vad(), idle.append))
        return Prepared(
            live=Live(converse=lambda clock: Hearing(clock, hear), endpoints=True, texts=False),
            stages=(
                Stage(name="copy", fn=_copy),
                Stage(name="model", fn=runtime.inference(probabilities), modules=at_16_khz),
                Stage(name="decode", fn=_segments),
            ),
            modules=at_16_khz,
            notes=("windows of 512 samples one after another, each for the whole batch",),
        )


def _copy(batch: Batch) -> Windows:
    import torch

    samples = torch.from_numpy(batch.data)
    short = max(0, _WINDOW - samples.shape[1])  # the model pads its last window, but refuses sound shorter than one
    return torch.nn.functional.pad(samples, (0, short)), batch.lengths


def _segments(windows: Windows) -> list[Segments]:
    """The library's own rule applied to the probabilities of each item, without its padding."""
    from silero_vad import get_speech_timestamps_from_probs

    found: list[Segments] = []
    for row, length in zip(windows[0].tolist(), windows[1], strict=True):
        speeches = get_speech_timestamps_from_probs(
            row[: ceil(length / _WINDOW)], sampling_rate=RATE, audio_length_samples=length
        )
        found.append(Segments((speech["start"] / RATE, speech["end"] / RATE) for speech in speeches))
    return found


class _Endpointer:
    """The library's own iterator over windows: the end of speech after 0.1 s of silence, as it is by default."""

    def __init__(self, model: Any, release: Callable[[Any], None]) -> None:
        import numpy as np
        from silero_vad import VADIterator

        self._model, self._release = model, release
        self._windows = VADIterator(model, sampling_rate=RATE)
        self._rest: Any = np.zeros(0, dtype=np.float32)
        self._segment = 0

    def feed(self, samples: Any) -> Iterator[Heard]:
        """An endpoint where speech ended."""
        import numpy as np
        import torch

        waiting = np.concatenate([self._rest, samples])
        whole = len(waiting) // _WINDOW * _WINDOW
        self._rest = waiting[whole:]
        for start in range(0, whole, _WINDOW):
            found = self._windows(torch.from_numpy(waiting[start : start + _WINDOW])) or {}
            if "end" in found:
                yield Heard(kind="endpoint", segment=self._segment, end_s=found["end"] / RATE)
                self._segment += 1

    def finish(self) -> Iterator[Heard]:
        """Nothing: less than a window is left."""
        return iter(())

    def close(self) -> None:
        """Leave the model to the next conversation, which resets its state."""
        self._release(self._model)
