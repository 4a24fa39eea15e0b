"""A callback for transformers' Trainer: profile training steps as they come. Imports transformers."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from speechmeter.integrations.steps import TrainingSteps


class ProfileCallback(TrainingSteps, TrainerCallback):  # type: ignore[misc]
    """Records optimiser steps, gradient accumulation included. `profile` is what was found.

    The Trainer does not report exceptions to its callbacks: after one, call `close`.
    """

    def on_step_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """A step begins."""
        self._begin(model)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """It ended."""
        self._end()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Training ended."""
        self.close()
