"""What is done on a machine of a cluster: tell which cases it can measure, and measure. Plain data in, plain data out.

Whoever places the work calls these in a process on that machine; measuring itself is done in fresh processes below it,
as on a single machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError, SubjectError
from speechmeter.core.machine import available_cores, host_name, kib_field
from speechmeter.core.outputs import Keep, SpeechFiles, TraceOptions
from speechmeter.core.types import Case, Environment, Limits
from speechmeter.engine.measure import Outcome
from speechmeter.launch.booking import Told, measured_at
from speechmeter.launch.git_state import git_state
from speechmeter.launch.job import outcome_from_json, outcome_to_json
from speechmeter.launch.parcels import pack
from speechmeter.launch.places import SubprocessPlace
from speechmeter.launch.preflight import in_short, obstacle

_PR_SET_PDEATHSIG = 1
PINNED = "pinned"
"""The fact of an environment that says which GPU of its host the process was given."""


def survey(question: Mapping[str, Any]) -> dict[str, Any]:
    """What this machine is, and for each case that it cannot measure why: `absent` or `refused`, by case id."""
    _settle(question)
    absent: dict[str, str] = {}
    refused: dict[str, str] = {}
    for data in question["cases"]:
        case = Case.from_json(data)
        try:
            reason = obstacle(case, cuda=question["gpus"])
        except InputError as error:  # a model that is wrong among others that are right is only left out
            (absent if isinstance(error, SubjectError) else refused)[case.id] = in_short(error)
            continue
        if reason is not None:
            absent[case.id] = reason
    return {
        "version": version("speechmeter"),
        "host": host_name(),
        "cores": list(available_cores()),
        "memory_bytes": kib_field("/proc/meminfo", "MemTotal"),
        "absent": absent,
        "refused": refused,
    }


class Bench:
    """A device of this machine, held for as long as the process lives: one measurement at a time."""

    def __init__(self, setting: Mapping[str, Any]) -> None:
        _settle(setting)
        _end_with_parent()
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, setting["cores"])
        self._limits = Limits(**setting["limits"])
        self._speech = None if setting["speech"] is None else SpeechFiles(**setting["speech"])
        self._trace = TraceOptions(**setting["trace"])
        self._git = git_state()

    def measure(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Measure one round of a case; the answer holds what `told` reads, and the files that were left."""
        case = Case.from_json(order["case"])
        with tempfile.TemporaryDirectory(prefix="speechmeter-") as folder:
            place = SubprocessPlace(self._limits, Keep(folder=Path(folder), speech=self._speech, trace=self._trace))
            found = measured_at(place, case, order["extent"], self._git, lambda phase: None)
            files, left_out = pack(Path(folder))
        outcome = outcome_to_json(_pinned(found.outcome, case))
        outcome["warnings"] += left_out
        return {**asdict(found), "outcome": outcome, "files": files}


def told(answer: Mapping[str, Any]) -> Told:
    """What a bench's answer says about the measurement."""
    plain = {key: answer[key] for key in ("host", "started", "wall_s", "git")}
    return Told(outcome=outcome_from_json(answer["outcome"]), **plain)


def _settle(setting: Mapping[str, Any]) -> None:
    """The driver's folder where this machine has it, so that names of files mean the same; else an empty one."""
    os.environ.update(setting["environ"])
    folder = Path(setting["folder"])
    os.chdir(folder if folder.is_dir() else tempfile.mkdtemp(prefix="speechmeter-empty-"))


def _end_with_parent() -> None:
    """Be killed with the process that keeps this node: Ray's workers notice its end seconds later, still measuring."""
    with contextlib.suppress(OSError, AttributeError):  # absent outside Linux
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _pinned(outcome: Outcome, case: Case) -> Outcome:
    device = os.environ.get("CUDA_VISIBLE_DEVICES")
    if outcome.environment is None or not device or not case.device.is_cuda:
        return outcome
    facts = {**outcome.environment.facts, PINNED: device}
    return Outcome(
        status=outcome.status,
        reason=outcome.reason,
        measurements=outcome.measurements,
        warnings=outcome.warnings,
        environment=Environment(facts=facts, state=outcome.environment.state),
    )
