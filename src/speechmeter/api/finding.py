"""What the selftest found: one meter against one truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["passed", "failed", "warning", "not checked"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One meter against one truth, in `unit`. `tolerance` is absolute; `excuse` says why it could not be checked.

    `trouble` is what went wrong where there is no excuse. A figure that is `of_host` depends on what else runs on this
    machine: outside its tolerance it is a warning, and no meter is broken.
    """

    meter: str
    what: str
    unit: str
    truth: float | None
    tolerance: float | None
    reading: float | None = None
    excuse: str = ""
    trouble: str = ""
    of_host: bool = False

    @property
    def error(self) -> float | None:
        """Reading minus truth; None without both."""
        return None if self.reading is None or self.truth is None else self.reading - self.truth

    @property
    def state(self) -> State:
        """`not checked` if the meter is not available here; `failed` also if it has neither reading nor reason."""
        if self.error is None or self.tolerance is None:
            return "not checked" if self.excuse else "failed"
        if abs(self.error) <= self.tolerance:
            return "passed"
        return "warning" if self.of_host else "failed"
