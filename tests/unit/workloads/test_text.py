"""Text and features as workloads: lengths, batches, seeds, and what is refused."""

import numpy as np
import pytest
from conftest import make_case
from declared_options import check_as_in_a_plan

from speechmeter.core.errors import InputError
from speechmeter.core.types import Spec
from speechmeter.workloads.features import FeatureWorkload
from speechmeter.workloads.text import TextWorkload


def batches(workload, options, **axes):
    name = "text" if isinstance(workload, TextWorkload) else "features"
    case = make_case(workload=Spec(plugin=name, name=name, options=options), **axes)
    check_as_in_a_plan(workload, case)
    return list(workload.batches(case))


def test_lines_of_a_file_come_in_batches(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("one two\n\nthree\nfour five six\n")
    found = batches(TextWorkload(), {"lines": str(path)}, batch=2)
    assert [batch.data for batch in found] == [("one two", "three"), ("four five six",)]
    assert [batch.lengths for batch in found] == [(2, 1), (3,)]
    assert all(batch.audio_s is None for batch in found)


def test_length_cuts_or_repeats_the_words(tmp_path):
    (tmp_path / "lines.txt").write_text("a b c\n")
    (batch,) = batches(TextWorkload(), {"lines": str(tmp_path / "lines.txt")}, length=5)
    assert batch.data == ("a b c a b",)
    (batch,) = batches(TextWorkload(), {}, length=4, batch=3)
    assert batch.lengths == (4, 4, 4)


def test_random_ids_are_the_same_for_a_seed_and_within_the_vocabulary():
    options = {"vocabulary": 50, "count": 3}
    first, again = (batches(TextWorkload(), options, length=20) for _ in range(2))
    assert [b.data for b in first] == [b.data for b in again]
    assert len(first) == 3
    assert all(4 <= i < 50 for b in first for i in b.data[0])
    assert len(first[0].data[0]) == 20


def listed(path, *arrays):
    items = np.empty(len(arrays), dtype=object)
    items[:] = [{"id": place, "net_input": {"src_tokens": array}} for place, array in enumerate(arrays)]
    np.save(path, items, allow_pickle=True)
    return str(path)


def test_ids_of_a_list_are_fed_as_they_are(tmp_path):
    path = listed(tmp_path / "ids.npy", np.array([[4, 5, 6]]), np.array([7, 8]), np.array([[9]]))
    assert [batch.data for batch in batches(TextWorkload(), {"ids": path})] == [((4, 5, 6),), ((7, 8),), ((9,),)]
    assert [batch.data for batch in batches(TextWorkload(), {"ids": path, "count": 2})] == [((4, 5, 6),), ((7, 8),)]
    assert batches(TextWorkload(), {"ids": path, "count": 1}, length=5)[0].data == ((4, 5, 6, 4, 5),)


def test_a_list_of_anything_but_ids_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"0 of 'sound.npy' holds float32 of the shape \(1, 9\), not token ids"):
        batches(TextWorkload(), {"ids": listed(tmp_path / "sound.npy", np.ones((1, 9), np.float32))})
    with pytest.raises(InputError, match="has no items"):
        batches(TextWorkload(), {"ids": listed(tmp_path / "empty.npy")})
    with pytest.raises(InputError, match="does not exist"):
        batches(TextWorkload(), {"ids": str(tmp_path / "absent.npy")})


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"ids": "x.npy", "lines": __file__}, "lines and ids cannot be combined"),
        ({"lines": "nowhere.txt"}, "cannot be read"),
        ({"vocabulary": 3}, "vocabulary must be at least 5"),
        ({"count": 0}, "count must be at least 1"),
        ({"lines": __file__, "vocabulary": 9}, "cannot be combined"),
    ],
)
def test_bad_text_is_refused(options, what):
    with pytest.raises(InputError, match=what):
        batches(TextWorkload(), options)


def test_features_have_lengths_between_the_bounds_and_silence_after_them():
    options = {"frames": [10, 30], "bands": 8, "count": 5}
    found, again = (batches(FeatureWorkload(), options, batch=2) for _ in range(2))
    assert [batch.items for batch in found] == [2, 2, 1]
    assert all(10 <= length <= 30 for batch in found for length in batch.lengths)
    assert len({length for batch in found for length in batch.lengths}) > 1
    first = found[0]
    assert first.data.shape == (2, max(first.lengths), 8)
    assert first.data.dtype == np.float32
    short = int(np.argmin(first.lengths))
    assert not first.data[short, first.lengths[short] :].any()
    assert first.audio_s == pytest.approx(sum(first.lengths) * 0.01)
    np.testing.assert_array_equal(first.data, again[0].data)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"frames": [30, 10]}, r"`frames` takes \[minimum, maximum\], not \[30, 10\]"),
        ({"frames": "many"}, "frames takes a list or a whole number"),
        ({"frames": [10, 20, 30]}, r"`frames` takes \[minimum, maximum\]"),
        ({"bands": 0}, "bands must be at least 1"),
        ({"count": 2.5}, "count takes a whole number"),
    ],
)
def test_bad_features_are_refused(options, what):
    with pytest.raises(InputError, match=what):
        batches(FeatureWorkload(), options)


@pytest.fixture
def translated(tmp_path):
    (tmp_path / "lines.txt").write_text("eins zwei\n\ndrei\nvier\n")
    (tmp_path / "references.txt").write_text("one two\n\nthree\nfour\n")
    return {"lines": str(tmp_path / "lines.txt"), "references": str(tmp_path / "references.txt")}


def test_references_stand_beside_their_lines(translated):
    found = batches(TextWorkload(), translated, batch=2)
    assert [batch.references for batch in found] == [("one two", "three"), ("four",)]
    (batch,) = batches(TextWorkload(), {**translated, "count": 2}, batch=4)
    assert batch.references == ("one two", "three")


@pytest.mark.parametrize(
    ("options", "axes", "reason"),
    [
        ({"lines": None}, {}, "`references` needs `lines`"),
        ({}, {"length": 3}, "leave out `length`"),
        ({"count": 4}, {}, "some lines would be scored twice"),
    ],
)
def test_references_that_cannot_fit_are_refused(options, axes, reason, translated):
    given = {key: value for key, value in {**translated, **options}.items() if value is not None}
    with pytest.raises(InputError, match=reason):
        batches(TextWorkload(), given, **axes)


def test_references_out_of_step_are_refused_at_their_line(translated, tmp_path):
    (tmp_path / "references.txt").write_text("one two\nthree\nfour\n")
    with pytest.raises(InputError, match=r"line 2 of .*lines.txt' is missing or empty"):
        batches(TextWorkload(), translated)
