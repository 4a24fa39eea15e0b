"""Charts: from the records of a source to Vega-Lite specifications. Drawing them is an extra; tables do without."""

from __future__ import annotations

from importlib.util import find_spec

from speechmeter.core.errors import InputError

_NEEDED = {"altair": "altair", "vl_convert": "vl-convert-python"}


def missing() -> list[str]:
    """The packages for charts that are not installed, by the names that pip takes."""
    return [package for module, package in _NEEDED.items() if find_spec(module) is None]


def check_installed() -> None:
    """Raise InputError naming what is missing and how to get it."""
    if absent := missing():
        raise InputError(f"charts need {' and '.join(absent)}", fix="pip install 'speechmeter[report]'")
