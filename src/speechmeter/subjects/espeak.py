"""espeak-ng by the library in espeakng-loader: `espeak`. Formants, a piece each 200 ms, with positions of words."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from speechmeter.core.axes import OFFLINE, Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import TEXT, Installed, Prepared
from speechmeter.core.types import Case, Speech
from speechmeter.subjects.common import check_no_source, cpu_engine, installed
from speechmeter.subjects.live.hearing import Heard
from speechmeter.subjects.live.speaking import voice

_SYNCHRONOUS, _PIECE_MS, _UTF8, _PER_CHARACTER, _RATE_PARAMETER = 2, 200, 1, 1, 1
_WORD, _END_OF_LIST = 1, 0
_FULL_SCALE = 32_768
WORDS = "words"
"""The note of a piece of sound: [place of the first character in the sentence, characters, seconds in its sound] of
each word that begins in it.
"""


class EspeakSubject:
    """`espeak`: text in, sound out while it is made."""

    summary = "espeak-ng, a formant synthesiser: no neural network, streams from the first 200 ms on"
    axes: tuple[Axis, ...] = ()
    options: tuple[Option, ...] = (
        Option(name="voice", kind=str, default="en-us", help="language or voice of espeak-ng, such as en-us or de"),
        Option(name="words_per_minute", kind=int, minimum=80, help="how fast it speaks (default: 175)"),
    )
    runs_code = False
    takes = (TEXT,)

    def installed(self) -> Installed:
        """Needs espeakng-loader, which holds the library."""
        return installed("espeakng_loader", extra="espeak", distribution="espeakng-loader")

    def check(self, case: Case) -> None:
        """It takes no source."""
        check_no_source(case)

    def unavailable(self, case: Case) -> str | None:
        """It runs on the CPU in its own number format."""
        return cpu_engine(case, "espeak-ng")

    def not_live(self, case: Case) -> str | None:
        """Always live."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """Load the library; it speaks one sentence at a time, whatever the number of streams."""
        options = case.subject.options
        engine = _Engine(str(options.get("voice", "en-us")), options.get("words_per_minute"))
        live = case.live is not None and case.axes.pace != OFFLINE
        return voice(engine.say, live=live, notes=("all streams share one engine, which speaks one at a time",))


class _Id(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    """espeak_EVENT of espeak-ng's speak_lib.h."""

    _fields_ = (
        ("type", ctypes.c_int), ("unique_identifier", ctypes.c_uint), ("text_position", ctypes.c_int),
        ("length", ctypes.c_int), ("audio_position", ctypes.c_int), ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p), ("id", _Id),
    )  # fmt: skip


_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)  # fmt: skip


class _Engine:
    """The library, which is one for the process. What it calls back with is handed on while it goes on."""

    def __init__(self, name: str, words_per_minute: int | None) -> None:
        import espeakng_loader

        self._lock = Lock()
        self._put: Callable[[Heard | None], None] = lambda heard: None
        self._library: Any = ctypes.CDLL(espeakng_loader.get_library_path())
        data = str(espeakng_loader.get_data_path()).encode()
        self._rate = int(self._library.espeak_Initialize(_SYNCHRONOUS, _PIECE_MS, data, 0))
        if self._rate <= 0:
            raise SubjectError("espeak-ng did not start", fix="pip install --force-reinstall espeakng-loader")
        if self._library.espeak_SetVoiceByName(name.encode()) != 0:
            raise SubjectError(f"espeak-ng has no voice {name!r}", key="voice", fix="for example `voice: en-us`")
        if words_per_minute is not None:
            self._library.espeak_SetParameter(_RATE_PARAMETER, words_per_minute, 0)
        self._callback = _Callback(self._made)  # kept: the library calls it later
        self._library.espeak_SetSynthCallback(self._callback)

    def say(self, sentence: str) -> Iterator[Heard]:
        """Pieces as the library makes them, in a thread of its own: it does not return before the end."""
        with self._lock:
            made: SimpleQueue[Heard | None] = SimpleQueue()
            self._put = made.put
            working = Thread(target=self._speak, args=(sentence,), name="espeak", daemon=True)
            working.start()
            try:
                while (heard := made.get()) is not None:
                    yield heard
            finally:
                working.join()

    def _speak(self, sentence: str) -> None:
        text = sentence.encode()
        self._library.espeak_Synth(text, ctypes.c_size_t(len(text) + 1), 0, _PER_CHARACTER, 0, _UTF8, None, None)
        self._put(None)

    def _made(self, samples: Any, count: int, events: Any) -> int:
        if samples and count > 0:
            import numpy as np

            wave = np.ctypeslib.as_array(samples, shape=(count,)).astype(np.float32) / _FULL_SCALE
            words = _words(events)
            sound = Speech(samples=wave, rate=self._rate)
            self._put(Heard(kind="audio", sound=sound, notes={WORDS: words} if words else {}))
        return 0


def _words(events: Any) -> list[list[float]]:
    found = []
    index = 0
    while events[index].type != _END_OF_LIST:
        event = events[index]
        if event.type == _WORD:
            found.append([event.text_position - 1, event.length, event.audio_position / 1000])
        index += 1
    return found
