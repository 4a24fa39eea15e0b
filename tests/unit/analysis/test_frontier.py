"""The largest that fits: the order of a search, its edge, and memory in pieces."""

import math

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.frontier import Bounds, Pieces, edges, in_pieces, largest_and_smallest, next_size, trials_left
from speechmeter.core.protocol import SearchProtocol
from speechmeter.engine.failures import classify
from speechmeter.report.choose import tables
from speechmeter.report.numbers import figure


def searched(truth, bounds):
    """Sizes tried, and which of them fit: all up to `truth` do."""
    tried = {}
    while (size := next_size(tried, bounds)) is not None:
        assert size not in tried and 1 <= size <= bounds.most
        tried[size] = size <= truth
    return tried


@pytest.mark.parametrize("start", [1, 3, 64, 500])
@pytest.mark.parametrize("truth", [0, 1, 2, 3, 17, 63, 64, 65, 127, 300, 511, 512])
def test_finds_what_trying_all_finds_and_shows_both_sides_of_the_edge(truth, start):
    fits, fails = largest_and_smallest(searched(truth, Bounds(start=start, most=512)))
    assert fits == max((size for size in range(1, 513) if size <= truth), default=None)
    assert fails == (truth + 1 if truth < 512 else None)


@pytest.mark.parametrize("truth", [1, 10, 1000, 65_000])
def test_the_number_of_trials_grows_with_the_logarithm(truth):
    assert len(searched(truth, Bounds(start=1, most=10**6))) <= 2 * math.log2(truth) + 3


def test_within_a_share_the_search_ends_sooner_and_stays_within_it():
    tried = searched(12_345, Bounds(start=1, most=10**6, within=0.05))
    fits, fails = largest_and_smallest(tried)
    assert fits <= 12_345 < fails and fails - fits <= 0.05 * fits
    assert len(tried) < len(searched(12_345, Bounds(start=1, most=10**6)))


def test_nothing_above_the_cap_is_tried():
    tried = searched(10**9, Bounds(start=3, most=100))
    assert max(tried) == 100
    assert largest_and_smallest(tried) == (100, None)


def test_what_fits_above_a_failure_does_not_count():
    assert largest_and_smallest({4: True, 5: False, 8: True}) == (4, 5)


@pytest.mark.parametrize("truth", [5, 200])
def test_once_both_sides_are_known_the_trials_left_are_never_fewer_than_come(truth):
    bounds = Bounds(start=8, most=512)
    order = list(searched(truth, bounds).items())
    known = [made for made in range(len(order) + 1) if len({fits for _, fits in order[:made]}) == 2]
    assert len(known) > 2
    for made in known:
        assert 0 <= trials_left(dict(order[:made]), bounds) - (len(order) - made) <= 1


def test_some_trials_are_expected_before_both_sides_are_known_and_none_at_the_cap():
    bounds = Bounds(start=8, most=512)
    assert trials_left({}, bounds) > 0 and trials_left({8: True}, bounds) > 0 and trials_left({8: False}, bounds) > 0
    assert trials_left({512: True}, bounds) == 0


SAID = (
    "CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 139.80 GiB of which {free} is free. "
    "Including non-PyTorch memory, this process has 93.69 GiB memory in use. {allowed}Of the allocated memory 46.98 "
    "GiB is allocated by PyTorch, and {unused} is reserved by PyTorch but unallocated. If reserved but …"
)


def said(asked="46.14 GiB", free="46.10 GiB", unused="46.04 GiB", allowed=""):
    return SAID.format(asked=asked, free=free, unused=unused, allowed=allowed)


def test_what_is_free_and_what_is_held_together_would_have_been_enough():
    assert in_pieces(said()) == Pieces(unused_gib=46.04, whole_gib=pytest.approx(139.12))


@pytest.mark.parametrize("unused, gib", [("20.00 MiB", 20 / 2**10), ("31.50 KiB", 31.5 / 2**20), ("512 bytes", 2**-21)])
def test_units_are_read(unused, gib):
    assert in_pieces(said(unused=unused)) is None
    assert in_pieces(said(unused=unused, free="46.20 GiB")).unused_gib == pytest.approx(gib)


