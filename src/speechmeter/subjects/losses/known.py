"""The losses that are known: how each wants to be called, where it runs, and how to get it. Imports none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from speechmeter.core.protocols import Choice

PADDED, PACKED = "padded", "packed"
LOGITS, LOG_PROBS, SIDES = "logits", "log-probs", "encoder, predictor, weight"
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
"""What a loss is tried on; see `trials`."""


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """How far a loss may be from the oracle in float32: relative distance of the loss, relative L2 of the gradient.

    `large_gradient` holds for logits × 3000, whose losses are thousands of times larger.
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

    `load` is `module:function`, the function returning an `Exact`, a `Pruned` or (takes `SIDES`) a `Joint`. `integers`
    are the kinds that targets and lengths may have, the preferred one first. `blank` is the implementation's own
    default; it is always called with 0. `cannot` names the trials that it cannot take, with the reason.
    """

    name: str
    summary: str
    load: str
    package: str
    distribution: str
    get: str
    layout: str = PADDED
    takes: str = LOGITS
    dtypes: tuple[str, ...] = ("float32",)
    integers: tuple[str, ...] = (INT32,)
    blank: str = "0"
    devices: tuple[str, ...] = (CPU, CUDA)
    in_place: bool = False
    pruned: bool = False
    tolerance: Tolerance = SINGLE
    cannot: Mapping[str, str] = field(default_factory=dict)
    traps: tuple[str, ...] = ()

    @property
    def joint(self) -> bool:
        """Whether it computes the joiner itself."""
        return self.takes == SIDES

    def choice(self) -> Choice:
        """The row of `speechmeter models`."""
        missing = self.missing()
        return Choice(
            source=self.name,
            summary=self.summary,
            version="" if missing else self._version(),
            missing=missing,
        )

    def missing(self) -> str | None:
        """Why it is absent, and how to get it; None when it is here. Looks for the package without importing it."""
        found = find_spec(self.package)
        here = found is not None and found.origin is not None  # an empty folder of that name has no origin
        return None if here else f"{self.distribution} is not installed: {self.get}"

    def _version(self) -> str:
        try:
            return f"{self.distribution} {version(self.distribution)}"
        except PackageNotFoundError:
            return f"{self.distribution} (version unknown)"


_OURS = "speechmeter.subjects.losses.ours"
_OTHERS = "speechmeter.subjects.losses.others"
_HALVES = ("float32", "float16", "bfloat16")
_NAN = MappingProxyType({NAN_PADDING: "a NaN in the padding becomes a NaN in the gradient"})
_K2_CANNOT = MappingProxyType({**_NAN, NO_LABEL: "it asserts that every utterance has a label"})
_K2_TRAPS = (
    "wants int64",
    "boundary=None means full lengths: padding would count as speech",
    "refuses an utterance without a label",
)
_K2_GET = "wheels by torch and CUDA version at https://k2-fsa.github.io/k2/installation, or build it from source"
_FAST_GET = "build it from source: https://github.com/k2-fsa/fast_rnnt"


def _ours(load: str, **own: Any) -> Known:
    """One of our own: they differ in what they take and where they run."""
    usual = {"package": "speechmeter", "distribution": "speechmeter", "get": "pip install speechmeter"}
    return Known(
        load=f"{_OURS}:{load}",
        dtypes=_HALVES,
        integers=(INT64, INT32),
        blank="last id",
        tolerance=CLOSE,
        **(usual | own),
    )


ALL: tuple[Known, ...] = (
    _ours(
        name="ours",
        summary="speechmeter.transducer.rnnt_loss by its fastest engine here",
        load="fastest",
    ),
    _ours(
        name="ours-torch",
        summary="speechmeter.transducer.rnnt_loss by plain torch",
        load="plain_torch",
    ),
    _ours(
        name="ours-pruned",
        summary="speechmeter.transducer.pruned_rnnt_loss, option states (5)",
        load="pruned",
        pruned=True,
    ),
    _ours(
        name="ours-in-place",
        summary="speechmeter.transducer.rnnt_loss, gradient over the logits; lengths and targets trusted",
        load="in_place",
        package="triton",
        distribution="triton",
        get="comes with a CUDA build of torch",
        devices=(CUDA,),
        in_place=True,
        traps=("the logits are gone after backward", "wrong lengths or targets are not refused"),
    ),
    _ours(
        name="ours-joint",
        summary="speechmeter.transducer.joint_rnnt_loss, the joiner inside; lengths and targets trusted",
        load="joint",
        takes=SIDES,
    ),
    _ours(
        name="ours-pruned-joint",
        summary="speechmeter.transducer.pruned_joint_rnnt_loss, the joiner inside; option states (5)",
        load="pruned_joint",
        pruned=True,
        takes=SIDES,
    ),
    Known(
        name="torchaudio",
        summary="torchaudio.functional.rnnt_loss",
        load=f"{_OTHERS}:torchaudio",
        package="torchaudio",
        distribution="torchaudio",
        get="pip install torchaudio beside a CUDA build of torch (none is published for a CPU build)",
        dtypes=("float32", "float16"),
        blank="last id",
        cannot={
            NO_LABEL: "on a GPU it gives 0 for an utterance without labels",
            ONE_FRAME: "on a GPU it gives 0 for an utterance of one frame",
        },
        traps=(
            "on a GPU the loss of an utterance without labels, or of one frame, is 0 without a sign",
            "blank defaults to the last id; the wrong one changes the loss without a sign",
            "wants int32, and padding to exactly the longest",
            "fused_log_softmax=False on raw logits returns nonsense without a sign",
        ),
    ),
    Known(
        name="warprnnt-numba",
        summary="warprnnt_numba.RNNTLossNumba",
        load=f"{_OTHERS}:warprnnt_numba",
        package="warprnnt_numba",
        distribution="warprnnt-numba",
        get="pip install warprnnt-numba",
        cannot=_NAN,
        traps=("wants int32, contiguous tensors, and padding to exactly the longest", "fastemit scales the loss"),
    ),
    Known(
        name="speechbrain",
        summary="speechbrain's TransducerLoss, numba kernels",
        load=f"{_OTHERS}:speechbrain",
        package="speechbrain",
        distribution="speechbrain",
        get="pip install 'speechmeter[speechbrain]' numba",
        takes=LOG_PROBS,
        devices=(CUDA,),
        cannot={**_NAN, NO_LABEL: "its kernels write outside their memory when an utterance has no label"},
        traps=(
            "divides the loss of an utterance by its frames, but not the gradient; undone here",
            "empties torch's CUDA cache in every call, inside the clock",
        ),
    ),
    Known(
        name="nemo",
        summary="NeMo's RNNTLossNumba",
        load=f"{_OTHERS}:nemo",
        package="nemo",
        distribution="nemo-toolkit",
        get="pip install 'nemo_toolkit[asr]'",
        integers=(INT64,),
        cannot=_NAN,
        traps=("wants int64, contiguous tensors, and padding to exactly the longest", "fastemit scales the loss"),
    ),
    Known(
        name="k2",
        summary="k2.rnnt_loss",
        load=f"{_OTHERS}:k2",
        package="k2",
        distribution="k2",
        get=_K2_GET,
        integers=(INT64,),
        blank="none: termination_symbol must be given",
        cannot=_K2_CANNOT,
        traps=_K2_TRAPS,
    ),
    Known(
        name="k2-pruned",
        summary="k2.rnnt_loss_pruned, option states (5)",
        load=f"{_OTHERS}:k2_pruned",
        package="k2",
        distribution="k2",
        get=_K2_GET,
        integers=(INT64,),
        blank="none: termination_symbol must be given",
        pruned=True,
        traps=_K2_TRAPS,
    ),
    Known(
        name="fast-rnnt",
        summary="fast_rnnt.rnnt_loss",
        load=f"{_OTHERS}:fast_rnnt",
        package="fast_rnnt",
        distribution="fast_rnnt",
        get=_FAST_GET,
        integers=(INT64,),
        blank="none: termination_symbol must be given",
        cannot=_K2_CANNOT,
        traps=_K2_TRAPS,
    ),
    Known(
        name="fast-rnnt-pruned",
        summary="fast_rnnt.rnnt_loss_pruned, option states (5)",
        load=f"{_OTHERS}:fast_rnnt_pruned",
        package="fast_rnnt",
        distribution="fast_rnnt",
        get=_FAST_GET,
        integers=(INT64,),
        blank="none: termination_symbol must be given",
        pruned=True,
        traps=_K2_TRAPS,
    ),
    Known(
        name="optimized-transducer",
        summary="optimized_transducer.transducer_loss, packed",
        load=f"{_OTHERS}:optimized_transducer",
        package="optimized_transducer",
        distribution="optimized_transducer",
        get="build it from source: https://github.com/csukuangfj/optimized_transducer",
        layout=PACKED,
        blank="none: it must be given",
        in_place=True,
        traps=(
            "wants the true cells of all utterances one after another",
            "overwrites the logits with their gradient in the forward pass",
            "has no loss by utterance: agreement is judged on the sum of the batch",
        ),
    ),
    Known(
        name="warp-transducer",
        summary="warprnnt_pytorch.rnnt_loss",
        load=f"{_OTHERS}:warp_transducer",
        package="warprnnt_pytorch",
        distribution="warprnnt_pytorch",
        get="build it from source: https://github.com/HawkAaron/warp-transducer",
        cannot=_NAN,
        traps=("wants log-probs on the CPU and logits on a GPU; its rnnt_loss sees to that itself", "wants int32"),
    ),
    Known(
        name="warp-rnnt",
        summary="warp_rnnt.rnnt_loss",
        load=f"{_OTHERS}:warp_rnnt",
        package="warp_rnnt",
        distribution="warp_rnnt",
        get="build it from source: https://github.com/1ytic/warp-rnnt",
        takes=LOG_PROBS,
        devices=(CUDA,),
        cannot=_NAN,
        traps=("wants log-probs: raw logits return nonsense without a sign", "wants int32"),
    ),
)
"""In the order of the listing."""

BY_NAME: Mapping[str, Known] = MappingProxyType({known.name: known for known in ALL})
