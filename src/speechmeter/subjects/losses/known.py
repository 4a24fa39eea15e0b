"""The losses that are known: how each wants to be called, where it runs, and how to get it. Imports none of them.

What each does that a caller would not expect (its traps) is listed in docs/explanation/losses.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from speechmeter.core.protocols import Choice

PADDED, PACKED, FRAMES = "padded", "packed", "frames"
LOGITS, LOG_PROBS, SIDES = "logits", "log-probs", "encoder, predictor, weight"
TRANSDUCER, TDT, MULTI_BLANK, CTC = "transducer", "TDT", "multi-blank", "CTC"
"""What is computed: each kind has an oracle of its own; see `truths`."""
DURATIONS = (0, 1, 2, 3, 4)
"""Of TDT: as many outputs of the joiner behind the ids."""
BIG_BLANKS = (2, 4, 8)
"""Durations of multi-blank: as many ids more."""
CPU, CUDA = "cpu", "cuda"
INT32, INT64 = "int32", "int64"

RANDOM, ORIGINAL_SIZE, ONE, FEW_FRAMES, NO_LABEL, ONE_FRAME = (
    "random",
    "original size",
    "batch of one",
    "fewer frames than labels",
    "no label",
    "one frame",
)
NAN_PADDING, LARGE, NOT_CONTIGUOUS = "NaN in the padding", "logits × 3000", "not contiguous"
"""Names of the trials that a loss is checked on; see `agreement`."""


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """How far a loss may be from the oracle in float32: relative distance of the loss, relative L2 of the gradient.

    `large_gradient` is for logits × 3000, whose losses are thousands of times larger.
    """

    loss: float
    gradient: float
    large_gradient: float


CLOSE = Tolerance(loss=1e-6, gradient=1e-5, large_gradient=1e-5)
"""Of our own, which keep α and β in float64."""
ROUNDED = Tolerance(loss=3e-5, gradient=2e-3, large_gradient=2e-3)
"""Of a joiner that multiplies factors of 11 significant bits, as TF32 does."""
SINGLE = Tolerance(loss=1e-4, gradient=5e-3, large_gradient=5e-2)
"""Of those that keep α and β in float32: at a loss of 2,000 a step is 2.4e-4, and that error goes into the gradient."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """One implementation and its conventions.

    `load` is `module:function`. `integers` are the kinds that targets and lengths may have, the preferred one first.
    Blank is always 0. `cannot` names the trials that it cannot take, with the reason. `file` is a file of the package
    that older versions do not have.
    """

    name: str
    summary: str
    load: str
    package: str
    distribution: str
    get: str
    file: str = ""
    kind: str = TRANSDUCER
    layout: str = PADDED
    takes: str = LOGITS
    dtypes: tuple[str, ...] = ("float32",)
    integers: tuple[str, ...] = (INT32,)
    devices: tuple[str, ...] = (CPU, CUDA)
    in_place: bool = False
    pruned: bool = False
    tolerance: Tolerance = SINGLE
    cannot: Mapping[str, str] = field(default_factory=dict)

    @property
    def outputs_beside_ids(self) -> int:
        """How many outputs the joiner has beside those of the ids."""
        return {TDT: len(DURATIONS), MULTI_BLANK: len(BIG_BLANKS)}.get(self.kind, 0)

    @property
    def joint(self) -> bool:
        """Whether it computes the joiner itself."""
        return self.takes == SIDES

    def implementation(self) -> Any:
        """The loss itself, imported now: a `Joint` if it computes the joiner, a `Pruned` if pruned, else an `Exact`."""
        module, _, function = self.load.partition(":")
        return getattr(import_module(module), function)()

    def choice(self) -> Choice:
        """The row of `speechmeter models`."""
        missing = self.missing()
        try:
            found = "" if missing else f"{self.distribution} {version(self.distribution)}"
        except PackageNotFoundError:
            found = f"{self.distribution} (version unknown)"
        return Choice(source=self.name, summary=self.summary, version=found, missing=missing)

    def missing(self) -> str | None:
        """Why it is absent, and how to get it; None when it is here. Looks for the package without importing it."""
        found = find_spec(self.package)
        if found is None or found.origin is None:  # an empty folder of that name has no origin
            return f"{self.distribution} is not installed: {self.get}"
        if self.file and not (Path(found.origin).parent / self.file).is_file():
            return f"{self.distribution} is installed without {self.file}: {self.get}"
        return None


def _ours(name: str, function: str, summary: str, **own: Any) -> Known:
    usual = {"package": "speechmeter", "distribution": "speechmeter", "get": "pip install speechmeter"}
    return Known(
        name=name,
        summary=f"speechmeter.transducer.{summary}",
        load=f"speechmeter.subjects.losses.ours:{function}",
        dtypes=("float32", "float16", "bfloat16"),
        integers=(INT64, INT32),
        tolerance=CLOSE,
        **(usual | own),
    )


def _other(name: str, function: str, summary: str, package: str, get: str, **own: Any) -> Known:
    return Known(
        name=name,
        summary=summary,
        load=f"speechmeter.subjects.losses.others:{function}",
        package=package,
        get=get,
        **({"distribution": package} | own),
    )


_NAN = MappingProxyType({NAN_PADDING: "a NaN in the padding becomes a NaN in the gradient"})
_K2_CANNOT = MappingProxyType({**_NAN, NO_LABEL: "it fails if an utterance has no label"})
_k2 = partial(
    _other,
    package="k2",
    integers=(INT64,),
    get="install the wheel for your versions of torch and CUDA (https://k2-fsa.github.io/k2/installation), or build "
    "it from source",
)
_fast_rnnt = partial(
    _other,
    package="fast_rnnt",
    integers=(INT64,),
    get="build it from source: https://github.com/k2-fsa/fast_rnnt",
)

ALL: tuple[Known, ...] = (
    _ours("ours", "fastest", "rnnt_loss with the fastest engine on this machine"),
    _ours("ours-torch", "plain_torch", "rnnt_loss computed by plain torch"),
    _ours("ours-pruned", "pruned", "pruned_rnnt_loss; option states (default 5)", pruned=True),
    _ours(
        "ours-in-place",
        "in_place",
        "rnnt_loss, the gradient overwrites the logits to save memory; lengths and targets are not checked",
        package="triton",
        distribution="triton",
        get="it is part of the CUDA builds of torch",
        devices=(CUDA,),
        in_place=True,
    ),
    _ours(
        "ours-joint", "joint", "joint_rnnt_loss, includes the joiner; lengths and targets are not checked", takes=SIDES
    ),
    _ours(
        "ours-pruned-joint",
        "pruned_joint",
        "pruned_joint_rnnt_loss, includes the joiner; option states (default 5)",
        pruned=True,
        takes=SIDES,
    ),
    _ours("ours-tdt", "tdt", "tdt_loss, durations 0 to 4", kind=TDT),
    _ours("ours-multi-blank", "multi_blank", "multi_blank_loss, big blanks of 2, 4 and 8 frames", kind=MULTI_BLANK),
    _other(
        "torch-ctc",
        "torch_ctc",
        "torch.nn.functional.ctc_loss, without a predictor (the joiner gets only the encoder's frames)",
        package="torch",
        get="pip install 'speechmeter[transducer]'",
        kind=CTC,
        layout=FRAMES,
        integers=(INT64, INT32),
        cannot={**_NAN, FEW_FRAMES: "CTC has no alignment with fewer frames than labels"},
    ),
    _other(
        "torchaudio",
        "torchaudio",
        "torchaudio.functional.rnnt_loss",
        package="torchaudio",
        get="torchaudio is published for CUDA builds of torch only: install such a torch, then pip install torchaudio",
        dtypes=("float32", "float16"),
        cannot={
            NO_LABEL: "on a GPU it gives 0 for an utterance without labels",
            ONE_FRAME: "on a GPU it gives 0 for an utterance of one frame",
        },
    ),
    _other(
        "warprnnt-numba",
        "warprnnt_numba",
        "warprnnt_numba.RNNTLossNumba",
        package="warprnnt_numba",
        distribution="warprnnt-numba",
        get="pip install warprnnt-numba",
        cannot=_NAN,
    ),
    _other(
        "speechbrain",
        "speechbrain",
        "speechbrain's TransducerLoss, numba kernels",
        package="speechbrain",
        get="pip install 'speechmeter[speechbrain]' numba",
        takes=LOG_PROBS,
        devices=(CUDA,),
        cannot={**_NAN, NO_LABEL: "its kernels write outside their memory when an utterance has no label"},
    ),
    _other(
        "nemo",
        "nemo",
        "NeMo's RNNTLossNumba",
        package="nemo",
        distribution="nemo-toolkit",
        get="pip install 'nemo_toolkit[asr]'",
        integers=(INT64,),
        cannot=_NAN,
    ),
    _other(
        "nemo-triton",
        "nemo_triton",
        "NeMo's rnnt_loss_triton",
        package="nemo",
        distribution="nemo-toolkit",
        file="collections/asr/parts/rnnt_triton/rnnt_loss_triton.py",
        get="a version of NeMo with rnnt_triton, from source: https://github.com/NVIDIA/NeMo",
        integers=(INT64,),
        devices=(CUDA,),
    ),
    _other(
        "nemo-tdt",
        "nemo_tdt",
        "NeMo's TDTLossNumba, durations 0 to 4",
        package="nemo",
        distribution="nemo-toolkit",
        get="pip install 'nemo_toolkit[asr]'",
        kind=TDT,
        integers=(INT64,),
        devices=(CUDA,),
        cannot=_NAN,
    ),
    _other(
        "returnn",
        "returnn",
        "RETURNN's packed rnnt_loss",
        package="returnn",
        file="torch/util/rnnt.py",
        get="a version of RETURNN with torch.util.rnnt, from source: https://github.com/rwth-i6/returnn",
        layout=PACKED,
    ),
    _k2("k2", "k2", "k2.rnnt_loss", cannot=_K2_CANNOT),
    _k2("k2-pruned", "k2_pruned", "k2.rnnt_loss_pruned; option states (default 5)", pruned=True),
    _fast_rnnt("fast-rnnt", "fast_rnnt", "fast_rnnt.rnnt_loss", cannot=_K2_CANNOT),
    _fast_rnnt(
        "fast-rnnt-pruned", "fast_rnnt_pruned", "fast_rnnt.rnnt_loss_pruned; option states (default 5)", pruned=True
    ),
    _other(
        "optimized-transducer",
        "optimized_transducer",
        "optimized_transducer.transducer_loss, packed",
        package="optimized_transducer",
        get="build it from source: https://github.com/csukuangfj/optimized_transducer",
        layout=PACKED,
        in_place=True,
    ),
    _other(
        "warp-transducer",
        "warp_transducer",
        "warprnnt_pytorch.rnnt_loss",
        package="warprnnt_pytorch",
        get="build it from source: https://github.com/HawkAaron/warp-transducer",
        cannot=_NAN,
    ),
    _other(
        "warp-rnnt",
        "warp_rnnt",
        "warp_rnnt.rnnt_loss",
        package="warp_rnnt",
        get="build it from source: https://github.com/1ytic/warp-rnnt",
        takes=LOG_PROBS,
        devices=(CUDA,),
        cannot=_NAN,
    ),
)
"""In the order of the listing."""

BY_NAME: Mapping[str, Known] = MappingProxyType({known.name: known for known in ALL})
