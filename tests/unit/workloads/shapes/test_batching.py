"""Batches of shapes against the rules in plain Python."""

import random

import numpy as np
import pytest

from speechmeter.workloads.shapes.batching import COLUMNS, Rule, batch_facts, cells, cells_padded, grouped
from speechmeter.workloads.shapes.generator import generate
from speechmeter.workloads.shapes.table import SUBSAMPLED, Shapes, correlation, spreads


def table(rows):
    return Shapes(rows=np.array(rows, dtype=np.int32), frames=SUBSAMPLED)


def batches(shapes, rule):
    groups = grouped(shapes, rule)
    return [[tuple(row) for row in groups.one(place).tolist()] for place in range(len(groups))]


ROWS = [(5, 2), (9, 1), (5, 3), (7, 7), (2, 1), (9, 4), (1, 0)]


def test_a_fixed_size_takes_rows_as_they_stand_and_drops_the_rest():
    assert batches(table(ROWS), Rule(batch=3)) == [[(5, 2), (9, 1), (5, 3)], [(7, 7), (2, 1), (9, 4)]]
    assert batches(table(ROWS), Rule(batch=8)) == []


def test_max_frames_sorts_downwards_keeps_ties_in_order_and_keeps_the_rest():
    assert batches(table(ROWS), Rule(max_frames=18)) == [
        [(9, 1), (9, 4)],
        [(7, 7), (5, 2), (5, 3)],
        [(2, 1), (1, 0)],
    ]


def test_max_frames_takes_the_order_of_the_file_when_told():
    assert batches(table(ROWS), Rule(max_frames=14, sort="none")) == [
        [(5, 2), (9, 1)],
        [(5, 3), (7, 7), (2, 1)],
        [(9, 4), (1, 0)],
    ]


def test_a_row_beyond_max_frames_is_a_batch_of_its_own():
    assert batches(table([(3, 1), (50, 2), (4, 1)]), Rule(max_frames=7)) == [[(50, 2)], [(4, 1), (3, 1)]]


def test_columns_pairs_the_longest_with_the_largest():
    groups = grouped(table(ROWS), Rule(max_frames=18, pairing=COLUMNS))
    assert groups.one(0).tolist() == [[9, 7], [9, 4]]
    assert groups.ids(0) == ("row-1+row-3", "row-5")


@pytest.mark.parametrize("seed", range(5))
def test_any_table_is_cut_as_a_plain_loop_cuts_it(seed):
    draw = random.Random(seed)
    rows = [(draw.randint(1, 60), draw.randint(0, 20)) for _ in range(draw.randint(1, 300))]
    most = draw.randint(20, 400)
    expected, room = [], -1
    for row in sorted(rows, key=lambda row: -row[0]):
        room -= row[0]
        if room < 0:
            expected.append([])
            room = most - row[0]
        expected[-1].append(row)
    assert batches(table(rows), Rule(max_frames=most)) == expected


def test_cells_count_the_lattice_and_its_padding():
    rows = np.full((30, 2), 2, dtype=np.int32)
    rows[3], rows[9] = (451, 10), (20, 120)
    assert cells_padded(rows) == 30 * 451 * 121 == 1_637_130
    assert cells(rows) == 28 * 2 * 3 + 451 * 11 + 20 * 121


def test_cells_of_the_largest_rows_do_not_overflow():
    rows = np.full((30, 2), 1_000_000, dtype=np.int32)
    assert cells(rows) == cells_padded(rows) == 30 * 10**6 * (10**6 + 1)


def test_generated_shapes_batch_as_the_published_ones_do():
    """Published: fixed 30 wastes 49.5 % over the pass, 10,000 frames 25.7 % by utterance and 0.1 % by columns."""
    shapes = generate().counted_in(SUBSAMPLED)
    rules = (Rule(), Rule(max_frames=10_000), Rule(max_frames=10_000, pairing=COLUMNS))
    fixed, whole, columns = (batch_facts(grouped(shapes, rule)) for rule in rules)
    assert fixed.batches == 2853
    assert whole.batches == columns.batches == pytest.approx(2773, rel=0.01)
    assert [fixed.waste, whole.waste, columns.waste] == pytest.approx([0.495, 0.257, 0.001], abs=0.01)


def test_steps_are_numbered_from_the_first_of_the_pass():
    groups = grouped(table([(1, 1), (9, 9), (3, 3), (8, 8), (2, 2)]), Rule(batch=1)).taken(2, 2)
    facts = batch_facts(groups, first=2)
    assert (facts.batches, facts.items, facts.frames, facts.tokens) == (2, (1, 1), (3, 8), (3, 8))
    assert (facts.padded_mean, facts.padded_largest, facts.largest_step) == ((12 + 72) / 2, 72, 3)
    assert facts.waste == 0
    assert len(groups.taken(5, None)) == 0


def test_spreads_leave_rows_without_tokens_out_of_the_ratio():
    frames, tokens, ratio = spreads(table([(2, 0), (4, 2), (9, 3)]))
    assert (frames.mean, frames.sd) == pytest.approx((5, np.sqrt(13)))
    assert frames.quantiles[0] == tokens.quantiles[0] + 2 == 2
    assert ratio.quantiles[0] == 2
    assert ratio.quantiles[-1] == 3
    assert spreads(table([(5, 0)]))[0].sd is None
    assert correlation(table([(5, 1), (5, 2)])) is None
    assert correlation(table([(5, 2), (6, 4)])) == pytest.approx(1)
