"""For toolkits that import torchaudio at their top, but do not use it when a model runs.

torchaudio has no build for a torch without CUDA, so such a toolkit could not even be imported there. While it is being
imported, an empty module replaces torchaudio; afterwards it is removed from `sys.modules`, so that a later search finds
that torchaudio is absent. The toolkit keeps its reference, and using anything of it fails with the name of what is
missing.
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

NOTE = "torchaudio is not installed: an empty module replaces it for the import"
_NAME = "torchaudio"
_LAZY_OF_SPEECHBRAIN = "speechbrain.utils.importutils"
_LIKE = "2.9.0+stand.in"
"""SpeechBrain reads the version: from 2.9 on it asks torchaudio for no list of audio backends."""


def is_installed() -> bool:
    """Whether torchaudio is there. Raises SubjectError where it is, but cannot be loaded: a build for another torch."""
    if find_spec(_NAME) is None:
        return False
    try:
        __import__(_NAME)
    except (ImportError, OSError) as error:
        raise SubjectError(
            f"torchaudio is installed but cannot be loaded: {error}",
            fix="install the build that belongs to this torch, or uninstall it: models run without it",
        ) from error
    return True


@contextmanager
def explaining_torchaudio() -> Iterator[None]:
    """Inside, an error that comes from a torchaudio which cannot be loaded says so, and what to do about it."""
    try:
        yield
    except Exception as error:
        if _NAME in str(error):
            is_installed()
        raise


@contextmanager
def torchaudio_or_stand_in() -> Iterator[bool]:
    """Imports inside may name torchaudio; yields whether a stand-in replaces it.

    Raises SubjectError when torchaudio is installed but cannot be loaded: the user has to decide what to do about it.
    """
    if is_installed():
        yield False
        return
    made = _StandIn(_NAME)
    made.__spec__ = ModuleSpec(_NAME, None)
    made.__dict__["__version__"] = _LIKE
    sys.modules[_NAME] = made
    try:
        yield True
    finally:
        sys.modules.pop(_NAME, None)
        # old names of SpeechBrain import the new ones at the first look: whoever looks through all modules fails there
        for name in [name for name, module in sys.modules.items() if type(module).__module__ == _LAZY_OF_SPEECHBRAIN]:
            del sys.modules[name]


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self.__name__}.{name} is needed, and torchaudio is not installed")
