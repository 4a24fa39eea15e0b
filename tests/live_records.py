"""Records of live cases whose values are given: what tests of statistics and tables of live metrics start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from speechmeter.core import metrics
from speechmeter.core.axes import Axes
from speechmeter.core.metrics import Metric
from speechmeter.core.protocol import LiveProtocol
from speechmeter.core.quality import UTTERANCES
from speechmeter.core.types import Case, Measurement, Record, Spec

PROTOCOL = LiveProtocol(
    turn_end="oracle", turn_delay_s=0.3, turn_vad="", silence_s=2.0, quiet_s=3.0, timeout_s=30.0, phase="random",
    turns=None, duration_s=None, warmup_turns=1,
)  # fmt: skip
Heard = Mapping[str, Sequence[float | None]]
"""The values of each utterance in one round; None is an answer that never came."""


def case(name: str = "a", protocol: LiveProtocol = PROTOCOL, **axes: Any) -> Case:
    usual = {"device": "cpu", "dtype": "float32", "threads": 1, "pace": "realtime", "chunk": 0.1, "streams": 1}
    return Case(
        subject=Spec(plugin="known", name=name, source="live"),
        workload=Spec(plugin="data", name="talks", source="talks.jsonl", options={}),
        axes=Axes({**usual, **axes}),
        meters=("memory",),
        protocol=protocol,
    )


def answered(names: Sequence[str]) -> Measurement:
    return Measurement.of(metrics.LIVE_ANSWERED, [1.0] * len(names), notes={UTTERANCES: list(names)})


def delays(heard: Heard, metric: Metric = metrics.FINAL_DELAY) -> Measurement:
    """Values of a metric with one or several values a conversation."""
    of = [place for place, values in enumerate(heard.values()) for value in values if value is not None]
    missing = [place for place, values in enumerate(heard.values()) if None in values]
    notes: dict[str, Any] = {"of": of, **({"missing": missing, "timeout_s": 30.0} if missing else {})}
    if metric == metrics.WORD_LAG:
        notes["word"] = [place for values in heard.values() for place, _ in enumerate(values)]
    return Measurement.of(metric, [v for values in heard.values() for v in values if v is not None], notes=notes)


def ratios(pairs: Mapping[str, tuple[float, float]], metric: Metric = metrics.LIVE_WER) -> Measurement:
    """Values of a metric that is a ratio of sums: (above, below) of each conversation."""
    above, below = ([pair[side] for pair in pairs.values()] for side in (0, 1))
    scale = 100 if metric.unit == "%" else 1
    notes = {"of": list(range(len(pairs))), "above": above, "below": below, "normaliser": "basic.v2"}
    return Measurement.of(metric, [scale * a / (b or 1) for a, b in pairs.values()], notes=notes)


def record(of: Case, number: int, names: Sequence[str], *found: Measurement, **more: Any) -> Record:
    return Record(
        case=of, round=number, sequence=number, status="ok", measurements=(answered(names), *found), **more
    )  # fmt: skip


def rounds(of: Case, heard: Sequence[Heard], metric: Metric = metrics.FINAL_DELAY) -> list[Record]:
    """A record a round."""
    return [record(of, number, list(one), delays(one, metric)) for number, one in enumerate(heard)]
