"""What a reader must know before a figure is quoted: that it is of one round, and what models and input say of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from speechmeter.analysis.intervals import Quantity
from speechmeter.analysis.warnings import case_warnings
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Record
from speechmeter.report.tables import Table

ONE_ROUND = "one round: no interval, because the spread between processes is unknown; measure more rounds"
SOME_SINGLE = "values without an interval are from a single round"
MOST = 12
"""So many notes of a study are listed; the records have all."""
_USUALLY_RECORDED = ("CPU", "CUDA", "modules")


def record_notes(record: Record) -> list[str]:
    """What the model and the input of a record say: random weights, items that were resampled."""
    found = (record.find(metrics.ITEMS.id), record.find(metrics.LATENCY_LOAD.id))  # older records: at the load
    return [str(note) for one in found if one is not None for note in one.notes.get("notes", ())]


def warnings_of(records: Sequence[Record]) -> tuple[str, ...]:
    """What disturbed the rounds of a case, and what is wrong with its samples, each once."""
    return tuple(dict.fromkeys([*(text for record in records for text in record.warnings), *case_warnings(records)]))


def gathered(warnings: Iterable[Sequence[str]]) -> dict[str, list[int]]:
    """Warnings of several cases → the places of the cases that have them.

    Warnings that differ in a percentage alone are one, with the least and the most of it.
    """
    places: dict[str, dict[int, None]] = {}
    shares: dict[str, list[int]] = {}
    first: dict[str, str] = {}
    for place, texts in enumerate(warnings):
        for text in texts:
            key = _PERCENTAGE.sub("%", text)
            first.setdefault(key, text)
            places.setdefault(key, {})[place] = None
            shares.setdefault(key, []).extend(int(one[:-1]) for one in _PERCENTAGE.findall(text))
    return {_ranged(first[key], shares[key]): list(places[key]) for key in places}


_PERCENTAGE = re.compile(r"\d+%")


def _ranged(text: str, shares: Sequence[int]) -> str:
    if not shares or min(shares) == max(shares):
        return text
    return _PERCENTAGE.sub(f"{min(shares)}% to {max(shares)}%", text, count=1)


def brief(warning: str) -> str:
    """A warning without its cause and its fix."""
    kind = _UNSTABLE.match(warning)
    return kind.group() if kind is not None else warning.partition(";")[0]


_UNSTABLE = re.compile(r"unstable \([\w ]+\)")


def study_notes(records: Sequence[Record], most: int = MOST) -> list[str]:
    """The notes of all records, each once, those of most cases first; with the models they are about, if not all."""
    cases: dict[str, set[str]] = {}
    models: dict[str, dict[str, None]] = {}
    for record in records:
        for note in record_notes(record):
            cases.setdefault(note, set()).add(record.case.id)
            models.setdefault(note, {})[record.case.subject.name] = None
    everyone = {record.case.subject.name for record in records if record.status == "ok"}
    lines = []
    for note in sorted(cases, key=lambda note: -len(cases[note])):
        names = list(models[note])
        named = everyone <= set(names) or note.startswith(f"{names[0]}: ")  # some notes begin with the name themselves
        lines.append(note if named else f"{', '.join(names)}: {note}")
    more = [f"and {len(lines) - most} more notes in the records"] if len(lines) > most else []
    return [*lines[:most], *more]


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
    """Tables made of these records, each with a caveat on its rounds; the first with the notes of the study."""
    made = []
    for index, table in enumerate(tables):
        cells = (cell.estimate for row in table.rows for cell in row.cells if cell.estimate is not None)
        notes = study_notes(records) if index == 0 else []
        made.append(replace(table, caveats=(*table.caveats, *rounds_caveat(cells), *notes)))
    return made


def recorded_notes(records: Sequence[Record], metric: Metric) -> list[str]:
    """How profiled calls were recorded, where it was not as usual: more detail, fewer calls, unlike rounds."""
    own = [m for record in records for m in record.measurements if m.metric == metric.id]
    found = dict.fromkeys(tuple(m.notes["recorded"]) for m in own if "recorded" in m.notes)
    more = dict.fromkeys(word for words in found for word in words if word not in _USUALLY_RECORDED)
    lines = [f"recorded with {', '.join(more)}, which makes calls slower, above all small operators."] if more else []
    lines += dict.fromkeys(f"{m.notes['shortened']}." for m in own if "shortened" in m.notes)
    return lines + (
        ["the rounds were recorded with different profiler options, so their times cannot be compared."]
        if len(found) > 1
        else []
    )
