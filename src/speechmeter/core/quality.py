"""What a plan may ask of the quality of outputs, and the names that go into the protocol."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speechmeter.core.errors import InputError
from speechmeter.core.files import MIB, read_text

NORMALISERS: Mapping[str, str] = {"none": "none.v1", "basic": "basic.v2", "english": "english.v2"}
"""The newest id of each normaliser, by the name that a plan gives. A changed rule gets a new version."""
VERSIONS = ("none.v1", "basic.v1", "basic.v2", "english.v1", "english.v2")
"""Every id that there is: older ones stay, for the records and plans that name them."""
FIRST_VERSION = ".v1"
"""What a name without a version meant in a plan that a run keeps; later ones keep the id."""
SCORES = ("wer", "cer", "bleu", "chrf")
"""Scores that a plan may ask for, and that a file of scores may hold."""
OPEN_ASR = "wer-open-asr"
"""The score of the Open ASR Leaderboard, which a plan may ask for too. It has a normaliser of its own."""
PROFILES: Mapping[str, tuple[str, ...]] = {"open-asr": (OPEN_ASR, "wer")}
"""The scores that a leaderboard's profile stands for."""
QUALITY = "quality"
"""The name of the meter, of the plan's key and of its part of the protocol."""
IMPORT = "import"
"""The key of a file with scores that were taken elsewhere."""
IMPORTED = "imported"
"""The source of a figure that was not measured here."""


UTTERANCES = "utterances"
"""The note of `answered.v1` that holds the ids of the utterances, in the order of the values."""
SPEAKERS = "speakers"
"""The note beside it that holds who speaks each of them, where the data say so of all."""


@dataclass(frozen=True, kw_only=True)
class Quality:
    """How outputs are scored: a normaliser's id and the scores; or a file to import scores from, and its hash."""

    normaliser: str | None = None
    scores: tuple[str, ...] = ()
    import_: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain data, as stored in a protocol."""
        given = {"normaliser": self.normaliser, "scores": list(self.scores), IMPORT: self.import_}
        return {**{key: value for key, value in given.items() if value}, **self.extra}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Quality:
        """The inverse of `to_json`."""
        return cls(
            normaliser=data.get("normaliser"),
            scores=tuple(data.get("scores", ())),
            import_=data.get(IMPORT),
            extra={key: value for key, value in data.items() if key not in ("normaliser", "scores", IMPORT)},
        )


def default_scores(workload: str) -> tuple[str, ...]:
    """What is scored where the plan is silent: translations of text, transcripts of anything else."""
    return ("bleu", "chrf") if workload == "text" else ("wer", "cer")


def quality_of(asked: Quality | None, workload: str) -> tuple[str, tuple[str, ...]]:
    """(id of the normaliser, scores) of a protocol; the defaults where it says nothing."""
    asked = asked or Quality()
    return asked.normaliser or NORMALISERS["basic"], asked.scores or default_scores(workload)


def normaliser_id(asked: str | None) -> str:
    """The id that a plan means by a name, an id, or nothing."""
    return NORMALISERS.get(asked or "basic", asked or "")


LARGEST_FILE = 16 * MIB
_RATES = ("wer", "cer")
_FIX = "a column `model` and at least one of " + ", ".join(SCORES)
_FACTORS = {"": 1.0, "_percent": 1.0, "_fraction": 100.0}
_BOUNDS = ("_low", "_high")
_MOST_FRACTION = 3.0
"""Three errors for every word are no recogniser's: such a fraction was meant as percent."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """One figure and the ends of its interval: percent for error rates, 0 to 100 for BLEU and chrF."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """The scores of a model in the cells whose axes have these values (as text)."""

    model: str
    axes: Mapping[str, str]
    scores: Mapping[str, Score]

    def fits(self, model: str, axes: Mapping[str, Any]) -> bool:
        """Whether this row is about a case."""
        return model == self.model and all(_same(axes.get(name), text) for name, text in self.axes.items())


def read_scores(path: Path) -> list[ScoreRow]:
    """The rows of a file. Raises InputError, with file and line, for one that cannot be used."""
    header, rows = _table(path)
    columns = _score_columns(header, path)
    axes = [name for name in header if name != "model" and not _is_score(name)]
    found: list[ScoreRow] = []
    seen: set[tuple[str, frozenset[tuple[str, str]]]] = set()
    for line, row in rows:
        where = f"{path}:{line}"
        if len(row) != len(header):
            raise InputError(
                f"the row has {len(row)} cells, but the header has {len(header)} columns",
                where=where,
                fix="complete the row",
            )
        cells = {name: cell.strip() for name, cell in zip(header, row, strict=True)}
        made = ScoreRow(
            model=cells["model"],
            axes={name: cells[name] for name in axes if cells[name]},
            scores={name: s for name, column in columns.items() if (s := _score(cells, name, column, where))},
        )
        if not made.model or not made.scores:
            raise InputError("a row needs a model and at least one score", where=where, fix=_FIX)
        cell = (made.model, frozenset(made.axes.items()))
        if cell in seen:
            raise InputError(f"{made.model!r} appears twice", where=where, fix="remove one, or add a column of an axis")
        seen.add(cell)
        found.append(made)
    if not found:
        raise InputError("the file has no rows", where=str(path), fix=_FIX)
    _check_scale(found, columns, path)
    return found


