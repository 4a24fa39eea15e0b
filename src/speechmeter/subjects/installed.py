"""Whether a package is here, found without importing it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from speechmeter.core.protocols import Installed


def installed(*packages: str, extra: str, distribution: str | None = None) -> Installed:
    """The first package's version when all are here, else what is missing and how to get it.

    `distribution` is the name it is installed by, where that is another: a package of the same name by someone else
    does not count then.
    """
    for package in packages:
        if find_spec(package) is None:
            return _missing(package, extra)
    try:
        return Installed(version=f"{distribution or packages[0]} {version(distribution or packages[0])}")
    except PackageNotFoundError:
        return _missing(distribution, extra) if distribution else Installed(version=f"{packages[0]} (version unknown)")


def _missing(name: str, extra: str) -> Installed:
    return Installed(missing=f"{name} is not installed: pip install 'speechmeter[{extra}]'")
