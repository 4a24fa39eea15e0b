"""What runs on a machine of a cluster: a survey of the cases it can measure, measuring, and the transfer of artifacts.

Questions, orders and answers are plain data. The cluster calls these in a process on that machine; measuring itself
happens in fresh processes below it, as on a single machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from time import perf_counter
from typing import Any

from speechmeter.core.errors import InputError, SubjectError
from speechmeter.core.machine import available_cores, host_name, kib_field
from speechmeter.core.outputs import Keep, SpeechFiles, TraceOptions
from speechmeter.core.types import Case, Environment, Limits
from speechmeter.launch.child import outcome_from_json, outcome_to_json
from speechmeter.launch.executors import SubprocessExecutor
from speechmeter.launch.git_state import git_state
from speechmeter.launch.preflight import obstacle, summary
from speechmeter.launch.recorder import Measured, measure_round
from speechmeter.launch.share import Share

_PR_SET_PDEATHSIG = 1
PINNED = "pinned"
"""The fact of an environment that says which GPU of its host the process was given."""
MOST_BYTES = 64 * 2**20
"""The most that one measurement sends back besides its figures."""


def survey(question: Mapping[str, Any]) -> dict[str, Any]:
    """What this machine is, and why it cannot measure some cases: `absent` and `refused`, by case id."""
    _settle(question)
    absent: dict[str, str] = {}
    refused: dict[str, str] = {}
    for data in question["cases"]:
        case = Case.from_json(data)
        try:
            reason = obstacle(case, cuda=question["gpus"])
        except InputError as error:  # a model that is wrong among others that are right is only left out
            (absent if isinstance(error, SubjectError) else refused)[case.id] = summary(error)
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


class Worker:
    """A device of this machine, held for as long as the process lives: one measurement at a time."""

    def __init__(self, setting: Mapping[str, Any]) -> None:
        _settle(setting)
        with contextlib.suppress(OSError, AttributeError):  # absent outside Linux
            # Be killed with the process that keeps this node: Ray's workers notice its end seconds later, and measure
            # until then.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, setting["cores"])
        self._limits = Limits(**setting["limits"])
        self._speech = None if setting["speech"] is None else SpeechFiles(**setting["speech"])
        self._trace = TraceOptions(**setting["trace"])
        self._git = git_state()

    def measure(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Measure one round of a case; the answer is for `measured_from`, and has the files that were written."""
        case = Case.from_json(order["case"])
        with tempfile.TemporaryDirectory(prefix="speechmeter-") as folder:
            keep = Keep(folder=Path(folder), speech=self._speech, trace=self._trace)
            executor = SubprocessExecutor(self._limits, keep)
            found = measure_round(executor, case, order["extent"], self._git, order["round"])
            files, left_out = pack(Path(folder))
        outcome = found.outcome
        gpu = os.environ.get("CUDA_VISIBLE_DEVICES")
        if outcome.environment is not None and gpu and case.device.is_cuda:
            facts = {**outcome.environment.facts, PINNED: gpu}
            outcome = replace(outcome, environment=Environment(facts=facts, state=outcome.environment.state))
        outcome = replace(outcome, warnings=(*outcome.warnings, *left_out))
        return {**asdict(found), "outcome": outcome_to_json(outcome), "files": files}

    def clock(self) -> float:
        """The clock of this machine, which its clients count on."""
        return perf_counter()

    def start_client(self, order: Mapping[str, Any]) -> None:
        """Start a client process of a round that several machines hold together."""
        case = Case.from_json(order["case"])
        self._folder = tempfile.TemporaryDirectory(prefix="speechmeter-client-")
        share = Share(index=order["index"], of=order["of"], folder=Path(self._folder.name))
        executor = SubprocessExecutor(self._limits, Keep())
        self._client = executor.client(case, share, lambda phase: None, order["round"])

    def client_is_ready(self) -> bool:
        """Whether it waits for the common start, or has ended."""
        return self._client.is_ready()

    def begin(self, moment_s: float) -> None:
        """Tell it to begin at that moment of this machine's clock."""
        self._client.begin(moment_s)

    def client_result(self) -> dict[str, Any]:
        """What it measured; waits for its end."""
        found = self._client.result()
        files, left_out = pack(self._client.folder)
        self._client.stop()
        self._folder.cleanup()
        outcome = replace(found.outcome, warnings=(*found.outcome.warnings, *left_out))
        return {"host": host_name(), "outcome": outcome_to_json(outcome), "files": files}


def measured_from(answer: Mapping[str, Any]) -> Measured:
    """What the answer of a worker says about the measurement."""
    plain = {key: answer[key] for key in ("host", "started", "wall_s", "git")}
    return Measured(outcome=outcome_from_json(answer["outcome"]), **plain)


def _settle(setting: Mapping[str, Any]) -> None:
    """Go to the driver's folder where this machine has it, so that names of files mean the same; else an empty one."""
    os.environ.update(setting["environ"])
    folder = Path(setting["folder"])
    os.chdir(folder if folder.is_dir() else tempfile.mkdtemp(prefix="speechmeter-empty-"))


def pack(folder: Path, most_bytes: int = MOST_BYTES) -> tuple[dict[str, bytes], list[str]]:
    """The plain files below a folder by their names in it, small ones first, and what was left out, a line each."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    packed: dict[str, bytes] = {}
    left_out, room = [], most_bytes
    for path in sorted(files, key=lambda path: (path.stat().st_size, path)):
        name, size = path.relative_to(folder).as_posix(), path.stat().st_size
        if size > room:
            left_out.append(
                f"{name} ({size / 2**20:.0f} MiB) was not transferred: the limit is {most_bytes / 2**20:.0f} MiB"
            )
            continue
        packed[name] = path.read_bytes()
        room -= size
    return packed, left_out


def unpack(packed: Mapping[str, bytes], folder: Path) -> list[str]:
    """Write the files below a folder; those whose names or links lead out of it are refused and named."""
    refused = []
    for name, content in packed.items():
        target = folder / name
        pure = PurePosixPath(name)
        plain = bool(pure.parts) and not pure.is_absolute() and "\0" not in name
        if not plain or target.resolve() != folder.resolve() / pure:
            refused.append(f"{name!r} was not written, because its path is outside the run directory")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return refused
