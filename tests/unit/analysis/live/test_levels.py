"""The number of streams at which a system stops keeping up: that of a model with a known edge is found exactly."""

import pytest
from conftest import make_record

from speechmeter.analysis.live.levels import edge, ladders
from speechmeter.api.runs import run_study
from speechmeter.api.starting import Options
from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.plan.study import study_from_python
from speechmeter.report.streams import streams

WORK_S, SLOTS, CHUNK_S = 0.0625, 2, 0.125
"""So 4 streams fill the slots: N · 0.0625 <= 2 · 0.125."""
PLAN = {
    "models": [{"name": "known", "load": "known:live", "clock": "virtual", "service_s": WORK_S, "slots": SLOTS,
                "segment_words": 1}],
    "audio": "sample", "seconds": 64, "pace": "realtime", "chunk": f"{CHUNK_S}s", "phase": "aligned", "turns": 1,
    "answer_timeout": "300s", "streams": [1, 2, 4, 8], "rounds": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("levels")
    return run_study(study_from_python(PLAN), Options(output=folder / "run", launcher="inline")).records


def test_the_edge_of_paced_streams_is_found_where_the_work_fills_the_slots(records):
    (levels,) = ladders(records)
    assert [level.streams for level in levels] == [1, 2, 4, 8]
    assert [level.verdict for level in levels] == ["keeps up"] * 3 + ["falls behind"]
    assert edge(levels) == (4, 8)
    # eight streams need twice the slots: each second of audio takes two, so a second of delay is added
    assert levels[3].slope.value == pytest.approx(8 * WORK_S / (SLOTS * CHUNK_S) - 1, rel=0.02)
    backlog = [max(level.records[0].find(metrics.BACKLOG.id).values) for level in levels]
    assert backlog[3] > 20 * max(backlog[:3])


def test_the_table_names_the_edge(records):
    (table,) = streams(records)
    assert [(row.labels[1], row.cells[0].word) for row in table.rows] == [
        ("1", "keeps up"), ("2", "keeps up"), ("4", "keeps up"), ("8", "falls behind"),
    ]  # fmt: skip
    assert "known · cpu · 64 s × 1: keeps up with 4 streams, falls behind with 8 streams." in table.notes


def made(records, slopes, warnings=()):
    """Rounds of one case with these slopes of its streams."""
    case = records[0].case
    return [
        make_record(case, Measurement.of(metrics.KEEP_UP, values), round=place, warnings=list(warnings))
        for place, values in enumerate(slopes)
    ]


@pytest.mark.parametrize(
    ("slopes", "verdict"),
    [
        ([(0.0, 0.004)], "keeps up"),
        ([(0.02, 0.03)], "falls behind"),
        ([(0.0,), (0.001,)], "keeps up"),
        ([(0.009,), (0.012,)], "undecided"),  # the mean is at the bound, and two rounds do not say on which side
        ([(0.5,), (0.51,)], "falls behind"),
        ([(-0.5,)], "keeps up"),
    ],
)
def test_a_level_is_judged_over_rounds(records, slopes, verdict):
    ((level,),) = ladders(made(records, slopes))
    assert level.verdict == verdict


def test_answers_that_never_came_in_time_are_falling_behind(records):
    absent = Measurement.absent(metrics.KEEP_UP, "no final text")
    answers = Measurement.of(metrics.LIVE_ANSWERED, [0.0, 1.0], notes={"errors": ["timeout", ""]})
    ((level,),) = ladders([make_record(records[0].case, absent, answers)])
    assert (level.verdict, level.timed_out) == ("falls behind", 1)
    broken = Measurement.of(metrics.LIVE_ANSWERED, [0.0], notes={"errors": ["refused"]})
    ((level,),) = ladders([make_record(records[0].case, absent, broken)])
    assert level.verdict == ""


def test_without_a_slope_nothing_is_judged_and_a_late_client_is_named(records):
    absent = make_record(records[0].case, Measurement.absent(metrics.KEEP_UP, "the stream is shorter than a minute"))
    ((level,),) = ladders([absent])
    assert (level.verdict, level.slope) == ("", None)
    assert edge([level]) == (None, None)
    (table,) = streams([absent])
    assert any("it is not known whether it keeps up" in note for note in table.notes)
    assert any("shorter than a minute" in note for note in table.notes)
    late = made(records, [(0.5,)], warnings=["client-bound: sends were late by 90 ms"])
    (table,) = streams(late)
    assert any("at 1 the client itself was late, so the system may serve more streams" in note for note in table.notes)
