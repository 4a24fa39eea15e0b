"""`--find max-streams` from the command to its table, on the virtual clock with a known edge."""

import pytest
from conftest import make_case, make_record

from speechmeter.api.runs import run_study
from speechmeter.api.searching import needs
from speechmeter.api.showing import shown
from speechmeter.api.starting import Options
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Measurement
from speechmeter.plan.study import study_from_python
from speechmeter.report.page.lenses import lenses_data
from speechmeter.report.plot import figures_of
from speechmeter.report.sources import Source, read_sources

SLOTS, WORK_S = 3, 0.025
PLAN = {
    "models": [{"name": "known", "load": "known:live", "clock": "virtual", "service_s": WORK_S, "slots": SLOTS,
                "partials": False}],
    "audio": "sample", "seconds": 0.2, "pace": "fast", "chunk": "200ms", "silence": 0, "duration": "2s", "meters": [],
    "find": "max-streams", "rounds": 2, "slo": {"request_latency_p95_s": 1.5 * WORK_S, "live_completeness": "95%"},
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("capacity") / "run"
    return run_study(study_from_python(PLAN), Options(output=folder, launcher="inline"))


def verdicts(table):
    return {row.labels[1]: row.cells[0].word for row in table.rows}


def test_as_many_streams_pass_as_there_are_slots(made):
    table = made.tables()[0]
    assert table.title == "capacity"
    assert verdicts(table) == {
        "1 stream": "not confirmed: within", "2 streams": "not confirmed: within", "3 streams": "passes",
        "4 streams": "fails",
    }  # fmt: skip
    assert any("carries 3 streams, fails at 4 streams (request_latency_p95_s broke first)" in one
               for one in table.notes)  # fmt: skip


def test_throughput_grows_up_to_the_slots_and_goodput_falls_beyond(made):
    rows = {row.labels[1]: row.cells for row in made.tables("capacity")[0].rows}
    through, good = ([cells[place].estimate.value for cells in rows.values()] for place in (3, 4))
    assert through == pytest.approx([0.2 / WORK_S * min(n, SLOTS) for n in (1, 2, 3, 4)], rel=0.05)
    assert good[2] == pytest.approx(through[2]) and good[3] < 0.8 * through[3]


def test_other_bounds_can_be_applied_afterwards(made):
    (table,) = shown(made.path, "capacity", slo=f"request_latency_p95_s={3 * WORK_S}").tables
    assert verdicts(table)["4 streams"] == "passes"
    (table,) = shown(made.path, "capacity", slo="live_completeness=99.9%").tables
    assert any("are too few; at least 2,995 are needed" in note for note in table.notes)
    (table,) = shown(made.path, "capacity", slo="keep_up=0.01").tables
    assert {cell.word for row in table.rows for cell in row.cells[1:2]} == {"unavailable"}


def test_bounds_apply_to_the_capacity_alone(made):
    with pytest.raises(InputError, match="it applies to the views capacity and lenses only"):
        shown(made.path, "live", slo="keep_up=0.01")


def test_the_chart_has_the_percentiles_of_each_level_and_the_limit(made):
    (figure,) = figures_of(read_sources([str(made.path)]), "live:capacity")
    points = {(row["level"], row["series"]): row["value"] for row in figure.rows}
    assert {level for level, _ in points} == {1, 2, 3, 4}
    assert [points[level, "limit"] for level in (1, 2, 3, 4)] == pytest.approx([1.5 * WORK_S] * 4)
    # four requests at once on three slots: one in four waits for a slot
    assert [points[level, "p95"] for level in (1, 2, 3, 4)] == pytest.approx([WORK_S] * 3 + [2 * WORK_S], rel=0.01)
    assert figure.title.startswith("carries 3 streams, fails at 4 streams")


def test_what_the_slo_needs_is_said_before_anything_runs():
    lines = needs(study_from_python(PLAN))
    assert len(lines) == 2 and all("at least 59 conversations" in line for line in lines)


REFUSED = [
    ({"slo": None}, "max-streams needs an SLO"),
    (
        {"pace": None, "chunk": None, "silence": None, "duration": None, "slo": None, "meters": ["latency"]},
        "`find: max-streams` works only if every case is live",
    ),
    ({"pace": ["fast", "offline"], "meters": ["latency"]}, "`find: max-streams` works only if every case is live"),
    ({"streams": [1, 2]}, "it takes one value to start from, not 2"),
    ({"rate": 2}, "so rate cannot be set"),
    ({"find": "max-rate", "streams": 2}, "conversations arrive at a rate, so `streams` cannot be set"),
    ({"slo": "latency_p95_s=1"}, "an SLO cannot bound 'latency_p95_s'"),
    ({"find_most": 4, "streams": 8}, "find_most 4 is less than the 8"),
]


@pytest.mark.parametrize(("changes", "reason"), REFUSED)
def test_what_cannot_be_searched_is_refused(changes, reason):
    plan = {key: value for key, value in {**PLAN, **changes}.items() if value is not None}
    with pytest.raises(InputError) as raised:
        study_from_python(plan)
    assert reason in str(raised.value)


def test_a_stream_at_capacity_costs_its_share_of_the_machine(made):
    (table,) = shown(made.path, "capacity", assume=["price_per_hour=1.5"]).tables
    through = next(row for row in table.rows if row.labels[1] == "3 streams").cells[3].estimate.value
    (note,) = (one for one in table.notes if "costs" in one)
    assert f"3 streams: an hour of audio costs {1.5 / through:.3g}, if an hour of the machine costs 1.5" in note
    with pytest.raises(InputError, match="tdp_w applies to the view energy only"):
        shown(made.path, "capacity", assume=["tdp_w=65"])


def test_a_system_is_seen_offline_live_and_under_load_in_one_row(made):
    (table,) = shown(made.path, "lenses").tables
    cells = dict(zip(table.columns, table.rows[0].cells, strict=True))
    assert len(table.rows) == 1
    assert cells["capacity"].word == "carries 3 streams, fails at 4 streams"
    assert cells["request latency p50"].estimate.value == pytest.approx(WORK_S)
    assert cells["offline RTFx"].reason == "not measured"
    (table,) = shown(made.path, "lenses", slo="request_latency_p95_s=1000").tables
    assert "no higher level is known to fail" in table.rows[0].cells[-2].word


def offline(name, beside):
    """A case of 10 s of audio in 0.1 s, in a run of its own on the same machine."""
    times = Measurement.of(metrics.LATENCY, [0.1] * 3), Measurement.of(metrics.AUDIO_SECONDS, [10.0])
    record = make_record(make_case(name), *times, environment=beside.records[0].environment)
    return Source(name=name, host="", records=(record,), environments=beside.environments)


def test_the_page_has_a_section_for_systems_that_were_measured_in_several_ways(made):
    (searched,) = read_sources([str(made.path)])
    defined = {}
    alone = [offline(name, searched) for name in ("known", "other")]
    section = lenses_data([*alone, searched], defined)
    (row,) = section["rows"]  # the other one was measured in one way alone
    cells = dict(zip(section["columns"], (text for text, _ in row), strict=True))
    assert cells == {
        "system": "known · cpu", "offline RTFx": "100", "request latency p50": "25.0 ms",
        "live WER": "unavailable", "capacity": "carries 3 streams, fails at 4 streams",
    }  # fmt: skip
    assert section["notes"][1] == f"SLO: request_latency_p95_s={1.5 * WORK_S},live_completeness=95%."
    assert {metrics.RTFX.id, metrics.REQUEST_LATENCY.id} <= set(defined)
    assert lenses_data(alone, {}) is None
