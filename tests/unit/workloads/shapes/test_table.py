import numpy as np
import pytest

from speechmeter.core.errors import InputError
from speechmeter.workloads.shapes.table import RAW, SUBSAMPLED, Shapes, halved


def shapes(*rows, frames=RAW):
    return Shapes(rows=np.array(rows, dtype=np.int32), frames=frames, origin="a table")


def test_subsampling_is_that_of_convolutions():
    torch = pytest.importorskip("torch")
    for frames in (7, 8, 127, 128, 1379):
        data = torch.zeros(1, 1, frames)
        for times in (1, 2, 3):
            if data.shape[-1] < 3:
                break
            data = torch.nn.functional.conv1d(data, torch.zeros(1, 1, 3), stride=2)
            assert halved(frames, times) == data.shape[-1]


def test_raw_frames_become_four_or_eight_times_fewer():
    table = shapes((128, 5), (1376, 71))
    assert table.counted_in(SUBSAMPLED).rows.tolist() == [[31, 5], [343, 71]]
    assert table.counted_in(SUBSAMPLED, 8).rows.tolist() == [[15, 5], [171, 71]]
    assert table.rows.tolist() == [[128, 5], [1376, 71]]
    assert table.counted_in(RAW) is table


def test_subsampled_frames_are_halved_once_more_for_eight():
    table = shapes((31, 5), (343, 71), frames=SUBSAMPLED)
    assert table.counted_in(SUBSAMPLED).rows.tolist() == [[31, 5], [343, 71]]
    assert table.counted_in(SUBSAMPLED, 8).rows.tolist() == [[15, 5], [171, 71]]


def test_raw_frames_cannot_be_had_from_subsampled_ones():
    with pytest.raises(InputError, match="a table holds subsampled frames"):
        shapes((31, 5), frames=SUBSAMPLED).counted_in(RAW)


def test_rows_of_which_nothing_is_left_are_refused():
    with pytest.raises(InputError, match="1 of 2 rows are too short"):
        shapes((6, 1), (7, 1)).counted_in(SUBSAMPLED)
