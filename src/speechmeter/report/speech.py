"""Systems that speak as tables: when sound comes, how it plays, what is in it, and how long answers to speech take."""

from __future__ import annotations

from collections.abc import Sequence

from speechmeter.analysis.live.measure import HEARD_BY, PREBUFFER
from speechmeter.core import metrics
from speechmeter.core.metrics import Metric
from speechmeter.core.types import Case, Record
from speechmeter.report.grids import warning_notes
from speechmeter.report.live import TEXT, Column, Groups, live_groups, live_labels, live_names, live_table, with_more
from speechmeter.report.numbers import number
from speechmeter.report.tables import Table

_LABELS = ("system", "text", "streams")
_STARTS: tuple[Column, ...] = (
    ("first byte p50", metrics.FIRST_BYTE, "p50"),
    ("first sound p50", metrics.FIRST_SOUND, "p50"),
    ("first sound p95", metrics.FIRST_SOUND, "p95"),
    ("cold", metrics.FIRST_SOUND_COLD, "geomean"),
    ("leading silence p50", metrics.LEADING_SILENCE, "p50"),
)
_PLAYS: tuple[Column, ...] = (
    ("speech RTF", metrics.SPEECH_RTF, "geomean"),
    ("longest underrun", metrics.UNDERRUN_LONGEST, "max"),
    ("underrun, sum", metrics.UNDERRUN_TOTAL, "max"),
    ("underruns", metrics.UNDERRUN_COUNT, "geomean"),
    ("delay that avoids them", metrics.PREBUFFER_NEEDED, "max"),
)
_SOUND: tuple[Column, ...] = (
    ("complete", metrics.LIVE_COMPLETENESS, "geomean"),
    ("sound made", metrics.SOUND_MADE, "geomean"),
    ("speaking rate", metrics.SPEAKING_RATE, "geomean"),
    ("level", metrics.SOUND_LEVEL, "p50"),
    ("clipped, largest", metrics.CLIPPING, "max"),
    ("round-trip WER", metrics.ROUND_TRIP_WER, "geomean"),
)
_ANSWERS: tuple[Column, ...] = (
    ("voice to voice p50", metrics.VOICE_TO_VOICE, "p50"),
    ("voice to voice p95", metrics.VOICE_TO_VOICE, "p95"),
    ("recognition p50", metrics.VOICE_RECOGNITION, "p50"),
    ("text p50", metrics.VOICE_THINKING, "p50"),
    ("synthesis p50", metrics.VOICE_SYNTHESIS, "p50"),
    ("silence p50", metrics.VOICE_ONSET, "p50"),
)
SHOWN: tuple[Metric, ...] = tuple(dict.fromkeys(metric for _, metric, _ in (*_STARTS, *_PLAYS, *_SOUND)))
ANSWERS: tuple[Metric, ...] = tuple(dict.fromkeys(metric for _, metric, _ in _ANSWERS))
"""What the tables show of voices, and of answers to speech."""


def speech(records: Sequence[Record]) -> list[Table]:
    """A row for each system, pace of the text and number of streams."""
    groups = speaking_groups(records)
    if not groups:
        return []
    labels = _labels(groups)
    made = [
        live_table("speech: start", groups, labels, _STARTS, records, headings=_LABELS),
        _with_prebuffer(live_table("speech: playback", groups, labels, _PLAYS, records, headings=_LABELS), groups),
        _with_ear(live_table("speech: sound", groups, labels, _SOUND, records, headings=_LABELS), groups),
    ]
    answering = {key: group for key, group in groups.items() if group[0].case.workload.plugin != TEXT}
    if answering:
        table = live_table("speech: answers to speech", answering, labels, _ANSWERS, records, headings=_LABELS)
        made.append(
            with_more(table, ["in each conversation, the four parts add up to voice to voice; their medians need not."])
        )
    notes = warning_notes(list(groups.values()), metrics.FIRST_SOUND, live_names(groups))
    return [*made[:-1], with_more(made[-1], notes)]


def speaks(record: Record) -> bool:
    """Whether a live record is of a system that speaks."""
    return record.case.live is not None and (
        record.find(metrics.FIRST_SOUND.id) is not None or record.case.workload.plugin == TEXT
    )


def speaking_groups(records: Sequence[Record]) -> Groups:
    """The cases of systems that speak."""
    return {key: group for key, group in live_groups(records).items() if any(map(speaks, group))}


def _labels(groups: Groups) -> dict[str, tuple[str, ...]]:
    """(system, how the text comes, streams) of each case."""
    cases = {key: group[0].case for key, group in groups.items()}
    return {
        key: (system, _pace(cases[key]), many) for key, (system, _, many) in live_labels(groups).items()
    }  # fmt: skip


def _pace(case: Case) -> str:
    if case.workload.plugin != TEXT:
        return "spoken"
    return "at once" if case.axes.text_pace is None else f"{case.axes.text_pace:g} tokens/s"


def _with_prebuffer(table: Table, groups: Groups) -> Table:
    found = sorted(_noted(groups, metrics.UNDERRUN_TOTAL.id, PREBUFFER))
    if not found:
        return table
    said = " or ".join(number(float(one), "s") for one in found)
    return with_more(
        table,
        [
            f"playback starts when {said} of sound have arrived, and continues as soon as more "
            "sound arrives after a pause."
        ],
    )


def _with_ear(table: Table, groups: Groups) -> Table:
    found = sorted(filter(None, _noted(groups, metrics.ROUND_TRIP_WER.id, HEARD_BY)))
    line = f"round-trip WER: includes the errors of the recogniser ({', '.join(found)}), not only those of the voice."
    return with_more(table, [line]) if found else table


def _noted(groups: Groups, metric: str, note: str) -> set[str]:
    found = (record.find(metric) for group in groups.values() for record in group)
    return {str(one.notes[note]) for one in found if one is not None and note in one.notes}
