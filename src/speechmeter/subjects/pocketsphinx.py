"""PocketSphinx with the English model of its package: hidden Markov models and an n-gram language model, no network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from speechmeter.core.axes import OFFLINE, Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.live import Live
from speechmeter.core.protocols import SOUND, Installed, Prepared
from speechmeter.core.types import Batch, Case, Stage
from speechmeter.subjects.common import check_no_source, cpu_engine, installed, waves
from speechmeter.subjects.live.hearing import Heard, Hearing
from speechmeter.subjects.live.worker import Workers

if TYPE_CHECKING:
    from pocketsphinx import Decoder

_FULL_SCALE = 32_767
_OPTIONS: Mapping[str, tuple[str, Callable[[float], bool]]] = {
    "lw": ("a number greater than 0, such as 6.5", lambda value: 0 < value < float("inf")),
    "beam": ("a number between 0 and 1, such as 1e-48", lambda value: 0 < value < 1),
}
"""Settings of the decoder by its own names: what each takes, and whether a number is that."""


class PocketsphinxSubject:
    """`pocketsphinx`: one stage, features and search together, as the library runs them."""

    summary = "PocketSphinx with its English model: no neural network, one thread"
    axes: tuple[Axis, ...] = ()
    options = tuple(Option(name=name, kind=(float, str), help=takes) for name, (takes, _) in _OPTIONS.items())
    runs_code = False
    takes = (SOUND,)

    def installed(self) -> Installed:
        """Needs pocketsphinx, whose package holds the model."""
        return installed("pocketsphinx", extra="pocketsphinx")

    def check(self, case: Case) -> None:
        """It takes no source; its options are numbers."""
        check_no_source(case)
        _settings(case)

    def unavailable(self, case: Case) -> str | None:
        """It runs on the CPU in its own number format."""
        return cpu_engine(case, "pocketsphinx")

    def not_live(self, case: Case) -> str | None:
        """Always live: a new hypothesis after each chunk."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load acoustic model, dictionary and language model; for a live case in a process that decodes."""
        if case.live is not None and case.axes.pace != OFFLINE:
            workers = Workers(_decoding, _settings(case))
            return Prepared(
                live=Live(converse=lambda clock: Hearing(clock, workers.hear)),
                close=workers.close,
                notes=("each stream is decoded in a process of its own, because the library holds Python's lock",),
                data_dependent=True,
            )
        from pocketsphinx import Decoder

        decoder = Decoder(loglevel="ERROR", **_settings(case))

        def recognise(batch: Batch) -> list[str]:
            return [heard(decoder, wave) for wave in waves(batch)]

        return Prepared(
            stages=(Stage(name="model", fn=recognise),),
            notes=("items one after another, always on one thread",),
            data_dependent=True,
        )


def _settings(case: Case) -> dict[str, float]:
    """The options as numbers; YAML reads 1e-48 as a word."""
    found: dict[str, float] = {}
    for name, (takes, fits) in _OPTIONS.items():
        given = case.subject.options.get(name)
        if given is None:
            continue
        try:
            found[name] = float("nan") if isinstance(given, bool) else float(given)
        except (TypeError, ValueError):
            found[name] = float("nan")
        if not fits(found[name]):
            raise SubjectError(f"{name} takes {takes}, not {given!r}", key=name)
    return found


def heard(decoder: Decoder, wave: Any) -> str:
    """The text of one recording, independent of earlier ones; empty when nothing was recognised."""
    decoder.reinit_feat()  # resets the levels and the noise estimated on the recording before; takes 0.1 ms
    samples = (wave.clip(-1, 1) * _FULL_SCALE).astype("int16").tobytes()
    decoder.start_utt()
    decoder.process_raw(samples, no_search=False, full_utt=True)
    decoder.end_utt()
    found = decoder.hyp()
    return str(found.hypstr) if found else ""


def _decoding(settings: dict[str, float]) -> Callable[[], _Engine]:
    """Load the models once; each conversation starts anew."""
    from pocketsphinx import Decoder

    decoder = Decoder(loglevel="FATAL", **settings)
    return lambda: _Engine(decoder)


class _Engine:
    """The hypothesis after each chunk, and the final one."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder, self._text = decoder, ""
        decoder.reinit_feat()
        decoder.start_utt()

    def feed(self, samples: Any) -> Iterator[Heard]:
        """A partial where the hypothesis changed."""
        pcm = (samples.clip(-1, 1) * _FULL_SCALE).astype("int16").tobytes()
        self._decoder.process_raw(pcm, no_search=False, full_utt=False)
        text = self._hypothesis()
        if text != self._text:
            self._text = text
            yield Heard(kind="partial", text=text)

    def finish(self) -> Iterator[Heard]:
        """The best path over the whole utterance."""
        self._decoder.end_utt()
        yield Heard(kind="final", text=self._hypothesis())

    def close(self) -> None:
        """Nothing to free: the decoder serves the next conversation, and one that broke off ends with its process."""

    def _hypothesis(self) -> str:
        found = self._decoder.hyp()
        return str(found.hypstr) if found else ""
