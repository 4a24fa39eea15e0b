"""Other Python interpreters: where they are, what they answer before anything is measured, and what they start with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from speechmeter.core import plugins
from speechmeter.core.axes import BOUNDARIES
from speechmeter.core.errors import DeviceError, InputError, SubjectError
from speechmeter.core.machine import INTERPRETER_VARIABLE
from speechmeter.core.protocols import TEXT
from speechmeter.core.types import Case
from speechmeter.launch.carried import carried, starting

WHERE = "use the path of a Python interpreter, or of the folder of its environment"
"""What to do about one that does not start."""
OLDEST = (3, 10)
"""The oldest Python that this package runs under."""
ANSWER_S = 120.0
"""How long an interpreter may take to answer; the first start from a slow disk takes longest."""
_OF_OURS = ("PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__")
"""Variables by which an interpreter finds the packages of this environment."""
# Any Python can read these lines, as far back as 2.7: an old one says which it is.
_AGE = """import sys
if sys.version_info[:2] < (%d, %d):
    import os
    os.write(int(sys.argv[1]), ('{"version": "%%d.%%d.%%d"}' %% tuple(sys.version_info[:3])).encode())
    sys.exit(0)
"""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an interpreter said of itself, and of the cases that it was asked about.

    `reason` is why it cannot be used at all; empty when it can. `absent` and `refused` are by case id: the first are
    not available there, the second are wrong. `lacks` are the packages for inputs that are not installed there.
    """

    version: str = ""
    reason: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, InputError] = field(default_factory=dict)
    python: str = ""
    lacks: tuple[str, ...] = ()
    models: Sequence[Mapping[str, str]] = ()

    def about(self, case: Case) -> str | None:
        """Why its model cannot be measured there; None when it can. Raises InputError for one that is wrong."""
        if self.reason:
            return self.reason
        if case.id in self.refused:
            raise self.refused[case.id]
        return self.absent.get(case.id)

    def about_input(self, case: Case) -> str | None:
        """Why its input cannot be had there; None when it can."""
        install = f"{self.python} -m pip install"
        if "numpy" in self.lacks and plugins.fed_by(case).kinds != (TEXT,):
            return f"numpy is not installed there, and the input is made with it: {install} numpy"
        if self.lacks_readers and case.axes.boundary == BOUNDARIES[-1] and reads_files(case):
            return (
                f"{' and '.join(self.lacks)} are not installed there, and `boundary: {BOUNDARIES[-1]}` times how sound "
                f"is read: {install} {' '.join(self.lacks)}"
            )
        return None

    @property
    def lacks_readers(self) -> bool:
        """Whether files of sound cannot be read there."""
        return bool(self.lacks)


def reads_files(case: Case) -> bool:
    """Whether its input comes from files, or may."""
    return case.workload.source not in ("", "noise")


def located(text: str) -> str:
    """The interpreter that a user named: a file, the folder of an environment, or a command that is looked for in PATH.

    What is not found is as it was given. A link to it is not followed: where it lies decides what it imports.
    """
    path = Path(text).expanduser()
    if (path / "bin" / "python").exists():
        path = path / "bin" / "python"
    if os.sep in text or path.exists():
        return str(path.parent.resolve() / path.name)
    return shutil.which(text) or text


def environ_for(python: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that another interpreter starts with: as if its environment were active, and not this one."""
    kept = {key: value for key, value in environ.items() if key not in _OF_OURS}
    kept["PATH"] = os.pathsep.join(filter(None, [str(Path(python).parent), kept.get("PATH", "")]))
    return {**kept, INTERPRETER_VARIABLE: shown(python)}


def shown(python: str) -> str:
    """The path of an interpreter as records hold it, without the name of the user whose folder it is in."""
    home = str(Path.home())
    return f"~{python[len(home) :]}" if python.startswith(home + os.sep) else python


@cache
def about(python: str) -> Answer:
    """What an interpreter says of itself; it is asked once."""
    return ask(python)


def answers(cases: Sequence[Case], interpreters: Mapping[str, str]) -> dict[str, Answer]:
    """What each interpreter says of the models that it measures, by the name of the model."""
    asked = {
        python: ask(python, [case for case in cases if interpreters.get(case.subject.name) == python])
        for python in dict.fromkeys(interpreters.values())
    }
    return {name: asked[python] for name, python in interpreters.items()}


def ask(python: str, cases: Sequence[Case] = (), *, models: bool = False) -> Answer:
    """Ask an interpreter whether it can measure these cases, and with `models` what it can measure at all."""
    _, code = starting("speechmeter.launch.answering", carried())
    question = json.dumps({"cases": [case.to_json() for case in cases], "models": models})
    with tempfile.TemporaryFile() as file:  # a pipe would hold up an answer that is longer than its buffer
        try:
            ended = subprocess.run(
                [python, "-c", _AGE % OLDEST + code, str(file.fileno())],
                input=question, capture_output=True, text=True, errors="replace", timeout=ANSWER_S, check=False,
                env=environ_for(python, os.environ), pass_fds=[file.fileno()],
            )  # fmt: skip
        except OSError as error:
            return Answer(reason=f"cannot start the interpreter {python}: {error.strerror}")
        except subprocess.TimeoutExpired:
            return Answer(reason=f"the interpreter {python} did not answer within {ANSWER_S:g} s")
        file.seek(0)
        said = file.read()
    try:
        return _read(python, json.loads(said))
    except (ValueError, KeyError, TypeError):
        printed = (ended.stderr.strip() or ended.stdout.strip()).splitlines() or ["it printed nothing"]
        how = f"exit code {ended.returncode}" if ended.returncode >= 0 else f"signal {-ended.returncode}"
        return Answer(reason=f"{python} did not answer as a Python interpreter does ({how}): {printed[-1]}")


def _read(python: str, said: Mapping[str, Any]) -> Answer:
    version = str(said["version"])
    if "absent" not in said:
        oldest = ".".join(map(str, OLDEST))
        return Answer(
            version=version,
            reason=f"{python} is Python {version}, and a model is measured by Python {oldest} or later; "
            "use `runner:` to measure a program of any other kind",
        )
    kinds = {"SubjectError": SubjectError, "DeviceError": DeviceError}
    return Answer(
        version=version,
        python=python,
        absent=dict(said["absent"]),
        refused={
            id: kinds.get(error["kind"], InputError)(error["reason"], key=error["key"], fix=error["fix"])
            for id, error in said["refused"].items()
        },
        lacks=tuple(said["lacks"]),
        models=tuple(said["models"]),
    )
