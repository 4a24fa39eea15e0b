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
from speechmeter.report.choose import NEEDS, WORDS
from speechmeter.report.tables import NOT_MEASURED, Table

_WHOLE = ("quality", "beside")
"""Views whose other columns say nothing without their meters."""
_WITHOUT: dict[str, tuple[str, str]] = {
    "losses": ("measured no transducer loss", "--set losses='[ours, torchaudio]'"),
    "inputs": ("measured no case on noise and on real audio", "--set audio='[noise, sample]'"),
    "utterances": ("has no dataset with one utterance a call", "--data LIST --batch 1"),
    "growth": ("has no case at several lengths or batch sizes", "--seconds 1,2,4,8"),
    "frontier": ("searched for no largest size", "--batch 1 --find max-batch"),
    "relations": ("has too few models to rank by two figures", "--set models='[A, B, C, D]'"),
}
"""Views that need other cases, not other meters: what the run lacks, and the flags that change it."""
_FLAGS = {"trace": "--set trace=true"}
"""Meters that are asked for in another way than by `--meters`."""


def refuse_absent(
    found: Sequence[Table], records: Sequence[Record], metric: str | None, run: Path, *, beside: bool = False
) -> None:
    """Raise InputError where a view has no figure because the run did not ask for it, or has no such cases.

    A view without figures whose meters were asked for is left alone: its cells say what became of them.
    """
    word = "beside" if beside else metric
    if word is None or not records:
        return
    figures = any(
        one.estimate is not None for table in found for row in table.rows for c in row.cells for one in c.figures
    )
    missing = _missing(records, word)
    if missing and (word in _WHOLE or not figures):
        asked = list(dict.fromkeys(name for record in records for name in record.case.meters))
        names = f"meter{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        raise _refusal(f"this run did not ask for the {names}", _flags([*asked, *missing]), records, word, run)
    if figures:
        return
    if word in _WITHOUT:
        lack, flags = _WITHOUT[word]
        raise _refusal(f"this run {lack}", flags, records, word, run)
    words = {cell.word for table in found for row in table.rows for cell in row.cells}
    if words <= {NOT_MEASURED, ""}:
        raise InputError(f"this run has no figures of {word}", where="--metric", fix=_others(records))


def _missing(records: Sequence[Record], word: str) -> list[str]:
    """The meters of a view that no case asked for."""
    asked = {name for record in records for name in record.case.meters}
    if word == "modules":  # one meter has its times, another its FLOPs
        return [] if asked & {"modules", "flops"} else ["modules"]
    needed = NEEDS[word] if word in NEEDS else () if word in WORDS else _meters_of(records, word)
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
    new = shlex.quote(f"{str(run).rstrip('/')}-{'split' if word == 'beside' else word}")
    named = shlex.quote(str(plan)) if plan.is_file() else "PLAN.yaml"
    return InputError(what, where=f"--metric {word}" if word != "beside" else "--split",
                      fix=f"measure it with: speechmeter run {named} {flags}{trust} -o {new}")  # fmt: skip


def _others(records: Sequence[Record]) -> str:
    asked = ", ".join(dict.fromkeys(name for record in records for name in record.case.meters))
    return f"its meters are {asked}; --metric summary has a figure of each"
