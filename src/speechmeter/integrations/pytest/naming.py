"""From a factory in a test file to a model that fresh processes can load: `python:tests/test_speed.py:encoder`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from speechmeter.core.errors import SubjectError

_WAY_OUT = "define it at the top level of a file, so that a fresh process can import it"


def load_of(subject: str | Callable[[], Any], test: pytest.FixtureRequest, root: Path) -> str:
    """What a plan would call it: a factory, the name of one in the test's file, or a model as plans name it."""
    if isinstance(subject, str):
        found = getattr(test.module, subject, None) if subject.isidentifier() else None
        return f"python:{_place(found, root)}:{subject}" if inspect.isfunction(found) else subject
    name = getattr(subject, "__qualname__", type(subject).__name__)
    if not (inspect.isfunction(subject) or inspect.isclass(subject)) or not name.isidentifier():
        raise SubjectError(f"{name} is no function of a file", fix=_WAY_OUT)
    return f"python:{_place(subject, root)}:{name}"


def case_name(test: pytest.FixtureRequest, root: Path, given: str | None = None) -> str:
    """The test by its file, class and parameters, and the given name: what its records are called in every session."""
    classes = test.cls.__qualname__.split(".") if test.cls else []
    return "::".join([_relative(test.path, root), *classes, test.node.name, *([given] if given else [])])


def _place(factory: Any, root: Path) -> str:
    """The file from the root folder; the dotted name where it stands in a package, whose imports may be relative."""
    source = inspect.getsourcefile(factory)
    if source is None:
        raise SubjectError(f"{factory.__qualname__} has no source file", fix=_WAY_OUT)
    path = Path(source).resolve()
    package: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").is_file():
        package.insert(0, folder.name)
        folder = folder.parent
    return ".".join([*package, path.stem]) if package else _relative(path, root)


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
