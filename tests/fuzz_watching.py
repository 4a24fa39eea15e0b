"""Tries damaged inputs one by one, and counts what came of them."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from unittest.mock import patch

from fuzzing import Watch

from speechmeter.core.errors import SpeechmeterError


@dataclass
class Tally:
    """How many were read and refused; `surprises` are errors of others, `done` is what was done besides reading."""

    read: int = 0
    refused: int = 0
    surprises: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)


@cache
def _watch() -> Watch:
    return Watch()  # a hook stays for as long as the process


def fuzz(
    target: Callable[[Path, random.Random], None], name: str, numbers: Iterable[int], folder: Path, *, warm: bool = True
) -> Tally:
    """Try the target with the seeds `name-number`, each in a folder of its own that is the working directory."""
    if warm:  # whatever is imported is imported now, when nobody watches
        fuzz(target, f"{name}-warm", range(3), folder, warm=False)
    tally, watch, before = Tally(), _watch(), Path.cwd()
    watch.done.clear()
    for number in numbers:
        place = folder / "input"
        place.mkdir()
        os.chdir(place)
        try:
            with watch.over(place), patch.object(tempfile, "tempdir", str(place)), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _try(target, place, random.Random(f"{name}-{number}"), number, tally)
        finally:
            os.chdir(before)
        if list(place.rglob("pwned")):
            tally.done.append(f"{number}: what the input asked for was done")
        shutil.rmtree(place)
    tally.done += watch.done
    return tally


def _try(
    target: Callable[[Path, random.Random], None], place: Path, draw: random.Random, number: int, tally: Tally
) -> None:
    try:
        target(place, draw)
        tally.read += 1
    except SpeechmeterError as error:
        tally.refused += 1
        if "\n" in str(error):
            tally.surprises.append(f"{number}: a message of several lines: {error!r}")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        tally.surprises.append(
            f"{number}: {type(error).__name__}: {str(error)[:200]} ({where.filename}:{where.lineno})"
        )
