"""Samples of speech inside the page, to be listened to without a network: a few, small, and only where asked for."""

from __future__ import annotations

import re
from base64 import b64encode
from pathlib import Path
from typing import Any

from speechmeter.report.charts.conversations import first_round
from speechmeter.report.live import Groups, live_names
from speechmeter.report.sources import Source
from speechmeter.report.speech import speaking_groups
from speechmeter.store.artifacts import artifact, artifacts_of

MOST_BYTES = 400_000
"""Of a sample; longer ones are left out."""
MOST_SAMPLES = 20
"""Of each system."""
_KIND = ".flac"


def players(source: Source, count: int) -> list[dict[str, Any]]:
    """The first `count` samples of each system that speaks: `{name, samples: [{title, text, sound}]}`."""
    groups = speaking_groups(source.records) if count and source.artifacts is not None else {}
    names = live_names(groups)
    made = ({"name": names[key], "samples": _samples(source, groups, key, count)} for key in groups)
    return [one for one in made if one["samples"]]


def _samples(source: Source, groups: Groups, key: str, count: int) -> list[dict[str, str]]:
    texts = {
        _file_name(name): talk.exchange.text or "" for name, talk in first_round(source, groups, key).items()
    }  # fmt: skip
    return [
        {"title": path.stem, "text": texts.get(path.name, ""), "sound": _embedded(path)}
        for path in _files(source, groups, key)[: min(count, MOST_SAMPLES)]
    ]


def _files(source: Source, groups: Groups, key: str) -> list[Path]:
    """The sound files of a case, in the order of their texts."""
    assert source.artifacts is not None
    for record in groups[key]:
        folder = artifacts_of(source.artifacts, record)
        found = [artifact(source.artifacts, record, path.name) for path in sorted(folder.glob(f"*{_KIND}"), key=_order)]
        files = [path for path in found if path is not None and path.stat().st_size <= MOST_BYTES]
        if files:
            return files
    return []


def _order(path: Path) -> tuple[int, str]:
    number = re.search(r"\d+$", path.stem)
    return (int(number[0]) if number else 0, path.stem)


def _file_name(name: str) -> str:
    return f"{name}{_KIND}"


def _embedded(path: Path) -> str:
    return f"data:audio/flac;base64,{b64encode(path.read_bytes()).decode()}"
