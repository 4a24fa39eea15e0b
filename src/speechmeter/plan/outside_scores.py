"""A plan's file of scores that were taken elsewhere, read before anything is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from speechmeter.core import plugins
from speechmeter.core.errors import PlanError
from speechmeter.core.quality import IMPORT, QUALITY, ScoreRow, read_scores, score_for
from speechmeter.core.types import Case
from speechmeter.plan.schema import Plan
from speechmeter.plan.source import Source

_WORKLOAD = "workload"
_NAMED = 3


def check_quality(plan: Plan, source: Source) -> None:
    """The file must be sound and about models and axes of this plan; with it nothing is left to be scored here."""
    asked = plan.quality
    if asked is None or asked.import_ is None:
        return
    where = source.origin((QUALITY, IMPORT)) or source.origin((QUALITY,))
    if asked.normaliser is not None or asked.scores is not None:
        raise PlanError("scores that are imported were normalised elsewhere", where=where, fix="keep `import` alone")
    rows = read_scores(Path(asked.import_))
    columns = sorted({name for row in rows for name in row.axes})
    known = [*plan.axes, _WORKLOAD]
    for name in columns:
        if name not in known:
            raise PlanError(
                f"{asked.import_}: column {name!r} is not an axis", where=where, fix=plugins.nearest(name, known)
            )
    models = [entry.name for entry in plan.models]
    if not any(row.model in models for row in rows):
        raise PlanError(
            f"{asked.import_} has no row for any model of the plan",
            where=where,
            fix=f"use the names of the plan: {', '.join(models)}",
        )


def unused_scores(plan: Plan, cases: Sequence[Case]) -> tuple[str, ...]:
    """A line for the rows of the plan's file that are about none of its cells; nothing where all are used."""
    path = plan.quality.import_ if plan.quality is not None else None
    if path is None:
        return ()
    rows = read_scores(Path(path))
    used = {
        id(row)
        for case in cases
        if (row := score_for(rows, case.subject.name, {**case.axes, _WORKLOAD: case.workload.name})) is not None
    }
    unused = [row for row in rows if id(row) not in used]
    if not unused:
        return ()
    named = "; ".join(_described(row) for row in unused[:_NAMED]) + ("; …" if len(unused) > _NAMED else "")
    return (f"{path}: {len(unused)} of {len(rows)} rows match no case of the plan: {named}",)


def _described(row: ScoreRow) -> str:
    return ", ".join([row.model, *(f"{name} {value}" for name, value in row.axes.items())])
