"""What comes first when a run is shown and nothing was asked for."""

from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.types import Measurement, Spec
from speechmeter.report import choose

AWAY = Measurement.absent(metrics.ENERGY_CPU, "no sensor")


def lab(name, seconds, *more):
    subject = Spec(plugin="zoo", name=name, source=name)
    case = make_case(subject=subject, meters=("latency", "parameters", "energy"), seconds=seconds)
    found = Measurement.of(metrics.LATENCY, [seconds / 10]), Measurement.of(metrics.PARAMETERS, [10])
    return make_record(case, *found, *more)


def loss(name, part, **status):
    subject = Spec(plugin="transducer-loss", name=name, source=name)
    case = make_case(subject=subject, meters=("latency", "memory", "parameters"), part=part, batch=30)
    found = () if status else (Measurement.of(metrics.LATENCY, [0.01]), Measurement.of(metrics.PARAMETERS, [7]))
    return make_record(case, *found, **status)


def test_several_models_are_one_table_and_no_grid_each():
    records = [lab(name, seconds) for name in ("tera", "hubert") for seconds in (1.0, 2.0)]
    (table,) = choose.tables(records, None)
    assert table.title == "summary"
    assert len(table.rows) == len(records)
    assert any("--metric rtf" in note for note in table.notes)


def test_one_model_keeps_its_grids():
    tables = choose.tables([lab("tera", 1.0), lab("tera", 2.0)], None)
    assert "summary" not in [table.title for table in tables]
    assert any("latency" in table.title for table in tables)


def test_a_figure_that_no_model_has_is_one_line_below_the_summary_and_no_column():
    (table,) = choose.tables([lab("tera", 1.0, AWAY), lab("hubert", 1.0, AWAY)], None)
    assert table.columns == ("parameters", "parameters, tied ones twice", "latency")
    assert [note for note in table.notes if "no sensor" in note] == [
        "energy, processor, energy, processor per audio hour: unavailable: no sensor"
    ]
    some = choose.tables([lab("tera", 1.0, AWAY), lab("hubert", 1.0, Measurement.of(metrics.ENERGY_CPU, [3.0]))], None)
    assert "energy, processor" in some[0].columns


def test_energy_at_rates_of_the_reader_follows_the_summary():
    tables = choose.tables([lab("tera", 1.0, AWAY), lab("hubert", 1.0, AWAY)], None, assumed={"tdp_w": 65.0})
    assert [table.title for table in tables][:1] == ["summary"]
    assert any("rated power" in table.title for table in tables)


def test_losses_begin_with_their_ranking_and_have_no_grids_of_latency_and_memory():
    absent = {"status": "unavailable", "reason": "k2 is not installed"}
    records = [loss("ours", "loss"), loss("ours", "step"), loss("k2", "loss", **absent), loss("k2", "step", **absent)]
    tables = choose.tables(records, None)
    assert [table.title for table in tables] == ["loss alone", "whole step", "parameters"]
    assert [row.labels for row in tables[0].rows] == [("ours", "1"), ("k2", "–")]


def test_a_ranking_says_why_it_has_no_memory():
    subject = Spec(plugin="transducer-loss", name="ours", source="ours")
    case = make_case(subject=subject, meters=("latency", "memory"), part="step")
    absent = Measurement.absent(metrics.MEMORY_CPU_TOTAL, "use --launcher subprocess")
    (table,) = choose.tables([make_record(case, Measurement.of(metrics.LATENCY, [0.01]), absent)], None)
    assert "memory: use --launcher subprocess" in table.notes


def test_shares_of_modules_come_before_the_grids():
    times = Measurement.of(metrics.TIME_MODULE, [0.01], scope="module:model.encoder")
    case = make_case(meters=("latency", "modules"))
    tables = choose.tables([make_record(case, Measurement.of(metrics.LATENCY, [0.02]), times)], None)
    assert [table.title.partition(" · ")[0] for table in tables[:1]] == ["modules"]
    assert "latency" in tables[-1].title


def test_modules_that_were_not_timed_are_no_headline():
    absent = Measurement.absent(metrics.TIME_MODULE, "use --launcher subprocess")
    case = make_case(meters=("latency", "modules"))
    tables = choose.tables([make_record(case, Measurement.of(metrics.LATENCY, [0.02]), absent)], None)
    assert "latency" in tables[0].title