def score_for(rows: Sequence[ScoreRow], model: str, axes: Mapping[str, Any]) -> ScoreRow | None:
    """The row about a case, the one that names most axes where several are; None when none is."""
    fitting = [row for row in rows if row.fits(model, axes)]
    return max(fitting, key=lambda row: len(row.axes), default=None)


def _table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    try:
        reader = csv.reader(io.StringIO(read_text(path, LARGEST_FILE), newline=""))
        lines = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"scores cannot be read: {error}", where=str(path), fix="use a CSV file") from error
    header = [name.strip().lower() for name in lines[0][1]] if lines else []
    if "model" not in header:
        raise InputError("the file has no column `model`", where=str(path), fix=f"the file needs {_FIX}")
    for name in header:
        if header.count(name) > 1:
            raise InputError(f"column {name!r} appears twice", where=str(path), fix="remove one of them")
    return header, lines[1:]


def _is_score(column: str) -> bool:
    base = column.removesuffix("_low").removesuffix("_high")
    return any(base == f"{name}{suffix}" for name in SCORES for suffix in _FACTORS)


def _score_columns(header: Sequence[str], path: Path) -> dict[str, str]:
    """The column of each score in the file."""
    columns: dict[str, str] = {}
    for name in SCORES:
        allowed = _FACTORS if name in _RATES else ("",)
        found = [f"{name}{suffix}" for suffix in _FACTORS if f"{name}{suffix}" in header]
        if len(found) > 1 or (found and found[0].removeprefix(name) not in allowed):
            raise InputError(
                f"{' and '.join(found)}: only one column `{name}` is allowed", where=str(path), fix=f"keep `{name}`"
            )
        columns.update({name: found[0]} if found else {})
    for column in header:
        if column.endswith(_BOUNDS) and _is_score(column) and column.rpartition("_")[0] not in columns.values():
            raise InputError(
                f"the interval column {column} needs a column {column.rpartition('_')[0]}", where=str(path), fix=_FIX
            )
    if not columns:
        raise InputError("the file has no column with a score", where=str(path), fix=f"the file needs {_FIX}")
    return columns


def _score(cells: Mapping[str, str], name: str, column: str, where: str) -> Score | None:
    factor = _FACTORS[column.removeprefix(name)]
    value, low, high = (_number(cells.get(f"{column}{end}", ""), f"{column}{end}", where) for end in ("", *_BOUNDS))
    if value is None:
        return None
    if (low is None) is not (high is None):
        raise InputError(
            f"{column} has only one end of its interval", where=where, fix="give both ends, or leave out both"
        )
    if low is not None and high is not None and not low <= value <= high:
        raise InputError(
            f"{column} {value:g} is outside its interval {low:g} to {high:g}", where=where, fix="correct it"
        )
    if factor != 1 and value > _MOST_FRACTION:
        raise InputError(
            f"{column} {value:g} means {value * factor:g} %, which is too high",
            where=where,
            fix=f"call the column {name}_percent",
        )
    scaled = [None if number is None else number * factor for number in (low, high)]
    if name not in _RATES and value > 100:
        raise InputError(f"{column} is {value:g}, but must be at most 100", where=where, fix="correct it")
    return Score(value=value * factor, low=scaled[0], high=scaled[1])


def _number(text: str, column: str, where: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise InputError(
            f"{column} takes a number from 0 on, not {text!r}",
            where=where,
            fix="write the number without a % sign, such as 7.2",
        )
    return value


def _check_scale(rows: Sequence[ScoreRow], columns: Mapping[str, str], path: Path) -> None:
    """A column all of whose values are at most 1 may hold percentages or fractions."""
    for name, column in columns.items():
        values = [row.scores[name].value for row in rows if name in row.scores]
        if column == name and any(values) and max(values) <= 1:
            fix = (
                f"rename it to {name}_percent or {name}_fraction" if name in _RATES else "give values between 0 and 100"
            )
            raise InputError(
                f"column {name} is ambiguous: all values are at most 1, so they may be percentages or fractions",
                where=str(path),
                fix=fix,
            )


def _same(value: Any, text: str) -> bool:
    if isinstance(value, bool) or value is None:
        return str(value).lower() == text.lower()
    if isinstance(value, int | float):
        try:
            return float(text) == value
        except ValueError:
            return False
    return str(value) == text
