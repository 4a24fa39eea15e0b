import numpy as np
import pytest
from conftest import make_case
from declared_options import check_as_in_a_plan

from speechmeter.core import metrics
from speechmeter.core.batches import Batches
from speechmeter.core.errors import InputError
from speechmeter.core.types import Spec
from speechmeter.workloads.shapes.file import write
from speechmeter.workloads.shapes.table import RAW, SUBSAMPLED, Shapes
from speechmeter.workloads.shapes.workload import ShapeWorkload

USUAL = {axis.name: axis.default for axis in ShapeWorkload.axes}
ROWS = [(50 + 7 * number % 40, number % 11) for number in range(100)]


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "a.tsv", Shapes(rows=np.array(ROWS, dtype=np.int32), frames=SUBSAMPLED))
    return str(tmp_path / "a.tsv")


def case_of(axes=None, seed=0, **options):
    workload = Spec(plugin="shapes", name="shapes", options=options)
    return make_case(workload=workload, protocol={"seed": seed}, **{**USUAL, **(axes or {})})


def made(axes=None, **options):
    case = case_of(axes, **options)
    check_as_in_a_plan(ShapeWorkload(), case)
    return ShapeWorkload().batches(case)


def test_a_batch_holds_its_shapes_and_no_seconds(path):
    batches = made({"batch": 40}, file=path)
    assert isinstance(batches, Batches)
    assert len(batches) == 2
    second = batches[1]
    assert second.data.tolist() == [list(row) for row in ROWS[40:80]]
    assert second.data.dtype == np.int32
    assert (second.items, second.ids[0], second.ids[-1]) == (40, "row-40", "row-79")
    assert (second.lengths, second.targets) == tuple(zip(*ROWS[40:80], strict=True))
    assert (second.audio_s, second.padded_s) == (None, None)
    assert [batch.ids for batch in batches.outlines()] == [batch.ids for batch in batches.again()]


def test_a_batch_tells_its_cells(path):
    batches = list(made({"max_frames": 700}, file=path))
    assert sum(batch.items for batch in batches) == len(ROWS)
    for batch in batches:
        rows = list(zip(batch.lengths, batch.targets, strict=True))
        told = {fact.metric: fact.values for fact in batch.facts}
        assert told[metrics.CELLS.id] == (sum(t * (u + 1) for t, u in rows),)
        longest, largest = max(batch.lengths), max(batch.targets)
        assert told[metrics.CELLS_PADDED.id] == (len(rows) * longest * (largest + 1),)


def test_steps_are_those_of_the_whole_pass(path):
    every, some = made({"batch": 10}, file=path), made({"batch": 10}, file=path, first=3, steps=4)
    assert [batch.ids for batch in some] == [every[place].ids for place in range(3, 7)]
    assert len(made({"batch": 10}, file=path, first=8, steps=20)) == 2
    assert len(made({"batch": 10}, file=path, count=55)) == 5


def test_without_a_file_shapes_are_drawn_by_the_protocols_seed():
    ShapeWorkload().check(case_of(count=300))
    first, again, other = (ShapeWorkload().batches(case_of(count=300, seed=seed)) for seed in (1, 1, 2))
    assert len(first) == 10
    np.testing.assert_array_equal(first[0].data, again[0].data)
    assert (first[0].data != other[0].data).any()
    assert "300 rows of librispeech-100.v1, seed 1" in first.notes[0]
    assert "30 rows each, file order" in first.notes[0]


def test_frames_are_raw_or_subsampled_as_asked():
    raw, four, eight = made(count=30, frames=RAW), made(count=30), made({"subsampling": 8}, count=30)
    for one, two, three in zip(raw[0].lengths, four[0].lengths, eight[0].lengths, strict=True):
        assert two == ((one - 1) // 2 - 1) // 2
        assert three == (((one - 1) // 2 - 1) // 2 - 1) // 2
    assert raw[0].targets == four[0].targets == eight[0].targets


@pytest.mark.parametrize(
    ("axes", "options", "what"),
    [
        ({"batch": 4, "max_frames": 900}, {}, "cannot be combined; remove one of the two"),
        ({"pairing": "columns"}, {}, "`pairing: columns` needs `sort`; add `sort: descending`"),
        ({"pairing": "columns", "max_frames": 900, "sort": "none"}, {}, "`pairing: columns` needs `sort`"),
        ({"batch": 101}, {}, "100 rows do not fill a batch of 101"),
        ({}, {"first": 3}, "`first` is 3, but the last batch has the number 2"),
        ({}, {"frames": "raw"}, "a.tsv holds subsampled frames"),
        ({}, {"frames": "mel"}, "frames takes one of raw, subsampled, not 'mel'"),
        ({"subsampling": 8}, {"frames": "raw"}, "`subsampling` has no effect on raw frames"),
        ({}, {"count": 0}, "count must be at least 1, not 0"),
        ({}, {"first": -1}, "first must be at least 0"),
        ({}, {"steps": True}, "steps takes a whole number, not True"),
        ({}, {"count": 10**12}, "count must be at most 10,000,000"),
        ({}, {"file": 3}, "file takes a path, not 3"),
        ({}, {"file": "absent.pt"}, "there is no file 'absent.pt'"),
    ],
)
def test_what_makes_no_batches_is_refused(path, axes, options, what):
    with pytest.raises(InputError) as refused:
        check_as_in_a_plan(ShapeWorkload(), case_of(axes, **{"file": path, **options}))
    assert what in str(refused.value)
