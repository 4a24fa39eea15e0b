"""What an example costs on average, in lines: the last thing that a run prints of a cascade or of a dataset."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.derived import why_absent
from speechmeter.analysis.estimate import Estimate, estimate, mean_of_calls
from speechmeter.analysis.readings import part_names
from speechmeter.analysis.utterances import by_utterance
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.scope import PART, Scope
from speechmeter.core.types import Record
from speechmeter.report.grids import case_labels
from speechmeter.report.numbers import number
from speechmeter.report.tables import by_case

_FIGURES: dict[str, Metric] = {
    "run time": metrics.LATENCY,
    "memory": metrics.MEMORY_NEEDED,
    "FLOPs": metrics.FLOPS,
}


def example_lines(records: Sequence[Record]) -> list[str]:
    """A heading and a line for each model and the total, of cascades and of cases with one utterance a call.

    Times and FLOPs are means over the same calls, so that those of the models add up to the total; memory is that of
    the model which needs most.
    """
    labels = case_labels(records)
    return [line for case_id, group in by_case(records).items() for line in _of_case(group, labels[case_id])]


def _of_case(group: Sequence[Record], label: str) -> list[str]:
    parts = part_names(group)
    examples = len(by_utterance(group, metrics.LATENCY))
    if mean_of_calls(group, metrics.LATENCY, "total") is None or not (parts or examples > 1):
        return []
    scopes = {**{name: Scope.of(PART, name) for name in parts}, "total": "total"}
    over = f"mean over {examples} examples" if examples > 1 else "mean over all calls"
    return [f"{label}: {over}", *(f"  {name}: {_figures(group, scope)}" for name, scope in scopes.items())]


def _figures(group: Sequence[Record], scope: str) -> str:
    said = [f"{word} {text}" for word, metric in _FIGURES.items() if (text := _figure(group, metric, scope))]
    if scope == "total" and (peak := _text(mean_of_calls(group, metrics.MEMORY_CPU_TOTAL, scope))):
        said.append(f"peak of the process {peak}")
    return ", ".join(said)


def _figure(group: Sequence[Record], metric: Metric, scope: str) -> str:
    """Empty for what was not measured."""
    found = estimate(group, metric, scope) if metric == metrics.MEMORY_NEEDED else mean_of_calls(group, metric, scope)
    if found is not None:
        return _text(found)
    return "unavailable" if any(why_absent(record, metric, scope) for record in group) else ""


def _text(found: Estimate | None) -> str:
    return "" if found is None else number(found.value, found.metric.unit)
