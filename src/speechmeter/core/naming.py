"""What tables call a model that was given no name."""

from __future__ import annotations


def default_name(load: str) -> str:
    """`python:dir/mine.py:make` → `mine:make`, `log-mel` → `log-mel`."""
    plugin, _, source = load.partition(":")
    if not source:
        return plugin
    path, colon, factory = source.partition(":")
    stem = path.rstrip("/").rpartition("/")[2]
    return stem.removesuffix(".py").removesuffix(".json") + colon + factory