def test_a_limit_of_torch_counts_and_not_what_the_device_has_left():
    assert in_pieces(said(free="130.00 GiB", unused="0.50 GiB", allowed="90.00 GiB allowed; ")) is None
    found = in_pieces(said(free="130.00 GiB", unused="41.00 GiB", allowed="100.00 GiB allowed; "))
    assert found == Pieces(unused_gib=41.0, whole_gib=pytest.approx(100.0))


def test_other_processes_of_a_shared_device_do_not_hide_it():
    others = "".join(f"Process {number} has 4.50 GiB memory in use. " for number in range(100_000, 100_006))
    words = said(allowed="100.00 GiB allowed; ", unused="60.00 GiB").replace("Including", f"{others}Including")
    status, reason = classify(RuntimeError(words))
    assert status == "oom" and in_pieces(reason).unused_gib == 60.0


@pytest.mark.parametrize("reason", ["", "can't allocate memory: you tried to allocate 100 bytes", "MemoryError"])
def test_other_words_say_nothing(reason):
    assert in_pieces(reason) is None


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
    assert "no tested size ran out of memory" in edge.stop


def test_where_nothing_fits_the_reason_is_told():
    edge = only([trial(4, **OOM), trial(2, **OOM), trial(1, **OOM)])
    assert edge.fits is None and edge.fails.value == 1
    assert edge.stop == "even the smallest tested size does not fit: can't allocate memory"


@pytest.mark.parametrize("status", ["timeout", "error", "crashed"])
def test_another_failure_is_named_and_is_no_edge(status):
    edge = only([trial(8), trial(16, status=status, reason="why")])
    assert edge.fails is None and edge.safe is None
    assert edge.stop == f"batch 16 failed for another reason than memory: {status}: why"


def test_a_round_that_ran_out_of_memory_counts_more_than_one_that_did_not():
    case = make_case(batch=8)
    edge = only([[make_record(make_case(batch=4))], [make_record(case), make_record(case, round=1, **OOM)]])
    assert (edge.fits.value, edge.fails.value) == (4, 8)


def test_what_speaks_against_the_assumption_is_said():
    edge = only([trial(4), trial(8, **OOM), trial(16)])
    assert edge.fits.value == 4
    assert edge.doubt == "batch 16 fitted, but the smaller 8 did not"


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
    assert "limit: 2 GiB of memory. The safe size is 5 % below the largest that fits." in table.notes


def test_lines_that_cannot_be_had_are_named_below_the_table():
    absent = trial(1, status="unavailable", reason="not installed")
    (table,) = tables([*trial(4), *trial(5, **OOM), *absent], None)
    assert table.notes[-1] == "fake: unavailable: not installed"


def test_a_gap_that_is_wider_than_the_margin_is_told():
    notes = [tables([*trial(32), *trial(fails, **OOM)], None)[0].notes for fails in (33, 64)]
    said = "all: no batch between 32 and 64 was tested."
    assert [said in found for found in notes] == [False, True]


def test_large_sizes_are_written_out():
    axis = {"find": "max-frames", "axis": "max_frames"}
    (table,) = tables([*trial(1_200_000, **axis), *trial(2_400_000, **axis, **OOM)], None)
    assert "all: no max_frames between 1,200,000 and 2,400,000 was tested." in table.notes
    edge = only([trial(1_200_000, **axis), trial(2_400_000, **axis, status="crashed", reason="why")])
    assert edge.stop == "max_frames 2,400,000 failed for another reason than memory: crashed: why"


def test_lines_under_several_limits_are_told_apart():
    records = [
        record
        for gib, most in ((1.0, 8), (2.0, 16))
        for size in (most, most + 1)
        for record in trial(size, memory_gib=gib, **(OOM if size > most else {}))
    ]
    (table,) = tables(records, None)
    names = [(row.labels[0].rpartition(" · ")[2], row.cells[0].text()) for row in table.rows]
    assert names == [("1 GiB of memory", "8"), ("2 GiB of memory", "16")]


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
    said = (
        "all: at batch 5 the memory was fragmented: enough was free, but not in one block. "
        "Torch had reserved 2.5 GiB that it did not use"
    )
    assert [". ".join(note.split(". ")[:2]) for note in table.notes if "one block" in note] == ([said] if told else [])
