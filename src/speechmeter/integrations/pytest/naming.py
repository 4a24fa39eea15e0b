"""From a factory in a test file to a model that fresh processes can load: `python:tests/test_speed.py:encoder`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from speechmeter.core.errors import SubjectError
from speechmeter.integrations.pytest.settings import STARTING_PATH

_FIX = "define it at the top level of a file, so that a fresh process can import it"


def load_of(subject: str | Callable[[], Any], test: pytest.FixtureRequest, root: Path) -> str:
    """What a plan would call it: a factory, the name of one in the test's file, or a model as plans name it."""
    factory: Any = subject
    if isinstance(subject, str):
        found: Any = getattr(test.module, subject, None) if subject.isidentifier() else None
        if not _is_factory(found):
            return subject
        if not found.__qualname__.isidentifier():
            return f"python:{_module(test.module, root)}:{subject}"
        factory = found
    name = getattr(factory, "__qualname__", type(factory).__name__)
    if not _is_factory(factory) or not name.isidentifier():
        raise SubjectError(f"{name} is not a top-level function of a Python file", fix=_FIX)
    return f"python:{_module(inspect.unwrap(factory), root)}:{factory.__name__}"


def case_name(test: pytest.FixtureRequest, root: Path, given: str | None = None) -> str:
    """The test by its file, class and parameters, and the given name: what its records are called in every session."""
    classes = test.cls.__qualname__.split(".") if test.cls else []
    return "::".join([_relative(test.path, root), *classes, test.node.name, *([given] if given else [])])


def _is_factory(found: Any) -> bool:
    return inspect.isfunction(found) or inspect.isclass(found)


def _module(holder: Any, root: Path) -> str:
    """The file from the root folder, or the dotted name in a package that fresh processes find from there."""
    try:
        source = inspect.getsourcefile(holder)
    except TypeError:  # built in
        source = None
    if source is None:
        raise SubjectError(f"{holder.__name__} has no source file", fix=_FIX)
    path = Path(source).resolve()
    package: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").is_file():
        package.insert(0, folder.name)
        folder = folder.parent
    found = package and (folder == root.resolve() or folder in STARTING_PATH)
    return ".".join([*package, path.stem]) if found else _relative(path, root)


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
