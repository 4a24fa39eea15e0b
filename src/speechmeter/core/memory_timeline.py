"""Memory through one step, as a file: allocated and reserved bytes over time, and who held them at the peak."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.files import MIB, read_text, write_whole

FILE = "memory.json"
"""Its name in the folder of a case's artifacts."""
FORMAT = 1
LARGEST_FILE = 64 * MIB
"""Version of the file. History: 1, first."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """Bytes that were alive at the peak, by the module and operator that allocated them, in so many allocations.

    `module` is empty outside of all modules.
    """

    bytes: int
    count: int
    module: str
    operator: str


@dataclass(frozen=True, kw_only=True)
class MemoryTimeline:
    """Readings at the times they changed, in order. Bytes are those of the device, weights included, on a GPU.

    On the CPU they are growth: `start_bytes` is 0 there, and `reserved_bytes` is empty, because nothing is reserved.
    `held` is what was alive at the peak and allocated in the step, the largest first. `count` is how often memory
    changed; of many changes the lists hold those that draw the same line.
    """

    device: str
    duration_s: float
    time_s: Sequence[float]
    allocated_bytes: Sequence[int]
    reserved_bytes: Sequence[int]
    start_bytes: int
    peak_bytes: int
    peak_s: float
    held: Sequence[Held]
    count: int

    @property
    def growth_bytes(self) -> int:
        """How far the peak lies above the start."""
        return self.peak_bytes - self.start_bytes

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> MemoryTimeline:
        """The inverse of `to_json`."""
        fields = {key: value for key, value in data.items() if key != "format"}
        return cls(**{**fields, "held": tuple(Held(**one) for one in data["held"])})


def write_timeline(path: Path, timeline: MemoryTimeline) -> None:
    """Write it; the file is whole or absent."""
    write_whole(path, (json.dumps(timeline.to_json(), separators=(",", ":")) + "\n").encode())


def read_timeline(path: Path) -> MemoryTimeline:
    """Read it. Raises InputError when it is missing or has another format."""
    try:
        data = json.loads(read_text(path, LARGEST_FILE))
        if data["format"] != FORMAT:
            raise InputError(
                f"the file has format {data['format']}, but this version reads format {FORMAT}",
                where=str(path),
                fix="update Speechmeter",
            )
        return MemoryTimeline.from_json(data)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=str(path), fix="run with the meter `timeline`"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"this is not a memory timeline: {error}", where=str(path), fix="measure again with the meter `timeline`"
        ) from error
