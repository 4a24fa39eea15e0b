"""Speech to discrete units: an encoder, then the nearest of the centres that k-means would have left. Imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from speechmeter.core.types import Stage
from speechmeter.subjects import torch_runtime as runtime
from speechmeter.subjects.transformers.loading import Loaded
from speechmeter.subjects.transformers.writing import accepted

CLUSTERS = 1000
"""Units of the usual speech-to-unit translation."""


class Codebook(torch.nn.Module):  # type: ignore[misc]
    """Random centres. (items, frames, width) → (items, frames), the number of the nearest centre."""

    def __init__(self, clusters: int, width: int) -> None:
        super().__init__()
        self.centres = torch.nn.Parameter(torch.randn(clusters, width))

    def forward(self, hidden: Any) -> Any:
        """|h − c|² without |h|², which is the same for all centres."""
        return (self.centres.square().sum(-1) - 2 * hidden @ self.centres.T).argmin(-1)


def units_stages(loaded: Loaded) -> list[Stage]:
    """Encoder and nearest centre, one unit a frame; then the units of each item as a list."""
    clusters = int(loaded.case.subject.options.get("clusters", CLUSTERS))
    codebook = Codebook(clusters, loaded.config.hidden_size).to(device=loaded.device, dtype=loaded.dtype).eval()
    forward = runtime.compiled(loaded.model, loaded.case)

    def model(inputs: Mapping[str, Any]) -> Any:
        return codebook(forward(**accepted(loaded.model.forward, inputs))[0])

    return [
        Stage(
            name="model",
            fn=runtime.inference(model),
            modules={"model": loaded.model, "codebook": codebook},
            tokens=lambda units: int(units.numel()),
        ),
        Stage(name="decode", fn=lambda units: units.tolist()),
    ]
