"""A subject of NumPy alone whose processes may be forked, and the entry point by which processes find it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from speechmeter.core.axes import Axis, Option
from speechmeter.core.protocols import Installed, Prepared
from speechmeter.core.types import Case, Stage

_ROWS, _WIDTH, _TIMES = 640, 384, 20


class NumpySubject:
    """`numpy-work`: products of matrices and their tanh."""

    summary = "products of matrices by NumPy"
    axes: tuple[Axis, ...] = ()
    options: tuple[Option, ...] = ()
    takes: tuple[str, ...] = ()
    runs_code = False

    def installed(self) -> Installed:
        """NumPy is always there."""
        return Installed(version="1")

    def check(self, case: Case) -> None:
        """Nothing can be wrong."""

    def unavailable(self, case: Case) -> str | None:
        """Nothing is missing."""
        return None

    def libraries(self, case: Case) -> tuple[str, ...]:
        """NumPy, which starts the threads of its BLAS when it is imported."""
        return ("numpy",)

    def prepare(self, case: Case, device: str) -> Prepared:
        """The same work in every case."""
        import numpy as np

        generator = np.random.default_rng(0)
        weight = generator.standard_normal((_WIDTH, _WIDTH), dtype=np.float32) / np.float32(_WIDTH**0.5)
        start = generator.standard_normal((_ROWS, _WIDTH), dtype=np.float32)

        def call(batch: Any) -> Any:
            state = start
            for _ in range(_TIMES):
                state = np.tanh(state @ weight)
            return state

        return Prepared(stages=(Stage(name="model", fn=call),))


def plant(folder: Path) -> None:
    """Install it in a folder, for whoever has that on its path."""
    (folder / "forkable.py").write_text(Path(__file__).read_text())
    about = folder / "forkable-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: forkable\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[speechmeter.subjects]\nnumpy-work = forkable:NumpySubject\n")
