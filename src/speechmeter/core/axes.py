"""The axes that a plan may sweep and the options that it may set: a declared set. Plug-ins declare more."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from speechmeter.core.durations import seconds_of

BOUNDARIES = ("model", "+decode", "+features", "+copy", "+load")
"""What the clock includes, from the narrowest to the widest; each includes those before it."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """A value that a plug-in takes: a key of its entry in a plan. The plan is refused where `check` finds it wrong.

    `kind` is int, float, bool, str, list, dict or `Path` (a path, which starts from the folder of the plan), or several
    of these; `object` takes anything. `default` is used where the plan does not say; `choices` are all it may be.
    A `duration` is seconds, and may be given with its unit (`100ms`). An option that `runs_code` is a command: a plan
    that has it needs the `--trust` rule, as a subject does that runs code.
    """

    name: str
    kind: type | tuple[type, ...] = object
    default: Any = None
    help: str = ""
    choices: tuple[Any, ...] = ()
    minimum: float | None = None
    above: float | None = None
    duration: bool = False
    runs_code: bool = False

    def read(self, value: Any) -> Any:
        """The value that a plan's text means: the seconds of a duration; anything else as it is."""
        return seconds_of(value) if self.duration else value

    @property
    def kinds(self) -> tuple[type, ...]:
        """All kinds of values that it takes."""
        return self.kind if isinstance(self.kind, tuple) else (self.kind,)

    def check(self, value: Any) -> str | None:
        """Why `value` cannot be used; None when it can."""
        if object in self.kinds:
            return None
        if value is None:
            return None if self.default is None else f"{self.name} needs a value"
        if self.choices and value not in self.choices:
            return f"{self.name} takes one of {', '.join(map(str, self.choices))}, not {value!r}"
        if not any(_is_a(value, kind) for kind in self.kinds):
            return f"{self.name} takes {' or '.join(_KINDS[kind] for kind in self.kinds)}, not {value!r}"
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return self._out_of_range(value) if is_number else None

    def _out_of_range(self, value: int | float) -> str | None:
        if isinstance(value, int) and abs(value) > _LARGEST:
            return f"{self.name} must be at most 2**53"
        if not math.isfinite(value):
            return f"{self.name} must be finite, not {value!r}"
        if self.minimum is not None and value < self.minimum:
            return f"{self.name} must be at least {self.minimum:g}, not {value!r}"
        if self.above is not None and value <= self.above:
            return f"{self.name} must be greater than {self.above:g}, not {value!r}"
        return None


@dataclass(frozen=True, kw_only=True)
class Axis(Option):
    """An option that a plan may sweep: one value of it is part of a case.

    A `late` axis was added to a subject after runs without it existed: a case has it only where it differs from its
    default, so that the ids of those runs stay what they are. `tries` are the values that `tune` tries beside the
    default, where they are not all choices; an axis without either is not tuned unless its values are given.
    """

    kind: type
    late: bool = False
    tries: tuple[Any, ...] = ()


_LARGEST = 2**53
"""Whole numbers up to here are exact as floats."""
_KINDS: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    Path: "a path",
    list: "a list",
    dict: "a mapping",
}


def _is_a(value: Any, kind: type) -> bool:
    """Whether a plan's value is of a kind. True and false are not numbers; a whole number may be given for a float."""
    accepted: Any = {float: int | float, Path: str, list: list | tuple, dict: Mapping}.get(kind, kind)
    return isinstance(value, accepted) and isinstance(value, bool) is (kind is bool)


CORE_AXES: tuple[Axis, ...] = (
    Axis(name="device", kind=str, default="cpu", help="cpu, cuda or cuda:N"),
    Axis(name="dtype", kind=str, default="float32", help="number format of weights and input",
         choices=("float32", "float16", "bfloat16")),
    Axis(name="threads", kind=int, default=None, minimum=1,
         help="threads of the math libraries (default: one per core)"),
    Axis(name="cores", kind=int, default=None, minimum=1,
         help="number of CPU cores that the process may use (default: all)"),
    Axis(name="compile", kind=bool, default=False, help="torch.compile the model"),
    Axis(name="deterministic", kind=bool, default=False, help="deterministic algorithms only"),
    Axis(name="tf32", kind=bool, default=False, help="TF32 matrix units for float32 on CUDA"),
    Axis(name="boundary", kind=str, default="+features", help="which steps of a call are timed", choices=BOUNDARIES),
)  # fmt: skip


REALTIME, FAST, OFFLINE = "realtime", "fast", "offline"
LIVE_AXES: tuple[Axis, ...] = (
    Axis(name="pace", kind=str, default=REALTIME, choices=(REALTIME, FAST, OFFLINE),
         help="how audio is fed: in real time, as fast as possible, or offline (whole, for comparison)"),
    Axis(name="chunk", kind=float, default=0.1, above=0, duration=True,
         help="audio that is sent at a time, such as 20ms"),
    Axis(name="streams", kind=int, default=1, minimum=1, help="number of conversations at once"),
    Axis(name="rate", kind=float, default=None, above=0, late=True,
         help="conversations that begin per second, whether or not earlier ones have ended (instead of `streams`)"),
    Axis(name="text_pace", kind=float, default=None, above=0, late=True,
         help="tokens per second in which a text to be spoken comes, a token being up to 4 characters of a word "
         "(default: all at once)"),
)  # fmt: skip
"""Axes of cases that are measured live. Others do not have them."""


