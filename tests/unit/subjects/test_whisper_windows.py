import numpy as np
import pytest
from conftest import make_case

from speechmeter.core.types import Batch
from speechmeter.subjects.whisper_windows import by_item, cut, pinned_for_item, windows_in


@pytest.mark.parametrize(("seconds", "windows"), [(0, 1), (0.1, 1), (30, 1), (30.1, 2), (90, 3)])
def test_every_item_has_a_window_at_least(seconds, windows):
    assert windows_in(round(seconds * 16_000)) == windows
    assert pinned_for_item(5, make_case(seconds=seconds)) == 5 * windows


def test_windows_hold_the_items_without_their_padding_and_come_back_together():
    data = np.arange(2 * 31 * 16_000, dtype=np.float32).reshape(2, -1)
    made = cut(Batch(data=data, items=2, lengths=(data.shape[1], 16_000)))
    assert made.counts == (2, 1)
    assert [len(piece) for piece in made.rows] == [480_000, 16_000, 16_000]
    first, second = by_item(made.rows, made.counts)
    np.testing.assert_array_equal(np.concatenate(first), data[0])
    np.testing.assert_array_equal(second[0], data[1, :16_000])
