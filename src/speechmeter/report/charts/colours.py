"""One colour for a model in all charts of a study: its index in the study's list of models decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from speechmeter.core.types import Record
from speechmeter.report.charts.style import CATEGORIES

MOST = len(CATEGORIES)
"""With more models than this some would have one colour."""


def models_of(records: Sequence[Record]) -> list[str]:
    """The models of a study in the order of its records, also those that failed."""
    return list(dict.fromkeys(record.case.subject.name for record in records))


def by_model(models: Sequence[str]) -> dict[str, Any]:
    """The channel that colours rows by their field `model`; none where the models are more than the colours."""
    import altair as alt

    if len(models) > MOST:
        return {}
    return {"color": alt.Color("model:N", scale=alt.Scale(domain=list(models)), legend=None)}


def by_line(models: Sequence[str], model_of: Mapping[str, str]) -> list[str] | None:
    """The domain of a scale that gives each line the colour of its model; None where a model has several lines."""
    line_of = {model: line for line, model in model_of.items()}
    if len(line_of) < len(model_of) or len(models) > MOST:
        return None
    return [line_of.get(model, f" {index}") for index, model in enumerate(models)]