class Axes(Mapping[str, Any]):
    """The values of a case along its axes, which do not change. Core axes, seconds and batch are attributes too.

    Where a case does not say, as one that was read from a file of figures, these are empty, 0, False or None.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __repr__(self) -> str:
        return f"Axes({self._values})"

    def to_json(self) -> dict[str, Any]:
        """Plain data; ten times as fast as `dict` of a mapping that is written in Python."""
        return self._values.copy()

    @property
    def device(self) -> str:
        """As the plan spells it; `Case.device` is the device itself."""
        return str(self._values.get("device", ""))

    @property
    def dtype(self) -> str:
        """Number format of weights and input."""
        return str(self._values.get("dtype", ""))

    @property
    def threads(self) -> int:
        """Threads of the math libraries."""
        return self._values.get("threads") or 0

    @property
    def cores(self) -> int:
        """CPU cores that the process may use."""
        return self._values.get("cores") or 0

    @property
    def compile(self) -> bool:
        """Whether the model is compiled by torch."""
        return bool(self._values.get("compile"))

    @property
    def deterministic(self) -> bool:
        """Whether deterministic algorithms alone are used."""
        return bool(self._values.get("deterministic"))

    @property
    def tf32(self) -> bool:
        """Whether float32 products may use TF32."""
        return bool(self._values.get("tf32"))

    @property
    def boundary(self) -> str:
        """What the clock includes: one of `BOUNDARIES`."""
        return str(self._values.get("boundary", ""))

    @property
    def pace(self) -> str:
        """How audio is fed to a system that is measured live; empty for any other case."""
        return self._values.get("pace") or ""

    @property
    def chunk_s(self) -> float:
        """Seconds of audio that are sent at a time; 0 for a case that is not live."""
        return self._values.get("chunk") or 0.0

    @property
    def streams(self) -> int:
        """Conversations at once; 0 for a case that is not live."""
        return self._values.get("streams") or 0

    @property
    def rate(self) -> float | None:
        """Conversations that begin per second; None where streams hold them one after another."""
        return self._values.get("rate")

    @property
    def text_pace(self) -> float | None:
        """Tokens per second in which a text to be spoken comes; None where it comes at once."""
        return self._values.get("text_pace")

    @property
    def seconds(self) -> float | None:
        """Seconds of audio in each item; None where items are as long as they are."""
        return self._values.get("seconds")

    @property
    def batch(self) -> int | None:
        """Items in a call; None where the workload has no such axis."""
        return self._values.get("batch")


BATCH = Axis(
    name="batch", kind=int, default=1, help="batch size: utterances (or other inputs) in a call", minimum=1,
    tries=(1, 2, 4, 8),
)  # fmt: skip
NONE, INT8_DYNAMIC = "none", "int8-dynamic"
BEAM = Axis(
    name="beam", kind=int, default=1, help="hypotheses that the decoder keeps; 1 is greedy", minimum=1, tries=(1, 2, 5)
)
MIN_NEW_TOKENS = Axis(
    name="min_new_tokens", kind=int, default=None, help="minimum length of a generated text, in tokens", minimum=0
)
MAX_NEW_TOKENS = Axis(
    name="max_new_tokens", kind=int, default=None, help="maximum length of a generated text, in tokens", minimum=1
)
MAX_LEN_A = Axis(
    name="max_len_a", kind=float, default=None, help="factor a in: max new tokens = a × source length + b", minimum=0
)
MAX_LEN_B = Axis(
    name="max_len_b", kind=int, default=None, help="constant b in: max new tokens = a × source length + b", minimum=0
)
QUANTIZE = Axis(
    name="quantize",
    kind=str,
    default=NONE,
    help="none, or int8-dynamic: weights in int8, activations quantised at every call",
    choices=(NONE, INT8_DYNAMIC),
)
LATE_QUANTIZE = replace(QUANTIZE, late=True)
"""For subjects that could not be quantised at first."""
SHARED_AXES: tuple[Axis, ...] = (BEAM, MIN_NEW_TOKENS, MAX_NEW_TOKENS, MAX_LEN_A, MAX_LEN_B, QUANTIZE)
"""Axes of models that generate or can be quantised, each defined once for all subjects that have it."""


LATE_DEFAULTS: dict[str, Any] = {axis.name: axis.default for axis in (LATE_QUANTIZE, *LIVE_AXES) if axis.late}
"""What a case without such an axis was measured with."""


def axis_names(axes: Iterable[Axis]) -> list[str]:
    """The names, in order."""
    return [axis.name for axis in axes]


def inside_boundary(stage_name: str, boundary: str) -> bool:
    """Whether the clock includes a stage of this name. It always includes stages that no boundary names."""
    widening = [part.lstrip("+") for part in BOUNDARIES]
    if stage_name not in widening:
        return True
    return widening.index(stage_name) <= BOUNDARIES.index(boundary)
