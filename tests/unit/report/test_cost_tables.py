"""Golden files of the tables of FLOPs, operators, peaks, energy, cascades, and of the overviews, in every format."""

from dataclasses import replace
from pathlib import Path

import pytest
from conftest import make_case, make_record
from golden_files import check_golden

from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.report import choose
from speechmeter.report.text import json_text

GOLDEN = Path(__file__).parent / "golden"
METERS = ("latency", "parameters", "flops", "operators", "peaks", "energy")


def counted():
    return [
        Measurement.of(
            metrics.FLOPS,
            [8e9, 12e9],
            notes={
                "counted on": "shapes alone",
                "unknown": {"plug::kernel": 2},
                "no arithmetic by torch in": ["features"],
            },
        ),
        Measurement.of(
            metrics.FLOPS_BACKWARD,
            [2e10],
            notes={"recompute": [5e9], "attention": ["aten::_flash_attention_backward"]},
        ),
        Measurement.of(metrics.ELEMENT_OPS, [3e7]),
        Measurement.of(metrics.BYTES_MOVED, [2**30]),
        Measurement.absent(metrics.FLOPS, "torch computed nothing in it", scope="stage:features"),
        Measurement.of(metrics.FLOPS, [1e10], scope="stage:model"),
        Measurement.of(metrics.BYTES_MOVED, [2**30], scope="stage:model"),
        Measurement.of(metrics.FLOPS, [9e9], scope="module:model.encoder"),
        Measurement.of(metrics.PARAMETERS, [9e7], scope="module:model.encoder"),
        Measurement.of(metrics.FLOPS, [1e10], scope="op:aten::mm", notes={"kind": "matrix", "calls": 12}),
        Measurement.of(metrics.ELEMENT_OPS, [3e7], scope="op:aten::gelu", notes={"kind": "elements", "calls": 12}),
        Measurement.absent(metrics.FLOPS, "nobody knows it", scope="op:plug::kernel", notes={"kind": "unknown"}),
        Measurement.of(metrics.TOKENS, [40]),
    ]


def profiled():
    kinds = {"matrix": 0.045, "elements": 0.004, "moves": 0.0, "wraps": 0.0, "unknown": 0.001}
    return [
        Measurement.of(metrics.TIME_OPERATOR, [0.05]),
        *(Measurement.of(metrics.TIME_OPERATOR, [time], scope=f"kind:{kind}") for kind, time in kinds.items()),
        Measurement.of(metrics.TIME_OPERATOR, [0.045], scope="op:aten::mm", notes={"kind": "matrix"}),
        Measurement.of(metrics.TIME_OPERATOR, [0.004], scope="op:aten::gelu", notes={"kind": "elements"}),
        Measurement.of(metrics.TIME_OPERATOR, [0.001], scope="op:plug::kernel", notes={"kind": "unknown"}),
        Measurement.of(metrics.TIME_GPU, [0.04]),
    ]


def powered(scale):
    return [
        Measurement.of(metrics.ENERGY_GPU, [20.0 * scale, 21.0 * scale, 19.0 * scale], source="NVML"),
        Measurement.of(metrics.ENERGY_GPU_NET, [15.0 * scale]),
        Measurement.of(metrics.POWER_GPU, [400.0]),
        Measurement.of(metrics.POWER_GPU_IDLE, [100.0]),
        Measurement.absent(metrics.ENERGY_CPU, "powercap is missing"),
    ]


def record(round=0, scale=1.0):
    """A case on a GPU; exact figures stand in the first round alone, as a run leaves them."""
    return make_record(
        make_case("model", device="cuda", meters=METERS),
        Measurement.of(metrics.LATENCY, [0.05 * scale, 0.051 * scale, 0.049 * scale]),
        Measurement.of(metrics.LATENCY, [0.01], scope="stage:features"),
        Measurement.of(metrics.LATENCY, [0.04], scope="stage:model"),
        Measurement.of(metrics.AUDIO_SECONDS, [10.0]),
        Measurement.of(metrics.ITEMS, [1]),
        *(counted() if round == 0 else []),
        *profiled(),
        Measurement.of(metrics.PEAK_FLOPS, [1e12], notes={"side": 2048, "tries": [9e11, 1e12]}),
        Measurement.of(metrics.PEAK_BANDWIDTH, [1e11]),
        *powered(scale),
        round=round,
    )


