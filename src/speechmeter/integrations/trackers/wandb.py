"""Figures in Weights & Biases: a run for each case, in a group for the run. Offline unless WANDB_MODE is `online`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from speechmeter.api.figures import ExportedCase


def write(cases: Sequence[ExportedCase], run: str, target: str | None) -> str:
    """Log every case below the folder `target`; nothing is sent unless WANDB_MODE is set to `online`.

    Each figure and the ends of its interval are in the summary: `latency`, `latency_low`, `latency_high`.
    """
    import wandb

    folder, mode = Path(target or "."), os.environ.get("WANDB_MODE", "offline")
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        settings = wandb.Settings(console="off", silent=True, x_disable_stats=True)
        made = wandb.init(
            project="speechmeter", group=run, name=case.name, config=dict(case.settings), dir=str(folder),
            mode="online" if mode == "online" else "offline", reinit="create_new", settings=settings,
        )  # fmt: skip
        made.log({key: value for one in case.figures for key, value in one.values.items()})
        made.finish()
    sent = "sent" if mode == "online" else "offline, send it with `wandb sync`"
    return f"{len(cases)} runs of W&B in {folder / 'wandb'} ({sent})"
