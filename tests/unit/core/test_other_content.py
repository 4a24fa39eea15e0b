"""Inputs of the same form with other content: no cache has answers to them, and the model still takes them."""

import numpy as np
import pytest

from speechmeter.core.batches import other_content


def test_sound_differs_in_every_sum_that_a_cache_may_go_by():
    sound = np.random.default_rng(0).normal(size=(2, 100)).astype(np.float32) + 1
    turns = [other_content(sound, turn) for turn in range(1, 7)]
    sums = {round(float(one.sum()), 3) for one in [sound, *turns]}
    assert len(sums) == 7
    assert all((one.shape, one.dtype) == (sound.shape, sound.dtype) for one in turns)


def test_ids_change_places_and_stay_valid():
    ids = np.arange(5)
    assert sorted(other_content(ids, 2)) == list(range(5))
    assert other_content([3, 1, 2]) == [1, 2, 3]
    assert other_content("a b c") == "b c a"


@pytest.mark.parametrize("alike", ["one", np.ones(8, dtype=np.int64), [4, 4, 4], np.ones(2)])
def test_what_cannot_be_changed_has_no_other_content(alike):
    assert other_content(alike) is None
