"""Environments of other interpreters, made in a moment: nothing is installed in them but what a test puts there."""

from __future__ import annotations

import stat
import sys
import venv
from pathlib import Path


def environment(folder: Path) -> Path:
    """The interpreter of a new environment that is empty: it has no numpy, and not this package."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    return folder / "bin" / "python"


def site_of(python: Path) -> Path:
    """The folder in which packages of an environment are installed."""
    return next((python.parents[1] / "lib").glob("python*")) / "site-packages"


def install(python: Path, name: str, source: str, version: str = "1.0") -> None:
    """A package of one module, as pip would leave it."""
    site = site_of(python)
    (site / f"{name}.py").write_text(source)
    metadata = site / f"{name}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def old_python(path: Path, version: tuple[int, int, int]) -> Path:
    """An interpreter that says it is of another version, and then does what it is told."""
    claims = f"import sys; sys.version_info = {(*version, 'final', 0)}; code = sys.argv[2]; sys.argv[:3] = ['-c']; "
    return script(path, f'exec {sys.executable} -c "{claims}exec(code)" "$@"\n')


def script(path: Path, lines: str) -> Path:
    """A shell script in place of an interpreter."""
    path.write_text(f"#!/bin/sh\n{lines}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
