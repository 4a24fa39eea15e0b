"""The share of a client process in a round, and how it learns when all begin: by two files in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

from speechmeter.engine.live.round import Part

_READY, _BEGIN = "ready", "begin"
_POLL_S = 0.005


@dataclass(frozen=True, kw_only=True)
class Share:
    """Which of the clients it is, out of how many."""

    index: int
    of: int
    folder: Path

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"index": self.index, "of": self.of, "folder": str(self.folder)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Share:
        """The inverse of `to_json`."""
        return cls(index=data["index"], of=data["of"], folder=Path(data["folder"]))

    def part(self) -> Part:
        """For the engine, in the client process."""
        return Part(index=self.index, of=self.of, begin=self._wait)

    def is_ready(self) -> bool:
        """Whether the client has everything that it needs before the first conversation."""
        return (self.folder / _READY).exists()

    def begin(self, moment_s: float) -> None:
        """Tell the client the moment on the clock of its machine."""
        draft = self.folder / f"{_BEGIN}.draft"
        draft.write_text(json.dumps(moment_s))
        draft.rename(self.folder / _BEGIN)

    def _wait(self) -> float:
        """Nothing else happens in the client meanwhile: whoever started it ends it where the others fail."""
        (self.folder / _READY).touch()
        while not (self.folder / _BEGIN).exists():
            sleep(_POLL_S)
        return float(json.loads((self.folder / _BEGIN).read_text()))
