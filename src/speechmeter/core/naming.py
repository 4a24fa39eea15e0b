"""What tables call a model: the name that a user gave it, or one made from its source."""

from __future__ import annotations

from speechmeter.core.errors import PlanError


def default_name(load: str) -> str:
    """`python:dir/mine.py:make` → `mine:make`, `log-mel` → `log-mel`."""
    plugin, _, source = load.partition(":")
    if not source:
        return plugin
    path, colon, factory = source.partition(":")
    stem = path.rstrip("/").rpartition("/")[2]
    return stem.removesuffix(".py").removesuffix(".json") + colon + factory


def split_name(text: str, where: str) -> tuple[str | None, str]:
    """(name, load) of `NAME=LOAD`, as `--model` takes it; the name is None where `text` is a load alone.

    A name comes before the plug-in, so that an equals sign behind the first colon is part of the source:
    `transformers:a=b` has no name. Raises PlanError for an empty name or load.
    """
    before = text.partition(":")[0]
    name, equals, _ = before.partition("=")
    if not equals:
        return None, text
    name, load = name.strip(), text.partition("=")[2].strip()
    if not name or not load:
        raise PlanError(f"{text!r} is not NAME=MODEL", where=where, fix="for example --model mine=python:mine.py:make")
    return name, load


def joined_name(name: str, load: str) -> str | None:
    """`NAME=LOAD` for a model of this name; None for a name that `split_name` would not read back."""
    plain = bool(name) and name == name.strip() and not set(":=") & set(name)
    return f"{name}={load}" if plain else None
