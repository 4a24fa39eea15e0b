"""What this machine can measure: findings of `doctor`, and the plug-ins with their versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from speechmeter.core import plugins
from speechmeter.core.errors import InputError
from speechmeter.launch.checkup import checkup

__all__ = ["Installed", "Model", "checkup", "installed"]


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model that a plan can name. `missing` says what to install; `error` why its plug-in cannot be loaded."""

    name: str
    version: str = ""
    missing: str = ""
    summary: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Installed:
    """All plug-ins by name."""

    models: Sequence[Model]
    workloads: Sequence[str]
    meters: Sequence[str]


def installed() -> Installed:
    """What can be measured here, and what is missing."""
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
    return Installed(models=models, workloads=plugins.names(plugins.WORKLOADS), meters=plugins.names(plugins.METERS))