RECORDS = [record(0), record(1, scale=1.02)]
STATED = {"tdp_w": 700.0, "co2_g_per_kwh": 400.0, "price_per_kwh": 0.3}


@pytest.mark.parametrize("metric", ["flops", "modules", "operators", "coverage", "utilisation", "energy"])
def test_golden(metric):
    check_golden(GOLDEN / f"{metric}.json", json_text(choose.tables(RECORDS, metric)))


def model(name, parameters, flops, time):
    """One of several models of a cell, and of a second cell where it takes twice as long."""
    return [
        make_record(
            make_case(name, seconds=seconds, meters=("latency", "parameters", "flops")),
            Measurement.of(metrics.LATENCY, [time * seconds, 1.1 * time * seconds]),
            Measurement.of(metrics.AUDIO_SECONDS, [seconds]),
            Measurement.of(metrics.PARAMETERS, [parameters]),
            Measurement.of(metrics.PARAMETERS_TIED, [parameters]),
            Measurement.of(metrics.FLOPS, [flops * seconds]),
        )
        for seconds in (1.0, 2.0)
    ]


MODELS = [
    record
    for made in (
        model("a", 1e6, 5e9, 0.1),
        model("b", 2e6, 2e9, 0.2),
        model("c", 3e6, 7e9, 0.3),
        model("d", 4e6, 9e9, 0.4),
    )
    for record in made
]


def stage(name, time, flops, growth, weights, clocked=True):
    scope = f"stage:{name}"
    return [
        Measurement.of(metrics.LATENCY, [time], scope=scope, notes={"clocked": clocked}),
        *([Measurement.of(metrics.FLOPS, [flops], scope=scope)] if flops else []),
        Measurement.of(metrics.MEMORY_CPU_PEAK, [growth], scope=scope),
        *([Measurement.of(metrics.MEMORY_WEIGHTS, [weights], scope=scope)] if weights else []),
    ]


CASCADES = [
    make_record(
        make_case("two", meters=("latency", "memory", "flops")),
        Measurement.of(metrics.AUDIO_SECONDS, [4.0]),
        Measurement.of(metrics.LATENCY, [0.5]),
        Measurement.of(metrics.FLOPS, [3e9]),
        Measurement.of(metrics.TOKENS, [20.0]),
        Measurement.of(metrics.TOKENS, [20.0], scope="stage:st.model"),
        *stage("st.model", 0.3, 2e9, 2**26, 2**28),
        *stage("st→tts", 0.001, 0, 2**20, 0, clocked=False),
        *stage("tts.model", 0.2, 1e9, 2**27, 2**25),
        Measurement.of(metrics.AUDIO_MADE, [2.0], scope="stage:tts.model"),
    ),
    make_record(
        make_case("direct", meters=("latency", "memory", "flops")),
        Measurement.of(metrics.AUDIO_SECONDS, [4.0]),
        Measurement.of(metrics.LATENCY, [0.4]),
        Measurement.of(metrics.FLOPS, [2e9]),
        Measurement.of(metrics.MEMORY_CPU_PEAK, [2**27]),
        Measurement.of(metrics.MEMORY_WEIGHTS, [2**28]),
    ),
]


@pytest.mark.parametrize(("records", "metric"), [(MODELS, "summary"), (MODELS, "relations"), (CASCADES, "cascades")])
def test_golden_of_overviews(records, metric):
    check_golden(GOLDEN / f"{metric}.json", json_text(choose.tables(records, metric)))


def test_golden_of_what_the_reader_states():
    check_golden(GOLDEN / "energy-assumed.json", json_text(choose.tables(RECORDS, "energy", assumed=STATED)))


def test_without_a_word_every_meter_has_its_table():
    titles = [table.title for table in choose.tables(RECORDS, None)]
    assert [title.rpartition(": ")[2] for title in titles] == [
        "real-time factor",
        "parameters",
        "FLOPs",
        "operators by own-time",
        "time in operators, by kind",
        "utilisation",
        "energy, GPU",
        "energy, processor",
    ]


