"""The edge of what fits, from records alone: those of a search, and those of an ordinary grid."""

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.frontier import edges
from speechmeter.core.protocol import SearchProtocol
from speechmeter.report.choose import tables
from speechmeter.report.numbers import figure

OOM = {"status": "oom", "reason": "can't allocate memory"}


def trial(value, find="max-batch", axis="batch", margin=0.05, memory_gib=2.0, status="ok", reason="", **axes):
    protocol = SearchProtocol(find=find, margin=margin, memory_gib=memory_gib)
    return [make_record(make_case(**{axis: value}, protocol=protocol, **axes), status=status, reason=reason)]


def only(cases):
    (edge,) = edges(cases)
    return edge


def test_both_sides_of_the_edge_and_the_margin_below_it():
    edge = only([trial(1), trial(64, **OOM), trial(40), trial(41, **OOM)])
    assert (edge.fits.value, edge.fails.value, edge.safe.value) == (40, 41, 38)
    assert edge.trials == 4 and not edge.stop and not edge.doubt
    assert edge.largest[0].case.axes["batch"] == 40


def test_the_margin_is_the_plans():
    assert only([trial(40, margin=0.2), trial(41, margin=0.2, **OOM)]).safe.value == 32
    assert only([trial(1), trial(2, **OOM)]).safe.value == 1


def test_a_search_that_met_no_failure_knows_a_lower_bound_and_no_safe_value():
    edge = only([trial(1), trial(512)])
    assert figure(edge.fits) == "≥ 512"
    assert edge.fails is None and edge.safe is None
    assert "nothing ran out of memory" in edge.stop


def test_where_nothing_fits_the_reason_is_told():
    edge = only([trial(4, **OOM), trial(2, **OOM), trial(1, **OOM)])
    assert edge.fits is None and edge.fails.value == 1
    assert edge.stop == "nothing that was tried fits: can't allocate memory"


@pytest.mark.parametrize("status", ["timeout", "error", "crashed"])
def test_another_failure_is_named_and_is_no_edge(status):
    edge = only([trial(8), trial(16, status=status, reason="why")])
    assert edge.fails is None and edge.safe is None
    assert edge.stop == f"batch 16 ended otherwise: {status}: why"


def test_a_round_that_ran_out_of_memory_counts_more_than_one_that_did_not():
    case = make_case(batch=8)
    edge = only([[make_record(make_case(batch=4))], [make_record(case), make_record(case, round=1, **OOM)]])
    assert (edge.fits.value, edge.fails.value) == (4, 8)


def test_what_speaks_against_the_assumption_is_said():
    edge = only([trial(4), trial(8, **OOM), trial(16)])
    assert edge.fits.value == 4
    assert edge.doubt == "batch 16 fitted, and 8 did not"


def test_each_length_of_a_grid_has_its_own_edge_and_skipped_cells_have_none():
    cases = [
        [make_record(make_case(seconds=s, batch=b), **({} if s * b <= 8 else OOM))] for s in (1.0, 4.0) for b in (2, 8)
    ]
    cases.append([make_record(make_case(seconds=9.0), status="skipped")])
    found = {edge.case.axes["seconds"]: (edge.fits, edge.fails) for edge in edges(cases)}
    assert {s: (f.value, g and g.value) for s, (f, g) in found.items()} == {1.0: (8, None), 4.0: (2, 8)}


def test_seconds_are_not_rounded():
    edge = only(
        [
            trial(1234.5, "max-seconds", "seconds"),
            trial(1240.0, "max-seconds", "seconds", **OOM),
        ]
    )
    assert (figure(edge.fits), figure(edge.fails), figure(edge.safe)) == ("1,234.5", "1,240", "1,172.7")


def test_a_run_of_a_search_shows_its_frontier_and_its_limit_first():
    records = [record for group in (trial(4), trial(8, **OOM), trial(6), trial(7, **OOM)) for record in group]
    (table,) = tables(records, None)
    assert table.title == "largest batch that fits"
    assert [cell.text() for cell in table.rows[0].cells[:3]] == ["6", "7", "5"]
    assert "a limit of 2 GiB; safety margin 5 % of what fits." in table.notes


def test_lines_that_cannot_be_had_are_named_below_the_table():
    absent = trial(1, status="unavailable", reason="not installed")
    (table,) = tables([*trial(4), *trial(5, **OOM), *absent], None)
    assert table.notes[-1] == "fake: unavailable: not installed"


def test_a_gap_that_is_wider_than_the_margin_is_told():
    notes = [tables([*trial(32), *trial(fails, **OOM)], None)[0].notes for fails in (33, 64)]
    said = "all: nothing between batch 32 and 64 was tried."
    assert [said in found for found in notes] == [False, True]


def test_large_sizes_are_written_out():
    axis = {"find": "max-frames", "axis": "max_frames"}
    (table,) = tables([*trial(1_200_000, **axis), *trial(2_400_000, **axis, **OOM)], None)
    assert "all: nothing between max_frames 1,200,000 and 2,400,000 was tried." in table.notes
    edge = only([trial(1_200_000, **axis), trial(2_400_000, **axis, status="crashed", reason="why")])
    assert edge.stop == "max_frames 2,400,000 ended otherwise: crashed: why"


def test_lines_under_several_limits_are_told_apart():
    records = [
        record
        for gib, most in ((1.0, 8), (2.0, 16))
        for size in (most, most + 1)
        for record in trial(size, memory_gib=gib, **(OOM if size > most else {}))
    ]
    (table,) = tables(records, None)
    names = [(row.labels[0].rpartition(" · ")[2], row.cells[0].text()) for row in table.rows]
    assert names == [("a limit of 1 GiB", "8"), ("a limit of 2 GiB", "16")]


FRAGMENTED = (
    "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 9.00 GiB of which {free} GiB is "
    "free. Of the allocated memory 4.00 GiB is allocated by PyTorch, and {unused} GiB is reserved by PyTorch "
    "but unallocated."
)


@pytest.mark.parametrize(
    "free, unused, told",
    [(1.5, 2.5, True), (1.5, 0.5, False), (2.9, 0.2, False)],
    ids=["enough in pieces", "not enough", "less than the margin"],
)
def test_an_edge_made_by_fragmentation_is_told_with_what_lay_unused(free, unused, told):
    reason = FRAGMENTED.format(free=free, unused=unused)
    (table,) = tables([*trial(4), *trial(5, status="oom", reason=reason)], None)
    said = "all: batch 5 had enough memory, but not in one piece: torch held 2.5 GiB that nothing used"
    assert [note.partition(";")[0] for note in table.notes if "one piece" in note] == ([said] if told else [])
