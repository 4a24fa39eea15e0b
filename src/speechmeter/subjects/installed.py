"""Whether a package is here, found without importing it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from speechmeter.core.protocols import Installed


def installed(*packages: str, extra: str) -> Installed:
    """The first package's version when all are here, else what is missing and how to get it."""
    for package in packages:
        if find_spec(package) is None:
            return Installed(missing=f"{package} is not installed: pip install 'speechmeter[{extra}]'")
    try:
        return Installed(version=f"{packages[0]} {version(packages[0])}")
    except PackageNotFoundError:
        return Installed(version=f"{packages[0]} (version unknown)")
