"""Figures in TensorBoard: a log folder for each case, and charts of each figure with its interval as a band."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from speechmeter.api.figures import ExportedCase

_LONGEST = 100


def write(cases: Sequence[ExportedCase], run: str, target: str | None) -> str:
    """Write event files below the folder `target`, at step 0.

    Each figure is a scalar, and the ends of its interval are two more: `latency`, `latency_low`, `latency_high`. The
    dashboard "custom scalars" draws them as a band.
    """
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    folder = Path(target or "tensorboard")
    for case in cases:
        writer = EventFileWriter(str(folder / _folder(case)))
        for summary in _summaries(case):
            writer.add_event(_event(summary))
        writer.close()
    return f"{len(cases)} log folders in {folder}; look at them with: tensorboard --logdir {folder}"


def _folder(case: ExportedCase) -> str:
    """The case's name as the name of a folder, and its id, so that no two are alike."""
    plain = re.sub(r"[^\w.-]+", "_", case.name)[:_LONGEST].strip("._")
    return f"{plain or 'case'}-{case.id[:6]}"


def _event(summary: Any) -> Any:
    from tensorboard.compat.proto.event_pb2 import Event

    return Event(wall_time=_moment(), step=0, summary=summary)


def _moment() -> float:
    from time import time

    return time()


def _summaries(case: ExportedCase) -> Iterator[Any]:
    from tensorboard.compat.proto.summary_pb2 import Summary

    for one in case.figures:
        for tag, value in one.values.items():
            yield Summary(value=[Summary.Value(tag=tag, simple_value=value)])
    yield _layout(case)


def _layout(case: ExportedCase) -> Any:
    """A chart for each figure with an interval: a band from its lower to its upper end."""
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING
    from tensorboard.plugins.custom_scalar import layout_pb2, metadata

    charts = [
        layout_pb2.Chart(
            title=f"{one.key} [{one.metric.unit}]",
            margin=layout_pb2.MarginChartContent(
                series=[
                    layout_pb2.MarginChartContent.Series(value=one.key, lower=f"{one.key}_low", upper=f"{one.key}_high")
                ]
            ),
        )
        for one in case.figures
        if one.low is not None and one.high is not None
    ]
    layout = layout_pb2.Layout(category=[layout_pb2.Category(title="95 % intervals", chart=charts)])
    plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME)
    tensor = TensorProto(dtype=DT_STRING, string_val=[layout.SerializeToString()], tensor_shape=TensorShapeProto())
    value = Summary.Value(tag=metadata.CONFIG_SUMMARY_TAG, tensor=tensor, metadata=SummaryMetadata(plugin_data=plugin))
    return Summary(value=[value])
