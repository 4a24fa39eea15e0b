"""A plan's file of scores that were taken elsewhere, read before anything is run."""

from __future__ import annotations

from pathlib import Path

from speechmeter.core import plugins
from speechmeter.core.errors import PlanError
from speechmeter.core.quality import IMPORT, QUALITY
from speechmeter.core.score_file import read_scores
from speechmeter.plan.schema import Plan
from speechmeter.plan.source import Source

_WORKLOAD = "workload"


def check_quality(plan: Plan, source: Source) -> None:
    """The file must be sound and about models and axes of this plan; with it nothing is left to be scored here."""
    asked = plan.quality
    if asked is None or asked.import_ is None:
        return
    where = source.place((QUALITY, IMPORT)) or source.place((QUALITY,))
    if asked.normaliser is not None or asked.scores is not None:
        raise PlanError("imported scores were normalised elsewhere", where=where, fix="keep `import` alone")
    rows = read_scores(Path(asked.import_))
    columns = sorted({name for row in rows for name in row.axes})
    known = [*plan.axes, _WORKLOAD]
    for name in columns:
        if name not in known:
            raise PlanError(
                f"{asked.import_}: column {name!r} is no axis", where=where, fix=plugins.nearest(name, known)
            )
    models = [entry.name for entry in plan.models]
    if not any(row.model in models for row in rows):
        raise PlanError(
            f"{asked.import_} has no row for any model of the plan",
            where=where,
            fix=f"call its rows as the plan does: {', '.join(models)}",
        )
