import numpy as np
import pytest

from speechmeter.core.batches import Batches, LeftOut, MadeBatches, gathered, in_turn, other_content
from speechmeter.core.types import Batch


class Read(Batches):
    """Batches that are made when asked for; every making is noted."""

    def __init__(self, count):
        self.made = []
        self._count = count

    def __len__(self):
        return self._count

    def one(self, place):
        self.made.append(place)
        return Batch(data=place, items=1)

    def outlines(self):
        return (Batch(data=None, items=1) for _ in range(self._count))

    def again(self):
        return map(self.one, range(self._count))


def test_batches_that_are_read_in_their_turn_are_used_as_they_are():
    own = Read(3)
    assert gathered(lambda: own) is own
    assert own.made == []
    assert [batch.data for batch in own] == [0, 1, 2]
    assert own[-1].data == 2
    assert [batch.data for batch in own[1:]] == [1, 2]
    with pytest.raises(IndexError):
        own[3]


def test_anything_else_is_made_at_once_and_made_again_when_loading_is_timed():
    calls = []

    def make():
        calls.append(1)
        yield Batch(data=7, items=1)

    batches = gathered(make)
    assert isinstance(batches, MadeBatches)
    assert len(batches) == len(calls) == 1
    assert batches.left_out is None
    assert [batch.data for batch in batches.again()] == [7]
    assert len(calls) == 2


def test_turns_go_round_and_read_each_batch_again():
    own = Read(2)
    assert [batch.data for batch in in_turn(own, 5)] == [0, 1, 0, 1, 0]
    assert own.made == [0, 1, 0, 1, 0]
    endless = in_turn(own)
    assert [next(endless).data for _ in range(3)] == [0, 1, 0]


@pytest.mark.parametrize(
    ("count", "line"),
    [
        (2, "2 of 9 items left out: a: gone; b: empty"),
        (4, "4 of 9 items left out: a: gone; b: empty; c: NaN; …"),
        (30, "30 of 9 items left out: a: gone; b: empty; c: NaN; …"),
    ],
)
def test_the_first_reasons_are_told_and_the_others_hinted_at(count, line):
    first = (("a", "gone"), ("b", "empty"), ("c", "NaN"), ("d", "short"))[:count]
    assert LeftOut(count=count, of=9, first=first).line() == line


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
