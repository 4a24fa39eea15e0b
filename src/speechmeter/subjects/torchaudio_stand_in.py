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
_LAZY_OF_SPEECHBRAIN = "speechbrain.utils.importutils"
_LIKE = "2.9.0+stand.in"
"""SpeechBrain reads the version: from 2.9 on it asks torchaudio for no list of audio backends."""


@contextmanager
def torchaudio_or_stand_in() -> Iterator[bool]:
    """Imports inside may name torchaudio; yields whether a stand-in takes its place.

    SubjectError when torchaudio is installed and cannot be loaded: which of the two is wanted is not for us to say.
    """
    if find_spec(_NAME) is not None:
        _check_loads()
        yield False
        return
    sys.modules[_NAME] = _stand_in()
    try:
        yield True
    finally:
        sys.modules.pop(_NAME, None)
        _forget_lazy_modules()


def _forget_lazy_modules() -> None:
    """Old names of SpeechBrain import the new ones at the first look; who looks through all modules fails there."""
    lazy = [name for name, module in sys.modules.items() if type(module).__module__ == _LAZY_OF_SPEECHBRAIN]
    for name in lazy:
        del sys.modules[name]


def _check_loads() -> None:
    try:
        __import__(_NAME)
    except (ImportError, OSError) as error:
        raise SubjectError(
            f"torchaudio is installed and cannot be loaded: {error}",
            fix="install the build that belongs to this torch, or uninstall it: models run without",
        ) from error


def _stand_in() -> ModuleType:
    made = _StandIn(_NAME)
    made.__spec__ = ModuleSpec(_NAME, None)
    made.__dict__["__version__"] = _LIKE
    return made


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self.__name__}.{name} is needed, and torchaudio is not installed")
