"""Toolkits that import torchaudio at their top and use none of it on the way of a waveform through a model.

torchaudio has no build for a torch without CUDA, so such a toolkit could not even be imported there. While it is being
imported, an empty module takes torchaudio's place; afterwards it is gone again from `sys.modules`, so that whoever asks
whether torchaudio is here is told the truth. The toolkit keeps its reference, and what it asks of it fails by name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from speechmeter.core.errors import SubjectError

NOTE = "torchaudio is absent: a stand-in covers its import"
_NAME = "torchaudio"
_LIKE = "2.9.0+stand.in"
"""SpeechBrain reads the version: from 2.9 on it asks torchaudio for no list of audio backends."""


@contextmanager
def torchaudio_or_stand_in(*parts: str) -> Iterator[bool]:
    """Imports inside may name torchaudio and these `parts` of it (`compliance.kaldi`); yields whether they are hollow.

    SubjectError when torchaudio is installed and cannot be loaded: which of the two is wanted is not for us to say.
    """
    if find_spec(_NAME) is not None:
        _check_loads()
        yield False
        return
    names = sorted([_NAME, *(f"{_NAME}.{part}" for part in parts)])  # what holds a part comes before it
    try:
        for name in names:
            _insert(name)
        yield True
    finally:
        for name in names:
            sys.modules.pop(name, None)


def _check_loads() -> None:
    try:
        __import__(_NAME)
    except (ImportError, OSError) as error:
        raise SubjectError(
            f"torchaudio is installed and cannot be loaded: {error}",
            fix="install the build that belongs to this torch, or uninstall it: models run without",
        ) from error


def _insert(name: str) -> None:
    made = _Hollow(name)
    made.__spec__ = ModuleSpec(name, None, is_package=True)
    made.__path__ = []
    if name == _NAME:
        made.__dict__["__version__"] = _LIKE
    sys.modules[name] = made
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, made)


class _Hollow(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self.__name__}.{name} is needed, and torchaudio is not installed")