def test_a_table_whose_meters_were_not_asked_for_says_so():
    record = make_record(make_case(meters=("latency", "flops")), Measurement.of(metrics.LATENCY, [1.0]))
    (table,) = choose.tables([record], "utilisation")
    assert table.notes[-1] == "this table needs the meter peaks, which the run did not ask for"
    assert table.rows[0].cells[0].reason == "mfu needs flops, peak_flops, which this run does not have"


def test_what_follows_from_a_missing_reading_is_missing_for_the_same_reason():
    (_, processor) = choose.tables(RECORDS, "energy", assumed={"co2_g_per_kwh": 400.0})
    assert {(cell.word, cell.reason) for cell in processor.rows[0].cells} == {("unavailable", "powercap is missing")}


def test_cells_that_the_plan_left_out_are_in_no_overview():
    skipped = make_record(
        make_case("a", seconds=32.0),
        status="skipped",
        reason="excluded by `triangle`, which skips long audio with a large batch",
    )
    (table,) = choose.tables([*MODELS, skipped], "summary")
    assert len(table.rows) == len(MODELS)
    (table,) = choose.tables([*MODELS, skipped], "relations")
    assert table.columns == ("cpu · 1 s × 1", "cpu · 2 s × 1")


def test_a_rated_power_is_a_table_of_its_own_and_no_energy():
    tables = choose.tables(RECORDS, "energy", assumed={"tdp_w": 700.0})
    assert [table.title for table in tables] == ["energy, GPU", "energy, processor", "energy at the rated power"]
    assert not any("rated" in column for table in tables[:-1] for column in table.columns)
    assert all(cell.word == "unavailable" for cell in tables[1].rows[0].cells)


def test_after_a_timeout_rows_say_what_was_not_reached_and_nothing_else():
    kept = ("latency.v1", "audio_seconds.v1", "tokens.v1", "audio_made_seconds.v1")
    timed = [m for m in CASCADES[0].measurements if m.metric in kept]
    late = replace(
        CASCADES[0], measurements=tuple(timed), status="timeout", reason="memory pass: over the limit of 60 s"
    )
    (table,) = choose.tables([late], "cascades")
    assert [row.labels[1] for row in table.rows] == ["total", "st", "st→tts", "tts"]
    columns = zip(*([cell.text().partition(" (1 of 1")[0] for cell in row.cells] for row in table.rows), strict=True)
    words = dict(zip(table.columns, columns, strict=True))
    assert words["tokens"] == ("20.0", "20.0", "–", "–")
    assert words["time per token"] == ("25.0 ms", "15.0 ms", "–", "–")
    assert words["memory needed"] == ("timeout", "timeout", "–", "timeout")
    assert words["FLOPs"][0] == "timeout"
    below = "\n".join(table.notes)
    assert "timeout: memory pass: over the limit of 60 s" in below
    assert "torch module" not in below


def test_parts_of_a_count_that_failed_have_the_reason_of_the_whole():
    kept = [m for m in CASCADES[0].measurements if m.metric != "flops.v1"]
    why = "shapes pass: timeout: over the limit of 60 s"
    failed = replace(CASCADES[0], measurements=(*kept, Measurement.absent(metrics.FLOPS, why)))
    (table,) = choose.tables([failed], "cascades")
    column = table.columns.index("FLOPs")
    assert [(row.cells[column].word, row.cells[column].reason) for row in table.rows] == [("unavailable", why)] * 4


def test_features_of_a_case_that_failed_later_are_still_no_audio():
    kept = [m for m in CASCADES[0].measurements if m.metric in ("latency.v1", "tokens.v1")]
    timed = (*kept, Measurement.of(metrics.ITEMS, [1.0]))
    late = replace(CASCADES[0], measurements=timed, status="timeout", reason="memory pass: over the limit of 60 s")
    (table,) = choose.tables([late], "cascades")
    column = table.columns.index("real-time factor")
    assert {(row.cells[column].word, row.cells[column].reason) for row in table.rows} == {
        ("unavailable", "the input is not audio")
    }


def test_a_summary_of_another_statistic_says_which():
    (table,) = choose.tables(MODELS, "summary", "mean-sd")
    assert (
        "latency and real-time factor: mean ± standard deviation of all samples; the statistic does "
        "not affect the other columns." in table.notes
    )
    (usual,) = choose.tables(MODELS, "summary")
    assert not any("standard deviation" in note for note in usual.notes)
