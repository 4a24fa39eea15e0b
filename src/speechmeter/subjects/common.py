"""What several subjects share and what needs no heavy package: presence, limits of an engine, words of notes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from speechmeter.core.axes import NONE, Option
from speechmeter.core.errors import SubjectError
from speechmeter.core.machine import other_interpreter
from speechmeter.core.protocols import Installed
from speechmeter.core.types import Batch, Case

RATE = 16_000
"""Samples in a second of the sound that every workload feeds."""
PINNED_TOKENS = 32
"""Tokens that a decoder with random weights makes when the plan does not say: its own stopping means nothing."""
SYNTHETIC = "random weights: calls cost the same as with trained ones, but the output has no meaning"


WEIGHTS = Option(
    name="weights", kind=str, default="auto", choices=("auto", "random"),
    help="auto: trained weights if there are any; random: random weights, with fixed output lengths",
)  # fmt: skip


def pinned_note(tokens: int) -> str:
    """What a record says of a decode length that is fixed beforehand."""
    return f"output length fixed at {tokens} tokens"


def waves(batch: Batch) -> list[Any]:
    """The sound of each item, without its padding."""
    return [wave[:length] for wave, length in zip(batch.data, batch.lengths, strict=True)]


def installed(*packages: str, extra: str, distribution: str | None = None) -> Installed:
    """The version of the first package if all are installed, else what is missing and how to get it.

    Nothing is imported. `distribution` is the name that pip knows the first package by, if it is another one: a package
    of the same name by someone else does not count then.
    """
    missing = next((package for package in packages if find_spec(package) is None), None)
    name = distribution or packages[0]
    if missing is None:
        try:
            return Installed(version=f"{name} {version(name)}")
        except PackageNotFoundError:
            if not distribution:
                return Installed(version=f"{name} (version unknown)")
            missing = distribution
    return Installed(missing=f"{missing} is not installed: {_installing(missing, name, packages, extra)}")


def _installing(missing: str, name: str, packages: Sequence[str], extra: str) -> str:
    """How to get a package. Another interpreter that measures needs the package alone, not this one."""
    other = other_interpreter()
    if other is None:
        return f"pip install 'speechmeter[{extra}]'"
    return f"{other} -m pip install {name if missing in (packages[0], name) else missing}"


def check_no_source(case: Case) -> None:
    """Raise SubjectError for `name:source` of a subject that is named alone."""
    name, source = case.subject.plugin, case.subject.source
    if source:
        raise SubjectError(f"nothing can follow {name}, but {name}:{source} was given", fix=f"write only {name}")


def cpu_engine(case: Case, name: str) -> str | None:
    """Why an engine for the CPU with a number format of its own cannot run a case; None when it can."""
    if not case.device.is_cpu:
        return f"{name} runs on the CPU only, not on {case.device}"
    if case.axes.dtype != "float32":
        return (
            f"{name} uses the number format of its weights, not {case.axes.dtype}; use `dtype: float32` (the default)"
        )
    if case.axes.compile:
        return f"{name} is not a torch module, so torch.compile cannot be applied"
    return None


def torch_quantizing(case: Case) -> str | None:
    """Why torch cannot quantise the weights as a case asks; None when it can, or when nothing is quantised."""
    kind = case.axes.get("quantize", NONE)
    if kind == NONE:
        return None
    if not case.device.is_cpu:
        return f"quantize {kind} works on the CPU only, not on {case.device}"
    if case.axes.dtype != "float32":
        return f"quantize {kind} needs `dtype: float32`, not {case.axes.dtype}"
    if case.axes.compile:
        return f"quantize {kind}: torch.compile cannot compile packed int8 weights"
    return None
