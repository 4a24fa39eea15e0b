"""What callbacks of training loops share: each step is announced by a call, without a `with` around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from speechmeter.api.profiling.options import Export, Options, Schedule
from speechmeter.api.profiling.result import Profile
from speechmeter.api.profiling.taking import Taking


class TrainingSteps:
    """A mix-in. Bare, one step of warm-up and the three after it; then nothing is left of the profiler."""

    def __init__(
        self,
        *,
        memory: bool = False,
        python_stacks: bool = False,
        folder: str | Path | None = None,
        wait: int = 0,
        warmup: int = 1,
        active: int = 3,
    ) -> None:
        options = Options(
            memory=memory,
            python_stacks=python_stacks,
            schedule=Schedule(wait=wait, warmup=warmup, active=active),
            export=None if folder is None else Export(folder=Path(folder)),
        )
        self._taking = Taking("training step", options)

    @property
    def profile(self) -> Profile:
        """What was recorded."""
        return self._taking.profile

    def close(self) -> None:
        """End the recording; what was recorded until then is kept. For training that broke off."""
        self._taking.close()

    def _begin(self, model: Any) -> None:
        if not self._taking.satisfied:
            self._taking.open({} if model is None else {type(model).__name__: model})
            self._taking.begin()

    def _end(self) -> None:
        """The last step that is wanted ends the recording."""
        self._taking.end()
        if self._taking.satisfied:
            self._taking.close()
