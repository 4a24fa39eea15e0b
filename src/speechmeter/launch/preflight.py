"""Everything that can be refused is refused here, before anything is written or started."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from speechmeter.core import plugins
from speechmeter.core.device import Device
from speechmeter.core.errors import DeviceError, InputError, PlanError, SubjectError, UnavailableError
from speechmeter.core.machine import available_cores, kib_field
from speechmeter.core.types import Case, Limits, Skip

Place = Callable[[Case, str], str | None]
"""Where in the plan a case's model, audio or axis was asked for; None when nobody knows."""


def preflight(cases: Sequence[Case], limits: Limits = Limits(), *, place: Place = lambda case, key: None) -> list[Skip]:
    """Raise InputError for bad input; return the cases that cannot be had here, with the reason.

    A model that is wrong among others that are right is such a case too: the rest is measured. When not one case is
    left to measure that is an error.
    """
    _check_limits(limits, cases, place)
    absent: list[Skip] = []
    wrong: SubjectError | None = None
    for case in cases:
        try:
            reason = obstacle(case, place=place)
        except SubjectError as error:
            wrong = wrong or error
            reason = in_short(error)
        if reason is not None:
            absent.append(Skip(case=case, reason=reason))
    if cases and len(absent) == len(cases):
        if wrong is not None:
            raise wrong
        raise UnavailableError(absent[0].reason, where=place(cases[0], "models"), fix="see `speechmeter models`")
    return absent


def in_short(error: InputError) -> str:
    """What is wrong and the way out, without the place."""
    return "; ".join(filter(None, [error.reason, error.fix]))


def obstacle(case: Case, *, place: Place = lambda case, key: None, cuda: int | None = None) -> str | None:
    """Why this machine cannot measure the case; None when it can. Raises InputError for bad input.

    `cuda` is how many CUDA devices there are to be, where that is not what this process sees.
    """
    count = cuda_devices() if cuda is None else cuda
    _located(lambda case: _check_device(case, count), case, "device", place)
    _located(_check_cores, case, "cores", place)
    reason = _absence(case)
    if reason is not None:
        return reason
    _located(plugins.subject(case.subject.plugin).check, case, "models", place)
    _located(plugins.check_input, case, "models", place)
    _located(plugins.workload(case.workload.plugin).check, case, case.workload.plugin, place)
    return None


def _located(check: Callable[[Case], None], case: Case, key: str, place: Place) -> None:
    try:
        check(case)
    except InputError as error:
        raise type(error)(error.reason, where=place(case, key) or error.where, fix=error.fix) from error
    except (Exception, SystemExit) as error:
        raise _broken(case, key, error) from error


def _absence(case: Case) -> str | None:
    try:
        subject = plugins.subject(case.subject.plugin)
        return subject.installed().missing or subject.unavailable(case)
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise _broken(case, "models", error) from error


def _broken(case: Case, key: str, error: BaseException) -> PlanError:
    """A plug-in that does something else than answer is no reason to end with a traceback."""
    name = case.subject.plugin if key == "models" else case.workload.plugin
    return PlanError(
        f"the plug-in {name!r} failed when asked about {case.label}: {type(error).__name__}: {error}",
        fix="leave it out, and tell whoever wrote it",
    )


def _check_device(case: Case, count: int) -> None:
    device = Device.parse(str(case.device))
    if device.is_cpu:
        return
    if count == 0:
        raise DeviceError("there is no CUDA device on this machine", fix="use device cpu")
    if (device.index or 0) >= count:
        raise DeviceError(f"{device} does not exist: this machine has {count}", fix=f"use cuda:0 to cuda:{count - 1}")
    if _torch_version().endswith("+cpu"):
        raise UnavailableError(f"torch {_torch_version()} is built without CUDA", fix="install a CUDA build of torch")


def _check_cores(case: Case) -> None:
    here = len(available_cores())
    if case.axes["cores"] > here:
        raise DeviceError(f"cores: {case.axes['cores']} asked, {here} here", fix=f"use at most {here}")


def _check_limits(limits: Limits, cases: Sequence[Case], place: Place) -> None:
    total = kib_field("/proc/meminfo", "MemTotal")
    if limits.memory_gib is None or total is None or not cases:
        return
    only_cpu = all(case.device.is_cpu for case in cases)
    if only_cpu and limits.memory_gib * 2**30 > total:
        raise DeviceError(
            f"limits.memory_gib: {limits.memory_gib:g} asked, {total / 2**30:.1f} GiB here",
            where=place(cases[0], "limits"),
            fix="lower it",
        )


def check_baseline(python: str) -> None:
    """The other interpreter must be there and have Speechmeter. Raises InputError when not."""
    where = "--baseline-python"
    # not from the working directory, which may hold a `speechmeter.py` of a stranger
    code = "import sys; sys.path[:] = filter(None, sys.path); import speechmeter; print(speechmeter.__version__)"
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    try:
        answer = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, timeout=60, env=environ, check=False
        )
    except OSError as error:
        raise InputError(f"{python} cannot be started: {error.strerror}", where=where, fix="name a python") from error
    except subprocess.TimeoutExpired:
        raise InputError(f"{python} does not answer", where=where, fix="name a python") from None
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(f"{python} has no Speechmeter: {last}", where=where, fix="install it in that environment")


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


def _torch_version() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""
