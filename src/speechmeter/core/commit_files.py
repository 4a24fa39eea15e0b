"""Where files of a repository are while another commit of it is measured than the one in the working directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

REPOSITORY, TREE, COMMIT = "SPEECHMETER_REPOSITORY", "SPEECHMETER_TREE", "SPEECHMETER_COMMIT"
"""Variables of a process that measures a commit: the user's repository, a copy of its files at that commit, its id."""


def at_commit(path: Path) -> Path:
    """The same file or folder as the measured commit has it; the path as it is where no commit is measured."""
    top, tree = os.environ.get(REPOSITORY), os.environ.get(TREE)
    if not top or not tree:
        return path
    absolute = path.absolute()
    return Path(tree) / absolute.relative_to(top) if absolute.is_relative_to(top) else absolute


def commit_facts() -> dict[str, str]:
    """The commit that this process measures, as a record names it; nothing where it measures none."""
    commit = os.environ.get(COMMIT)
    return {"git": commit} if commit else {}


def measures_commit() -> bool:
    """Whether this process measures a commit."""
    return bool(os.environ.get(TREE))


@contextmanager
def as_at_commit(environ: Mapping[str, str]) -> Iterator[None]:
    """Inside, files are those of the commit that these variables name."""
    before = {name: os.environ.get(name) for name in environ}
    os.environ.update(environ)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
