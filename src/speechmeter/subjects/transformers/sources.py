"""What a source names, found without importing transformers: a directory, a config file, an architecture, a hub id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from speechmeter.core.bounded import MIB, read_text
from speechmeter.core.errors import SubjectError
from speechmeter.core.plugins import nearest
from speechmeter.subjects.hub import ask_hub, cached_file, may_be_hub_id
from speechmeter.subjects.transformers.catalogue import model_types


def is_architecture(source: str) -> bool:
    """Whether the source is a model type that transformers defines, such as `wav2vec2` or `whisper`."""
    return source in model_types()


def is_hub_id(source: str) -> bool:
    """Whether the source can only be had from the hub or its cache."""
    return not Path(source).exists() and not is_architecture(source)


def has_weights(source: str) -> bool:
    """Whether there are weights to load; a config file, an architecture and a bare directory have none."""
    path = Path(source)
    if path.is_dir():
        return any(path.glob("*.safetensors")) or any(path.glob("pytorch_model*.bin"))
    return is_hub_id(source)


def read_config(source: str) -> Mapping[str, Any]:
    """What is known of the configuration: its `model_type` at least, or nothing for a hub id that is not here.

    Raises SubjectError for a source that does not exist or needs code of its own.
    """
    if Path(source).exists():
        return _local_config(Path(source))
    if is_architecture(source):
        return {"model_type": source}
    return _hub_config(source)


def _local_config(path: Path) -> Mapping[str, Any]:
    config = path / "config.json" if path.is_dir() else path
    if not config.is_file():
        raise SubjectError(f"{str(path)!r} holds no config.json", fix="name a directory saved by save_pretrained")
    try:
        data = json.loads(read_text(config, 16 * MIB))
    except (ValueError, OSError, RecursionError) as error:
        raise SubjectError(f"{str(config)!r} is not a JSON configuration: {error}", fix="name a config.json") from error
    if not isinstance(data, dict) or "model_type" not in data:
        raise SubjectError(f"{str(config)!r} names no model_type", fix="name a transformers configuration")
    if "auto_map" in data:
        raise SubjectError(f"{str(path)!r} needs remote code, which is never run", fix="use a built-in architecture")
    return data


def _hub_config(source: str) -> Mapping[str, Any]:
    if not may_be_hub_id(source):
        is_word = "/" not in source and not source.startswith((".", "~")) and not source.endswith(".json")
        raise SubjectError(
            f"transformers:{source}: there is no such directory, file or architecture",
            fix=nearest(source, sorted(model_types())) if is_word else "check the path",
        )
    cached = cached_file(source, "config.json")
    if cached is not None:
        return _local_config(cached)
    ask_hub("transformers", source)
    return {}
