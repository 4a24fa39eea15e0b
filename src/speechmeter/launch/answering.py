"""What an interpreter answers before it measures: the question on standard input, the answer on a file descriptor.

It runs in the other environment, so nothing is imported here but the standard library and what runs there anyway. A
package that prints when it is imported prints to standard output, and so spoils no answer.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from speechmeter.core import plugins
from speechmeter.core.errors import DeviceError, InputError, SubjectError
from speechmeter.core.types import Case
from speechmeter.launch.preflight import model_obstacle, summary

READERS = ("numpy", "soundfile", "soxr")
"""What inputs are made or read with, beside the standard library."""


def main() -> None:
    """Answer the question on standard input on the descriptor that the first argument names."""
    answer_fd = int(sys.argv[1])
    said = answer(json.load(sys.stdin))
    with os.fdopen(answer_fd, "w", encoding="utf-8") as file:
        json.dump(said, file)


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """Which cases this interpreter cannot measure and why, by case id, and what it is."""
    absent: dict[str, str] = {}
    refused: dict[str, dict[str, Any]] = {}
    for data in question["cases"]:
        case = Case.from_json(data)
        try:
            reason = model_obstacle(case)
        except (SubjectError, DeviceError) as error:
            kind = "DeviceError" if isinstance(error, DeviceError) else "SubjectError"
            refused[case.id] = {"kind": kind, "reason": error.reason, "key": error.key, "fix": error.fix}
            continue
        except InputError as error:  # a plug-in that only the launcher has, a torch without CUDA
            reason = summary(error)
        except (Exception, SystemExit) as error:
            reason = f"the plug-in {case.subject.plugin!r} failed when asked: {type(error).__name__}: {error}"
        if reason is not None:
            absent[case.id] = reason
    return {
        "version": platform.python_version(),
        "absent": absent,
        "refused": refused,
        "lacks": [name for name in READERS if find_spec(name) is None],
        "models": [asdict(one) for one in installed_models()] if question["models"] else [],
    }


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model that a plan can name. `missing` says what to install; `error` why its plug-in cannot be loaded."""

    name: str
    version: str = ""
    missing: str = ""
    summary: str = ""
    error: str = ""


def installed_models() -> list[Model]:
    """Every model that a plan can name, with its version, or what is missing."""
    models = []
    for name in plugins.names(plugins.SUBJECTS):
        try:
            subject = plugins.subject(name)
        except InputError as error:
            models.append(Model(name=name, error=error.reason))
            continue
        state = subject.installed()
        models.append(Model(name=name, version=state.version, missing=state.missing or "", summary=subject.summary))
        models += [
            Model(name=f"{name}:{one.source}", version=one.version, missing=one.missing or "", summary=one.summary)
            for one in state.choices
        ]
    return models
