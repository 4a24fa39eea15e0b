"""What calls put out, kept as plain data: text, token ids, sound; and what is to be kept. Tensors are let go."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from speechmeter.core.types import Segments, Speech


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """How a trace is recorded: how many steps, with Python's own stacks or not, and how many events at most."""

    steps: int = 1
    python_stacks: bool = False
    most_events: int = 200_000


@dataclass(frozen=True, kw_only=True)
class SpeechFiles:
    """How sound is written: names begin with `prefix` and a `_`, resampled to `rate` in Hz; empty: as it was made."""

    prefix: str = ""
    rate: int | None = None


@dataclass(frozen=True, kw_only=True)
class Keep:
    """Where files are written, each case in its own folder, sound only with `speech`. No folder: counted only.

    `outputs` of calls are kept and counted once a case. What a profiler records is the same in all rounds, so `trace`
    holds for all of them.
    """

    folder: Path | None = None
    speech: SpeechFiles | None = None
    trace: TraceOptions = field(default_factory=TraceOptions)
    outputs: bool = True

    def later_round(self) -> Keep:
        """The same for a round after the first: no files, no outputs."""
        return replace(self, folder=None, outputs=False)

    def of(self, case_id: str) -> Keep:
        """The same for one case: its own folder, which is made by whoever writes first."""
        return self if self.folder is None else replace(self, folder=self.folder / case_id)


@dataclass(frozen=True, kw_only=True)
class Output:
    """What one call put out, item by item: lines of text (or of token ids), or sound; both empty for anything else."""

    lines: tuple[str, ...] = ()
    speech: tuple[Speech, ...] = ()
    is_text: bool = False


def output_of(last: Any) -> Output:
    """What can be kept of the last stage's output."""
    items = last if isinstance(last, list | tuple) else [last]
    if not items:
        return Output()
    if all(isinstance(item, str) for item in items):
        return Output(lines=tuple(items), is_text=True)
    if all(isinstance(item, Speech) for item in items):
        return Output(speech=tuple(items))
    if all(is_ids(item) for item in items):
        return Output(lines=tuple(" ".join(map(str, item)) for item in items))
    return Output()


def is_ids(item: Any) -> bool:
    """Whether an item is a list of token ids; that of a model which wrote nothing is empty."""
    plain = isinstance(item, list | tuple) and not isinstance(item, Segments)
    return plain and all(type(part) is int for part in item)
