"""Sound that one process reads for another, whose environment has no library for it.

The lender goes through all that a case feeds, and keeps the answer to every question that is asked about a file. The
borrower asks the same questions, since it has the same code and the same case.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from speechmeter.core import plugins
from speechmeter.core.errors import InputError
from speechmeter.core.types import Case
from speechmeter.workloads.manifests.utterance import UnusableError, Utterance

VARIABLE = "SPEECHMETER_SOUND"
"""Names the folder of what was read, for the borrower."""
_lending: list[Path] = []
_Found = TypeVar("_Found")


def main() -> None:
    """Read all that the case on standard input feeds, into the folder that the first argument names."""
    case = Case.from_json(json.load(sys.stdin))
    _lending.append(Path(sys.argv[1]))
    try:
        for _ in plugins.workload(case.workload.plugin).batches(case):
            pass
    except InputError:  # the borrower comes to the same end
        pass


def lendable(function: Callable[[Utterance, Any], _Found]) -> Callable[[Utterance, Any], _Found]:
    """A question about the file of an utterance: an array, numbers, or UnusableError is the answer."""

    @functools.wraps(function)
    def answered(utterance: Utterance, taste: Any) -> _Found:
        borrowed_from = os.environ.get(VARIABLE)
        if utterance.array is not None or not (borrowed_from or _lending):
            return function(utterance, taste)
        name = hashlib.sha256(repr((function.__name__, utterance, taste)).encode()).hexdigest()[:32]
        if borrowed_from:
            return cast(_Found, _borrowed(Path(borrowed_from, name)))
        try:
            found = function(utterance, taste)
        except UnusableError as error:
            Path(_lending[0], f"{name}.json").write_text(json.dumps({"unusable": str(error)}))
            raise
        _lend(Path(_lending[0], name), found)
        return found

    return answered


def _lend(path: Path, found: Any) -> None:
    if isinstance(found, float | list):
        path.with_suffix(".json").write_text(json.dumps({"found": found}))
    else:
        import numpy as np

        np.save(path.with_suffix(".npy"), found)


def _borrowed(path: Path) -> Any:
    if path.with_suffix(".npy").exists():
        import numpy as np

        return np.load(path.with_suffix(".npy"))
    try:
        answer = json.loads(path.with_suffix(".json").read_text())
    except OSError:
        raise UnusableError(
            "was not read for this interpreter; install soundfile and soxr in its environment"
        ) from None
    if "unusable" in answer:
        raise UnusableError(answer["unusable"])
    return answer["found"]
