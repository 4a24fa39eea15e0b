"""Building a SpeechBrain interface from local files alone. Imports torch and SpeechBrain, so only `prepare` does so."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from speechmeter.core.device import Device
from speechmeter.core.types import Case
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects import torchaudio_stand_in as stand_in
from speechmeter.subjects.common import SYNTHETIC
from speechmeter.subjects.hub import download
from speechmeter.subjects.speechbrain.sources import (
    hyperparams_file,
    interface_type,
    must_be_downloaded,
    recogniser_directory,
)

_MODULES = {
    "EncoderASR": "ASR",
    "EncoderDecoderASR": "ASR",
    "EndToEndSLU": "SLU",
    "EncoderClassifier": "classifiers",
    "SpeakerRecognition": "speaker",
    "VAD": "VAD",
    "SepformerSeparation": "separation",
    "SpectralMaskEnhancement": "enhancement",
    "SNREstimator": "metrics",
}
_NAMING_TORCHAUDIO = ("nnet.CNN", "nnet.loss.stoi_loss", "augment.time_domain", "processing.vocal_features")
"""Modules that hyperparams.yaml may name and that import torchaudio: with a stand-in they are imported beforehand."""
_SEARCHERS = {"EncoderDecoderASR": "decoder", "EndToEndSLU": "beam_searcher"}


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """An interface, its modules as they were built (before any compiling), and what a reader must know of them."""

    kind: str
    model: Any
    modules: Mapping[str, Any]
    pinned: bool
    notes: tuple[str, ...]


def load(case: Case, device: str) -> Loaded:
    """Build and fill the interface that the case names; SubjectError when the file or its type is missing."""
    logging.getLogger("speechbrain").setLevel(logging.ERROR)
    source = case.subject.source
    if downloaded := must_be_downloaded(source):
        download(source)
    kind, file, options = interface_type(case), hyperparams_file(source), case.subject.options
    cls, covered = _import(kind)
    random = options.get("weights") == "random"
    hparams, missing = _hyperparams(file, options.get("overrides", {}), random=random)
    recogniser = None
    if kind == "EndToEndSLU":
        directory = recogniser_directory(file, str(hparams["asr_model_source"]))
        recogniser, absent = _hyperparams(hyperparams_file(directory), {}, random=random)
        missing += [f"asr_{name}" for name in absent if name == "encoder"]  # its other parts are not called
    modules = {name: module for name, module in hparams["modules"].items() if module is not None}
    pinned = _pin_length(modules.get(_SEARCHERS.get(kind, "")), missing)
    parsed = Device.parse(device)  # SpeechBrain reads the index from the device's name, and compiles by module
    run_opts: dict[str, Any] = {"device": f"cuda:{parsed.index or 0}" if parsed.is_cuda else device}
    if case.axes.compile:
        networks = [name for name in modules if name != _SEARCHERS.get(kind)]
        run_opts |= {"compile": True, "compile_module_keys": networks}
    if recogniser is None:
        model = cls(modules=hparams["modules"], hparams=hparams, run_opts=run_opts)
    else:
        model = _understanding(cls, hparams, recogniser, run_opts)
        modules["asr_encoder"] = recogniser["modules"]["encoder"]
    notes = [stand_in.NOTE] if covered else []
    if missing:
        weighty = [name for name, module in modules.items() if any(True for _ in module.parameters())]
        notes.append(SYNTHETIC if len(set(missing)) >= len(weighty) else f"{SYNTHETIC}: in {', '.join(missing)}")
    if pinned:
        notes.append(pinned)
    if downloaded:
        notes.append("downloaded from the hub while loading: the load time of this round includes it")
    return Loaded(kind=kind, model=model, modules=modules, pinned=bool(pinned), notes=tuple(notes))


def _import(kind: str) -> tuple[Any, bool]:
    with runtime.tf32_kept(), stand_in.torchaudio_or_stand_in() as covered:
        module = importlib.import_module(f"speechbrain.inference.{_MODULES[kind]}")
        for name in _NAMING_TORCHAUDIO if covered else ():
            importlib.import_module(f"speechbrain.{name}")
    return getattr(module, kind), covered


def _hyperparams(file: Path, overrides: Mapping[str, Any], *, random: bool) -> tuple[dict[str, Any], list[str]]:
    """What the file builds, filled from its directory, and the names of parts whose weights stay random."""
    from hyperpyyaml import load_hyperpyyaml

    with file.open() as stream:
        hparams: dict[str, Any] = load_hyperpyyaml(stream, dict(overrides))
    pretrainer: Any = hparams.get("pretrainer")
    found = {} if pretrainer is None else _checkpoints(pretrainer, file.parent, random=random)
    if found:
        _fill(pretrainer, found)
    filled = {id(pretrainer.loadables[name]) for name in found}
    _give_statistics(hparams)
    # weights that no checkpoint filled, neither their own nor one of a part or of an owner
    modules = hparams["modules"]
    holders = [part for part in (pretrainer.loadables.values() if pretrainer else ()) if id(part) in filled]
    owned = {id(p) for part in holders if isinstance(part, torch.nn.Module) for p in part.parameters()}
    return hparams, [
        name
        for name, module in modules.items()
        if isinstance(module, torch.nn.Module) and any(id(p) not in owned for p in module.parameters())
    ]


def _checkpoints(pretrainer: Any, directory: Path, *, random: bool) -> dict[str, str]:
    """The files that exist: by the name that the pretrainer gives, or where it says. Nothing is downloaded."""
    found = {}
    for name, part in pretrainer.loadables.items():
        if random and isinstance(part, torch.nn.Module):
            continue
        named = Path(str(pretrainer.paths.get(name, f"{name}.ckpt")))
        for path in (directory / named.name, named):
            if path.is_file():
                found[name] = str(path.resolve())
                break
    return found


def _fill(pretrainer: Any, found: Mapping[str, str]) -> None:
    from speechbrain.utils.parameter_transfer import Pretrainer

    local = Pretrainer(
        loadables={name: pretrainer.loadables[name] for name in found},
        paths=dict(found),
        custom_hooks=pretrainer.custom_hooks,
        conditions=pretrainer.conditions,
    )
    local.collect_files()
    local.load_collected()


def _give_statistics(hparams: Mapping[str, Any]) -> None:
    """A normaliser without statistics cannot be called: mean 0 and deviation 1 cost the same."""
    from speechbrain.processing.features import InputNormalization

    held = [*hparams.values(), *hparams["modules"].values()]
    for part in (inner for module in held if isinstance(module, torch.nn.Module) for inner in module.modules()):
        if isinstance(part, InputNormalization) and part.norm_type == "global" and part.glob_mean.numel() == 0:
            part.glob_mean, part.glob_std = torch.zeros(1), torch.ones(1)


def _pin_length(searcher: Any, missing: list[str]) -> str:
    """Random weights would stop at random: let the search run to its longest. Returns the note, empty if none."""
    from speechbrain.decoders.seq2seq import S2SBeamSearcher, S2SGreedySearcher

    if not missing or not isinstance(searcher, S2SBeamSearcher | S2SGreedySearcher):
        return ""
    if isinstance(searcher, S2SBeamSearcher):
        searcher.min_decode_ratio = searcher.max_decode_ratio  # no hypothesis may end before
    else:
        searcher.eos_index = -1  # no token is the end
    return f"output length fixed at max_decode_ratio: {searcher.max_decode_ratio:g} × the encoder's frames"


def _understanding(cls: Any, hparams: dict[str, Any], recogniser: dict[str, Any], run_opts: dict[str, Any]) -> Any:
    """An EndToEndSLU with a recogniser that we build: its own constructor would download one."""
    from speechbrain.inference.ASR import EncoderDecoderASR
    from speechbrain.inference.interfaces import Pretrained

    class LocalSLU(cls):  # type: ignore[misc]
        def __init__(self) -> None:
            Pretrained.__init__(self, modules=hparams["modules"], hparams=hparams, run_opts=run_opts)
            self.tokenizer = self.hparams.tokenizer
            device = {"device": run_opts["device"]}
            self.asr_model = EncoderDecoderASR(modules=recogniser["modules"], hparams=recogniser, run_opts=device)

    return LocalSLU()
