"""A callback for PyTorch Lightning: profile training steps as they come. Imports Lightning."""

from __future__ import annotations

from typing import Any

from speechmeter.integrations.steps import TrainingSteps

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback


class ProfileCallback(TrainingSteps, Callback):  # type: ignore[misc]
    """Records training steps: forward, backward and optimiser of a batch. `profile` is what was found."""

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *args: Any) -> None:
        """A step begins."""
        self._begin(pl_module)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *args: Any) -> None:
        """It ended."""
        self._end()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Training ended."""
        self.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """It broke off."""
        self.profile.failed = exception
        self.close()
