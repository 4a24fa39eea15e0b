"""The table of growth: which lines it has, what `--at` adds, and what it says where it cannot tell."""

import pytest
from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Measurement
from speechmeter.report.choose import tables
from speechmeter.report.growth import read_at

ROUNDS = (1.0, 1.03, 0.98)


def grid(seconds=(1.0, 2.0, 4.0, 8.0, 16.0), batches=(1, 2, 4), rounds=ROUNDS, **changes):
    """Latency (0.1 + s) × (1 + b), memory s², FLOPs linear in both."""
    return [
        make_record(
            make_case(seconds=s, batch=b, **changes),
            Measurement.of(metrics.LATENCY, [(0.1 + s) * (1 + b) * factor]),
            Measurement.of(metrics.MEMORY_CPU_PEAK, [1e6 * s * s * factor]),
            Measurement.of(metrics.FLOPS, [1e9 * s * b]),
            Measurement.of(metrics.ITEMS, [float(b)]),
            round=round,
        )
        for s in seconds
        for b in batches
        for round, factor in enumerate(rounds)
    ]


def rows(table):
    heads = (*table.labels, *table.columns)
    return [dict(zip(heads, [*row.labels, *(cell.text() for cell in row.cells)], strict=True)) for row in table.rows]


def test_each_figure_has_a_row_along_each_axis_for_each_value_of_the_other():
    growth, _ = tables(grid(), "growth")
    found = [(row["figure"], row["along"], row["held"]) for row in rows(growth)]
    assert ("latency", "seconds 1–16 (5)", "batch 4") in found
    assert ("FLOPs", "batch 1–4 (3)", "seconds 8") in found
    assert len(found) == len(set(found)) == 3 * (3 + 5)


def test_exponents_and_parts_are_those_of_the_figures():
    growth = tables(grid(batches=(1,)), "growth")[0]
    latency, memory, flops = rows(growth)
    assert memory["exponent"].startswith("2.00 [") and flops["exponent"] == "1.00 [1.00, 1.00]"
    assert memory["quadratic part"].startswith("100 % [")
    assert flops["quadratic part"] == "0 %"
    assert latency["curve within"].endswith(" %")


def test_cases_of_different_protocol_are_lines_of_their_own():
    both = [*grid(seconds=(1.0, 2.0), batches=(1,)), *grid(seconds=(1.0, 2.0), batches=(1,), protocol={"samples": 99})]
    (growth,) = tables(both, "growth")
    latency = [row for row in rows(growth) if row["figure"] == "latency"]
    assert [row["along"] for row in latency] == ["seconds 1–2 (2)", "seconds 1–2 (2)"]
    assert [row["held"] for row in latency] == ["batch 1, samples 3", "batch 1, samples 99"]


def test_one_size_under_two_protocols_is_no_line():
    failed = make_record(make_case(seconds=5.0), status="crashed")
    one = {"seconds": (1.0,), "batches": (1,)}
    (table,) = tables([*grid(**one), *grid(**one, protocol={"samples": 99}), failed], "growth")
    assert table.notes == ("growth needs values at two or more sizes: measure several lengths or batch sizes.",)


def test_a_size_that_was_not_measured_stands_with_its_interval_and_the_word():
    growth = tables(grid(batches=(1,)), "growth", at=[("seconds", 32.0)])[0]
    latency = rows(growth)[0]["at seconds 32"]
    assert latency.endswith("extrapolated") and "[" in latency
    assert "seconds 32 is 2 times the largest measured size." in growth.notes
    inside = tables(grid(batches=(1,)), "growth", at=[("seconds", 3.0)])[0]
    assert rows(inside)[0]["at seconds 3"].endswith("interpolated")


def test_every_size_on_an_axis_has_its_column():
    growth = tables(grid(batches=(1,)), "growth", at=[("seconds", 32.0), ("seconds", 64.0)])[0]
    assert growth.columns[-2:] == ("at seconds 32", "at seconds 64")
    first, second = (rows(growth)[0][column] for column in growth.columns[-2:])
    assert first != second
    assert [note for note in growth.notes if "the largest measured" in note] == [
        "seconds 32 is 2 times the largest measured size.",
        "seconds 64 is 4 times the largest measured size.",
    ]


def test_a_size_on_an_axis_that_was_not_swept_has_a_reason_and_no_column():
    (growth,) = tables(grid(batches=(1,)), "growth", at=[("batch", 64.0)])
    assert growth.columns[-1] == "curve within"
    assert "no extrapolation along batch: fewer than two sizes were measured of batch." in growth.notes


def test_extrapolation_is_explained_only_where_there_is_some():
    inside, beyond = (tables(grid(batches=(1,)), "growth", at=[("seconds", size)])[0] for size in (3.0, 32.0))
    assert not any(note.startswith("values at unmeasured sizes are extrapolated with") for note in inside.notes)
    assert any(note.startswith("values at unmeasured sizes are extrapolated with") for note in beyond.notes)


def test_one_round_gives_no_extrapolation_and_says_why():
    growth = tables(grid(batches=(1,), rounds=(1.0,)), "growth", at=[("seconds", 32.0)])[0]
    latency, _, flops = rows(growth)
    assert latency["at seconds 32"] == "no interval"
    assert flops["at seconds 32"].endswith("extrapolated")
    assert any("needs at least 4 sizes with two rounds" in note for note in growth.notes)


def test_what_no_curve_comes_near_is_named():
    odd = [make_record(make_case(seconds=s), Measurement.of(metrics.LATENCY, [v]))
           for s, v in ((1.0, 1.0), (2.0, 5.0), (4.0, 1.0), (8.0, 5.0))]  # fmt: skip
    (growth,) = tables(odd, "growth")
    assert any(note.startswith("the curve a + b·x + c·x² does not fit latency along seconds") for note in growth.notes)


def test_the_saturating_batch_stands_below_for_each_length():
    _, saturation = tables(grid(batches=(1, 2, 4, 8, 16)), "growth")
    found = rows(saturation)
    assert [row["held"] for row in found] == ["seconds 1", "seconds 2", "seconds 4", "seconds 8", "seconds 16"]
    assert all(row["saturating batch"].startswith("8 [") for row in found)
    _, still = tables(grid(batches=(1, 2)), "growth")
    assert rows(still)[0]["saturating batch"] == "not reached at 2"


def test_a_run_of_one_size_says_what_growth_needs():
    (table,) = tables(grid(seconds=(1.0,), batches=(1,)), "growth")
    assert table.notes == ("growth needs values at two or more sizes: measure several lengths or batch sizes.",)


@pytest.mark.parametrize("text", ["second=60", "seconds", "seconds=", "seconds=-1", "batch=nan", "batch=inf"])
def test_a_size_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="`at`"):
        read_at([text])


def test_sizes_are_read_with_their_axis_each_once():
    read = read_at(["seconds=60", " batch = 8", "seconds=120", "seconds=60.0"])
    assert read == [("seconds", 60.0), ("batch", 8.0), ("seconds", 120.0)]
