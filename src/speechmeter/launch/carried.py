"""This package for other interpreters: a copy of its source and of its entry points, with nothing else around it.

An interpreter that measures a model in place of this one imports it from there. Nothing is installed or written in its
own environment, and nothing of this environment can be imported by accident. It is a copy, so that what another version
of Python compiles is not written beside our source either.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

_OURS = "speechmeter"
_METADATA = ("METADATA", "entry_points.txt")
_LEFT_OUT = "shipped"
"""The plans and examples that a wheel brings along. What was compiled is kept: it serves a Python of this version."""


def starting(module: str, folder: Path | None = None) -> tuple[str, str]:
    """What an interpreter is given to run `main` of a module of ours, from `folder` where it is another interpreter.

    Nothing is imported from the working directory, which may hold a `json.py` of a stranger. `-m` would look there
    first, and Python 3.10 has no PYTHONSAFEPATH to stop it.
    """
    ours = "" if folder is None else f"sys.path.insert(0, {str(folder)!r}); "
    return "-c", f"import sys; sys.path[:] = filter(None, sys.path); {ours}from {module} import main; main()"


@cache
def carried() -> Path:
    """A folder from which another interpreter can import this package; it is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="speechmeter-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source = Path(__file__).resolve().parents[1]
    shutil.copytree(source, folder / _OURS, ignore=shutil.ignore_patterns(_LEFT_OUT))
    known = distribution(_OURS)
    metadata = folder / f"{_OURS}-{known.version}.dist-info"
    metadata.mkdir()
    for name in _METADATA:
        if (text := known.read_text(name)) is not None:
            (metadata / name).write_text(text)
    return folder
