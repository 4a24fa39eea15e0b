"""What a source names, found without importing transformers: a directory, a config file, an architecture, a hub id."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from speechmeter.core.errors import SubjectError
from speechmeter.core.plugins import nearest
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
        data = json.loads(config.read_text())
    except (ValueError, OSError, RecursionError) as error:
        raise SubjectError(f"{str(config)!r} is not a JSON configuration: {error}", fix="name a config.json") from error
    if not isinstance(data, dict) or "model_type" not in data:
        raise SubjectError(f"{str(config)!r} names no model_type", fix="name a transformers configuration")
    if "auto_map" in data:
        raise SubjectError(f"{str(path)!r} needs remote code, which is never run", fix="use a built-in architecture")
    return data


def _hub_config(source: str) -> Mapping[str, Any]:
    looks_like_path = source.startswith((".", "/", "~")) or source.endswith(".json") or source.count("/") > 1
    if looks_like_path or "/" not in source:
        raise SubjectError(
            f"transformers:{source}: there is no such directory, file or architecture",
            fix=nearest(source, sorted(model_types())) if "/" not in source and not looks_like_path else "check it",
        )
    cached = _cached(source)
    if cached is not None:
        return _local_config(cached)
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        raise SubjectError(
            f"transformers:{source} is not in the local cache, and --offline forbids the hub",
            fix="drop --offline",
        )
    _ask_hub(source)
    return {}


def _cached(source: str) -> Path | None:
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    found = (cache / f"models--{source.replace('/', '--')}").glob("snapshots/*/config.json")
    return next(iter(found), None)


def _ask_hub(source: str) -> None:
    if find_spec("huggingface_hub") is None:
        return
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(source, timeout=5)
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise SubjectError(
            f"transformers:{source} is no local directory, and the hub did not give it ({reason})",
            fix="check the name and the network, or name a directory",
        ) from error
