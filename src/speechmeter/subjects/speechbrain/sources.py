"""What a source of the SpeechBrain subject names: its file, its interface and their parts. Needs no heavy package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from speechmeter.core.errors import InputError, SubjectError
from speechmeter.core.files import MIB, read_text
from speechmeter.core.plugins import nearest
from speechmeter.core.types import Case
from speechmeter.subjects.hub import cached_file, may_be_hub_id

TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "EncoderASR": ("encoder",),
        "EncoderDecoderASR": ("encoder", "decoder"),
        "EndToEndSLU": ("slu_enc", "beam_searcher"),
        "EncoderClassifier": ("compute_features", "mean_var_norm", "embedding_model", "classifier"),
        "SpeakerRecognition": ("compute_features", "mean_var_norm", "embedding_model"),
        "VAD": ("compute_features", "mean_var_norm", "cnn", "rnn", "dnn"),
        "SepformerSeparation": ("encoder", "masknet", "decoder"),
        "SpectralMaskEnhancement": ("enhance_model",),
        "SNREstimator": ("encoder", "encoder_out"),
    }
)
"""The interfaces that are known, and what each looks for under `modules:`."""
HYPERPARAMS = "hyperparams.yaml"
"""The file that a directory of a model has."""


def must_be_downloaded(source: str) -> bool:
    """Whether a source can only be a model of the hub, and the local cache does not have it."""
    return not Path(source).exists() and may_be_hub_id(source) and cached_file(source, HYPERPARAMS) is None


def hyperparams_file(source: str) -> Path:
    """The YAML file that a source names: itself, the one in a directory, or the one of a hub id in the local cache.

    Raises SubjectError when there is none.
    """
    path = Path(source)
    file = path / HYPERPARAMS if path.is_dir() else path
    if source and file.is_file():
        return file
    cached = cached_file(source, HYPERPARAMS) if may_be_hub_id(source) and not path.exists() else None
    if cached is None:
        raise SubjectError(f"{source!r} contains no {HYPERPARAMS}", fix="use a directory of a SpeechBrain model")
    return cached


def interface_type(case: Case) -> str:
    """The interface that is asked for, else the one that the directory names. SubjectError when there is none."""
    file = hyperparams_file(case.subject.source)
    found = case.subject.options.get("type") or _scalar(_nodes(file), "type") or _published_type(file.parent)
    if not found:
        raise SubjectError(
            f"{str(file)!r} does not name its interface",
            fix=f"add `type` to the model or to the file: {', '.join(TYPES)}",
        )
    if found not in TYPES:
        raise SubjectError(f"there is no interface {found!r}", key="type", fix=nearest(str(found), list(TYPES)))
    return str(found)


def recogniser_directory(file: Path, named: str) -> str:
    """Where the recogniser is that an EndToEndSLU builds on; its path counts from the file or from here."""
    for path in (file.parent / named, Path(named)):
        if (path / HYPERPARAMS).is_file():
            return str(path)
    raise SubjectError(
        f"{str(file)!r} needs the recogniser {named!r}, which is not a local directory with {HYPERPARAMS}",
        fix="put it there, or set asr_model_source to its folder",
    )


def check_file(case: Case) -> None:
    """Raise SubjectError where file, interface or modules are missing. Nothing that the file names is built."""
    file = hyperparams_file(case.subject.source)
    kind, nodes = interface_type(case), _nodes(file)
    if "modules" not in nodes:
        raise SubjectError(
            f"{str(file)!r} has no section `modules`",
            fix="use the hyperparams.yaml for inference, not the one for training",
        )
    modules = nodes["modules"]
    if isinstance(modules, yaml.MappingNode):
        there = {key.value for key, _ in modules.value}
        missing = [name for name in TYPES[kind] if name not in there]
        if missing:
            raise SubjectError(
                f"{str(file)!r} has no {', '.join(missing)} in its section `modules`, which {kind} needs",
                fix="use another `type`, or add them",
            )
    recogniser = case.subject.options.get("overrides", {}).get("asr_model_source") or _scalar(nodes, "asr_model_source")
    if kind == "EndToEndSLU" and recogniser:
        recogniser_directory(file, recogniser)


def _nodes(file: Path) -> dict[str, yaml.Node]:
    """The top level of the file, as syntax: tags are not followed, so nothing is built."""
    try:
        tree = yaml.compose(read_text(file, MIB), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        raise SubjectError(f"{str(file)!r} is not YAML: {error}", fix="correct the file") from error
    if not isinstance(tree, yaml.MappingNode):
        raise SubjectError(f"{str(file)!r} does not contain a mapping", fix="use a hyperparams.yaml")
    return {str(key.value): value for key, value in tree.value}


def _scalar(nodes: Mapping[str, yaml.Node], key: str) -> str | None:
    """A plain value; one that refers to others is only known once the file is loaded."""
    node = nodes.get(key)
    plain = isinstance(node, yaml.ScalarNode) and not node.tag.startswith("!")
    return str(node.value) if plain and node is not None else None


def _published_type(directory: Path) -> Any:
    """What the `config.json` of a published SpeechBrain model says."""
    try:
        data = json.loads(read_text(directory / "config.json", MIB))
    except (InputError, OSError, ValueError, RecursionError):
        return None
    return data.get("speechbrain_interface") if isinstance(data, dict) else None
