"""What a reader must know before a figure is quoted: that it is of one round, and what models and input say of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from speechmeter.analysis.intervals import Quantity
from speechmeter.core import metrics
from speechmeter.core.types import Record
from speechmeter.report.tables import Table

ONE_ROUND = "one round: no interval, spread between processes unknown; raise rounds"
SOME_SINGLE = "figures without an interval are of one round"
MOST = 12
"""So many notes of a study are listed; the records have all."""


def record_notes(record: Record) -> list[str]:
    """What the model and the input of a record say: random weights, items that were resampled."""
    found = (record.find(metrics.ITEMS.id), record.find(metrics.LATENCY_LOAD.id))  # older records: at the load
    return [str(note) for one in found if one is not None for note in one.notes.get("notes", ())]


def study_notes(records: Sequence[Record], most: int = MOST) -> list[str]:
    """The notes of all records, each once, those of most cases first; with the models they are about, if not all."""
    cases: dict[str, set[str]] = {}
    models: dict[str, dict[str, None]] = {}
    for record in records:
        for note in record_notes(record):
            cases.setdefault(note, set()).add(record.case.id)
            models.setdefault(note, {})[record.case.subject.name] = None
    everyone = {record.case.subject.name for record in records if record.status == "ok"}
    ordered = sorted(cases, key=lambda note: -len(cases[note]))
    lines = [note if everyone <= set(models[note]) else _named(note, list(models[note])) for note in ordered]
    more = [f"and {len(lines) - most} more notes, in the records"] if len(lines) > most else []
    return [*lines[:most], *more]


def _named(note: str, models: Sequence[str]) -> str:
    """The note behind the names of its models, unless it begins with one itself."""
    return note if note.startswith(f"{models[0]}: ") else f"{', '.join(models)}: {note}"


def rounds_caveat(estimates: Iterable[Quantity]) -> list[str]:
    """That figures which vary between rounds are of a single one: of all of them, or of some."""
    varying = [found for found in estimates if found.statistic == "geomean" and not found.metric.exact]
    single = [found for found in varying if found.rounds == 1]
    if not single:
        return []
    return [ONE_ROUND if len(single) == len(varying) else SOME_SINGLE]


def rounds_of(records: Sequence[Record]) -> tuple[int, int]:
    """The least and the most rounds of a case that was measured; zeros where none was."""
    counts: dict[str, int] = {}
    for record in records:
        if record.status == "ok":
            counts[record.case.id] = counts.get(record.case.id, 0) + 1
    return min(counts.values(), default=0), max(counts.values(), default=0)


def with_caveats(tables: Sequence[Table], records: Sequence[Record]) -> list[Table]:
    """Tables made of these records, each with what is to be said of its rounds; the first with the study's notes."""
    made = []
    for place, table in enumerate(tables):
        cells = (cell.estimate for row in table.rows for cell in row.cells if cell.estimate is not None)
        notes = study_notes(records) if place == 0 else []
        made.append(replace(table, caveats=(*table.caveats, *rounds_caveat(cells), *notes)))
    return made
