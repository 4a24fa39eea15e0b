"""What this machine can measure: findings of `doctor`, and the plug-ins with their versions."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass

from speechmeter.core import plugins
from speechmeter.core.errors import InputError
from speechmeter.launch.answering import Model, installed_models
from speechmeter.launch.checkup import checkup
from speechmeter.launch.interpreters import WHERE, ask, located

__all__ = ["Installed", "Model", "checkup", "installed"]


@dataclass(frozen=True, kw_only=True)
class Installed:
    """All plug-ins by name. `python` is the version of the interpreter that was asked."""

    python: str
    models: Sequence[Model]
    workloads: Sequence[str]
    meters: Sequence[str]


def installed(interpreter: str | None = None) -> Installed:
    """What can be measured by this interpreter, or by another one, and what is missing.

    Raises InputError where the other one cannot be used.
    """
    workloads, meters = plugins.names(plugins.WORKLOADS), plugins.names(plugins.METERS)
    if interpreter is None:
        version = platform.python_version()
        return Installed(python=version, models=installed_models(), workloads=workloads, meters=meters)
    said = ask(located(interpreter), models=True)
    if said.reason:
        raise InputError(said.reason, key="interpreter", fix=None if said.version else WHERE)
    models = [Model(**one) for one in said.models]
    return Installed(python=said.version, models=models, workloads=workloads, meters=meters)
