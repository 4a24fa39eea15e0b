"""Refuses everything that can be refused before anything is written or started."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

from speechmeter.core import plugins
from speechmeter.core.axes import FAST
from speechmeter.core.device import Device
from speechmeter.core.errors import DeviceError, InputError, Origin, PlanError, SubjectError, UnavailableError
from speechmeter.core.machine import available_cores, kib_field
from speechmeter.core.protocols import SOUND, TEXT, LiveSubject, ServedSubject
from speechmeter.core.types import Case, Limits, Skip
from speechmeter.engine.live.hearing import Ear
from speechmeter.engine.live.utterance import utterances_of
from speechmeter.launch.interpreters import Answer

Originate = Callable[[Case, str], Origin | None]
"""Where in the plan a key of a case (its model, input or an axis) was written; None when that is not known."""


def preflight(
    cases: Sequence[Case],
    limits: Limits = Limits(),
    *,
    origin: Originate = lambda case, key: None,
    elsewhere: Mapping[str, Answer] = MappingProxyType({}),
) -> list[Skip]:
    """Raise InputError for bad input; return the cases that are not available here, with the reason.

    A wrong model among right ones is one of these cases: the rest is measured. It is an error if no case is left.
    `elsewhere` has the answers of other interpreters by the name of the model that each of them measures.
    """
    total = kib_field("/proc/meminfo", "MemTotal")
    wanted = (limits.memory_gib or 0) * 2**30
    if cases and total is not None and wanted > total and all(case.device.is_cpu for case in cases):
        raise DeviceError(
            f"this machine has less memory than the limit of {limits.memory_gib:g} GiB: {total / 2**30:.1f} GiB",
            where=origin(cases[0], "limits"),
            key="limits.memory_gib",
            fix="lower it",
        )
    absent: list[Skip] = []
    wrong: SubjectError | None = None
    for case in cases:
        try:
            reason = obstacle(case, origin=origin, elsewhere=elsewhere.get(case.subject.name))
        except SubjectError as error:
            wrong = wrong or error
            reason = summary(error)
        if reason is not None:
            absent.append(Skip(case=case, reason=reason))
    if cases and len(absent) == len(cases):
        if wrong is not None:
            raise wrong
        raise UnavailableError(absent[0].reason, where=origin(cases[0], "models"), fix="see `speechmeter models`")
    return absent


def summary(error: InputError) -> str:
    """What is wrong and how to fix it, without where it is."""
    return "; ".join(filter(None, [error.reason, error.fix]))


def obstacle(
    case: Case,
    *,
    origin: Originate = lambda case, key: None,
    cuda: int | None = None,
    elsewhere: Answer | None = None,
) -> str | None:
    """Why this machine cannot measure the case; None when it can. Raises InputError for bad input.

    `cuda` is the number of CUDA devices to assume, where that is not what this process sees. What an interpreter
    `elsewhere` answered about the model counts where that one measures it.
    """

    def ask(check: Callable[[Case], str | None], key: str) -> str | None:
        """The answer of a check; its errors say where in the plan the key was written."""
        try:
            return check(case)
        except InputError as error:
            where = origin(case, key) or error.where
            raise type(error)(error.reason, where=where, key=error.key, fix=error.fix) from error
        except (Exception, SystemExit) as error:  # of a plug-in: the user gets a reason, not a traceback
            name = case.subject.plugin if key == "models" else case.workload.plugin
            raise PlanError(
                f"the plug-in {name!r} failed when asked about {case.label}: {type(error).__name__}: {error}",
                fix="leave it out, and report the bug to its author",
            ) from error

    ask(partial(_check_device, count=cuda_devices() if cuda is None else cuda), "device")
    ask(_check_cores, "cores")
    if elsewhere is not None:
        reason = ask(elsewhere.about, "models") or ask(elsewhere.about_input, case.workload.plugin)
    else:
        ask(_check_torch, "device")
        subject = plugins.subject
        reason = ask(lambda case: subject(case.subject.plugin).installed().missing, "models")
        reason = reason or ask(lambda case: subject(case.subject.plugin).unavailable(case), "models")
        if reason is None and case.live is not None:
            reason = ask(not_live, "pace")
        if reason is None:
            ask(lambda case: subject(case.subject.plugin).check(case), "models")
    if reason is None:
        ask(plugins.check_input, "models")
        ask(_check_clients, "clients")
        ask(lambda case: plugins.workload(case.workload.plugin).check(case), case.workload.plugin)
    return reason


def model_obstacle(case: Case) -> str | None:
    """Why this interpreter cannot measure the model of a case, whose device and input were checked by the launcher's.

    None when it can. Raises InputError for a model that cannot exist.
    """
    _check_torch(case)
    subject = plugins.subject(case.subject.plugin)
    reason = subject.installed().missing or subject.unavailable(case)
    if reason is None and case.live is not None:
        reason = not_live(case)
    if reason is None:
        subject.check(case)
    return reason


def not_live(case: Case) -> str | None:
    """Why a live case cannot be measured here; None when it can. Raises SubjectError for a model that is never live."""
    subject = plugins.subject(case.subject.plugin)
    fed = plugins.fed_by(case).kinds
    if fed and not {SOUND, TEXT} & set(fed):
        raise InputError(
            f"a live case is fed audio or text, but `{case.workload.plugin}:` provides {' or '.join(fed)}",
            key="pace",
            fix="use `audio`, `data` or `text`, or remove `pace`",
        )
    _check_text_pace(case, fed)
    if fed == (TEXT,) and (not subject.takes or TEXT in subject.takes):
        next(utterances_of(plugins.workload(case.workload.plugin).batches(case)), None)  # refuses token ids
    if isinstance(subject, LiveSubject):
        return subject.not_live(case) or _deaf(case)
    names = [name for name in plugins.names(plugins.SUBJECTS) if _is_live(name)]
    raise SubjectError(
        f"{case.subject.name} takes whole recordings and cannot be measured live",
        key="pace",
        fix=f"use a model that can ({', '.join(names)}), or `pace: offline`",
    )


def _deaf(case: Case) -> str | None:
    """Why the recogniser that is to hear the speech cannot; None when it can, or when there is none."""
    ear = Ear.of(case)
    if ear is None:
        return None
    listener = plugins.subject(ear.case.subject.plugin)
    if listener.takes and SOUND not in listener.takes:
        raise SubjectError(
            f"{ear.case.subject.name} does not take audio as input", key="heard_by", fix="use a recogniser"
        )
    reason = listener.installed().missing or listener.unavailable(ear.case)
    if reason is None:
        listener.check(ear.case)
    return None if reason is None else f"heard_by: {reason}"


def _check_text_pace(case: Case, fed: Sequence[str]) -> None:
    if case.axes.text_pace is None:
        return
    if SOUND in fed:
        raise InputError("`text_pace` applies to text", key="text_pace", fix="remove it, or use `text: {lines: FILE}`")
    if case.axes.pace == FAST:
        raise InputError(
            "`text_pace` feeds the text bit by bit, but `pace: fast` sends it at once",
            key="text_pace",
            fix="use `pace: realtime`",
        )


def _check_clients(case: Case) -> None:
    if case.live is None or case.live.clients == 1:
        return
    subject = plugins.subject(case.subject.plugin)
    if not isinstance(subject, ServedSubject):
        raise SubjectError(
            f"{case.subject.name} runs in the process that measures, so it cannot have {case.live.clients} clients",
            key="clients",
            fix="remove `clients`, or measure a server",
        )
    subject.check_clients(case)


def _is_live(name: str) -> bool:
    try:
        return isinstance(plugins.subject(name), LiveSubject)
    except InputError:  # a broken plug-in is not what this is about
        return False


def _check_device(case: Case, count: int) -> None:
    device = Device.parse(str(case.device))
    if device.is_cpu:
        return
    if count == 0:
        raise DeviceError("there is no CUDA device on this machine", key="device", fix="use `device: cpu`")
    if (device.index or 0) >= count:
        last = f" to `device: cuda:{count - 1}`" if count > 1 else ""
        raise DeviceError(
            f"{device} does not exist: this machine has {count} CUDA device{'s' if count > 1 else ''}",
            key="device",
            fix=f"use `device: cuda:0`{last}",
        )


def _check_torch(case: Case) -> None:
    if case.device.is_cpu:
        return
    try:
        torch = version("torch")
    except PackageNotFoundError:
        return
    if torch.endswith("+cpu"):
        raise UnavailableError(f"torch {torch} is built without CUDA", fix="install a CUDA build of torch")


def _check_cores(case: Case) -> None:
    here = len(available_cores())
    if case.axes.cores > here:
        raise DeviceError(
            f"{case.axes.cores} cores were requested, and {here} are available here",
            key="cores",
            fix=f"use at most {here}",
        )


def check_baseline(python: str) -> None:
    """Raise InputError if the other interpreter does not start or has no Speechmeter."""
    # not from the working directory, which may hold a `speechmeter.py` of a stranger
    code = "import sys; sys.path[:] = filter(None, sys.path); import speechmeter; print(speechmeter.__version__)"
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    fix = "use the path of a Python interpreter"
    try:
        answer = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, timeout=60, env=environ, check=False
        )
    except OSError as error:
        raise InputError(f"cannot start {python}: {error.strerror}", key="baseline_python", fix=fix) from error
    except subprocess.TimeoutExpired:
        raise InputError(f"{python} does not answer within 60 s", key="baseline_python", fix=fix) from None
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(
            f"{python} cannot import Speechmeter: {last}",
            key="baseline_python",
            fix="install Speechmeter in that environment",
        )


@cache
def cuda_devices() -> int:
    """How many CUDA devices the driver shows; 0 without a driver. Asks the driver itself, not torch."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value
