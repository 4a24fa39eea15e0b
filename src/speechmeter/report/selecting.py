"""A run, or some of it, by name: `RUN`, `RUN@model=a,threads=2`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.hosts import HOST
from speechmeter.core.types import Record

MODEL = "model"


def parse(text: str) -> tuple[Path, dict[str, str]]:
    """The directory and the filters. Raises InputError for a filter that is none."""
    if Path(text).exists() or "@" not in text:
        return Path(text), {}
    path, _, rest = text.rpartition("@")
    return Path(path), dict(_pair(part, text) for part in rest.split(","))


def fits(record: Record, filters: Mapping[str, str]) -> bool:
    """Whether a record's model and axes are those asked for."""
    labels = {MODEL: record.case.subject.name, HOST: record.host, **record.case.axes}
    return all(key in labels and _same(labels[key], value) for key, value in filters.items())


def nothing_fits(text: str, records: Sequence[Record]) -> InputError:
    """What to raise where a selection is empty."""
    models = sorted({record.case.subject.name for record in records})
    return InputError(f"{text} holds no records", where=text, fix=f"it has the models {', '.join(models) or 'none'}")


def _pair(part: str, text: str) -> tuple[str, str]:
    key, equals, value = part.partition("=")
    if not equals:
        raise InputError(f"{part!r} is not key=value", where=text, fix="for example RUN@model=wav2vec2,batch=1")
    return key.strip(), value.strip()


def _same(actual: Any, wanted: str) -> bool:
    import yaml

    return str(actual) == wanted or bool(actual == yaml.safe_load(wanted))
