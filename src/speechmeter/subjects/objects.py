"""Models of the calling program: `speechmeter.run({"models": [model]})`. They exist in that process alone."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.protocols import Installed, Prepared
from speechmeter.core.types import Case
from speechmeter.subjects.python import prepare_callable

PLUGIN = "object"
IN_PROCESS = (
    "measured in the calling program: its rounds share one process, so intervals are narrower than over fresh processes"
)
_offered: dict[str, Any] = {}
"""The objects of the runs of this process that are under way, by their names."""


class ObjectSubject:
    """`object:NAME`: a module or callable that a Python program gave to `speechmeter.run`."""

    summary = "a model object of your program; only from Python: speechmeter.run({'models': [model]})"
    axes: tuple[Axis, ...] = ()
    options: tuple[Option, ...] = ()
    runs_code = False
    takes: tuple[str, ...] = ()

    def installed(self) -> Installed:
        """Always installed."""
        return Installed(version=f"Python {sys.version.split()[0]}")

    def check(self, case: Case) -> None:
        """Raise SubjectError for an object that this process does not have."""
        _object(case)

    def unavailable(self, case: Case) -> str | None:
        """Unknown before it runs."""
        return None

    def prepare(self, case: Case, device: str) -> Prepared:
        """The object, as a chain. A module is copied: its mode, device and number format stay as they are."""
        made = _object(case)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(made, torch.nn.Module):
            try:
                made = copy.deepcopy(made)
            except Exception as error:
                raise SubjectError(
                    f"{case.subject.name} cannot be copied: {error}", fix="give a function that calls it"
                ) from error
        prepared = made if isinstance(made, Prepared) else prepare_callable(made, case, device)
        return replace(prepared, notes=(*prepared.notes, IN_PROCESS))


def objects_in(plan: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the plan with names in the place of objects, the objects by name). Raises SubjectError for one name twice."""
    models, objects = plan.get("models"), {}
    entries = [models] if callable(models) or isinstance(models, Prepared) else models
    if not isinstance(entries, list | tuple):
        return dict(plan), {}
    keys: list[Any] = []
    for entry in entries:
        named = dict(entry) if isinstance(entry, Mapping) else {"load": entry}
        made = named.get("load")
        if not (callable(made) or isinstance(made, Prepared)):
            keys.append(entry)
            continue
        name = str(named.get("name") or getattr(made, "__name__", type(made).__name__))
        if name in objects:
            raise SubjectError(
                f"two models are called {name!r}", key="models", fix='give each a name: {"name": "a", "load": model}'
            )
        objects[name] = made
        keys.append({**named, "name": name, "load": f"{PLUGIN}:{name}"})
    return {**plan, "models": keys}, objects


@contextmanager
def offered(objects: Mapping[str, Any]) -> Iterator[None]:
    """Inside, cases can be prepared from these objects."""
    before = dict(_offered)
    _offered.update(objects)
    try:
        yield
    finally:
        _offered.clear()
        _offered.update(before)


def _object(case: Case) -> Any:
    name = case.subject.source
    if name not in _offered:
        raise SubjectError(
            f"the model {name!r} was an object of a Python program, which this process does not have",
            fix="name a function that makes it: python:file.py:function",
        )
    return _offered[name]
