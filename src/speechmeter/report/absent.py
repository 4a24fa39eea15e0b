"""A view that a run has no figures for: refused in one line, with the command that measures them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from speechmeter.analysis.derived import lacking
from speechmeter.analysis.metric_names import metric_named
from speechmeter.core import plugins
from speechmeter.core.errors import InputError
from speechmeter.core.types import Record
from speechmeter.report.choose import WORDS
from speechmeter.report.tables import NOT_MEASURED, Table
from speechmeter.report.views import BESIDE, VIEWS, View

_VIEWS = {view.name: view for view in VIEWS if view.name in WORDS}
_FLAGS = {"trace": "--set trace=true"}
"""Meters that are asked for in another way than by `--meters`."""


def refuse_absent(
    found: Sequence[Table], records: Sequence[Record], metric: str | None, run: Path, *, beside: bool = False
) -> None:
    """Raise InputError where a view has no figure because the run did not ask for it, or has no such cases.

    A view without figures whose meters were asked for is left alone: its cells say what became of them.
    """
    word = BESIDE.name if beside else metric
    if word is None or not records:
        return
    view = BESIDE if beside else _VIEWS.get(word)
    figures = any(
        one.estimate is not None for table in found for row in table.rows for c in row.cells for one in c.figures
    )
    missing = _missing(records, word, view)
    if missing and ((view is not None and view.whole) or not figures):
        asked = list(dict.fromkeys(name for record in records for name in record.case.meters))
        names = f"meter{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        raise _refusal(f"this run did not ask for the {names}", _flags([*asked, *missing]), records, word, run)
    if figures:
        return
    if view is not None and view.cases is not None:
        raise _refusal(f"this run {view.cases.lack}", view.cases.flags, records, word, run)
    words = {cell.word for table in found for row in table.rows for cell in row.cells}
    if words <= {NOT_MEASURED, ""}:
        raise InputError(f"this run has no figures of {word}", where="--metric", fix=_others(records))


def _missing(records: Sequence[Record], word: str, view: View | None) -> list[str]:
    """The meters of a view, or of a metric that is no view, that no case asked for."""
    asked = {name for record in records for name in record.case.meters}
    if view is not None and view.or_meter is not None:
        return [] if asked & {*view.meters, view.or_meter} else [view.or_meter]
    needed = _meters_of(records, word) if view is None else view.meters
    return [name for name in needed if name not in asked]


def _meters_of(records: Sequence[Record], word: str) -> list[str]:
    """The built-in and installed meters that measure what a metric is made from."""
    needed = {need.id for need in lacking(records, metric_named(word, records))}
    return [
        name
        for name in plugins.names(plugins.METERS)
        if needed and any(own.id in needed for own in plugins.meter(name).metrics)
    ][:1]


def _flags(meters: Sequence[str]) -> str:
    named = [name for name in meters if name not in _FLAGS]
    return " ".join([f"--meters {','.join(named)}", *(_FLAGS[name] for name in meters if name in _FLAGS)])


def _refusal(what: str, flags: str, records: Sequence[Record], word: str, run: Path) -> InputError:
    plan = run / "plan.yaml"
    plugged = {record.case.subject.plugin for record in records} & set(plugins.names(plugins.SUBJECTS))
    trust = " --trust" if any(plugins.subject(name).runs_code for name in plugged) else ""
    new = shlex.quote(f"{str(run).rstrip('/')}-{'split' if word == BESIDE.name else word}")
    named = shlex.quote(str(plan)) if plan.is_file() else "PLAN.yaml"
    return InputError(what, where=f"--metric {word}" if word != BESIDE.name else "--split",
                      fix=f"measure it with: speechmeter run {named} {flags}{trust} -o {new}")  # fmt: skip


def _others(records: Sequence[Record]) -> str:
    asked = ", ".join(dict.fromkeys(name for record in records for name in record.case.meters))
    return f"its meters are {asked}; --metric summary has a figure of each"
