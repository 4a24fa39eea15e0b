"""`speechmeter data subset`: three subsets at once, the ids of a reference set, and statistics alone."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the lists hold torch tensors")

FRAMES = {"a": 64, "b": 120, "c": 46, "d": 90, "e": 30}


def write(path, names):
    items = np.empty(len(names), dtype=object)
    for place, name in enumerate(names):
        data = np.full((1, FRAMES[name], 80), float(place), np.float32)
        items[place] = {"id": name, "net_input": {"src_tokens": data, "src_lengths": np.array([FRAMES[name]])}}
    np.save(path, items, allow_pickle=True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "all.npy", list(FRAMES))
    return tmp_path


def ids(path):
    return [item["id"] for item in np.load(path, allow_pickle=True)]


def test_one_command_makes_the_random_the_shortest_and_the_longest(command, folder):
    done = command("data", "subset", "all.npy", "--count", "2", "--pick", "all", "-o", "set.npy")
    assert done.code == 0, done.err
    assert {path.name for path in folder.glob("set*")} == {"set-longest.npy", "set-random.npy", "set-shortest.npy"}
    assert ids(folder / "set-shortest.npy") == ["c", "e"]
    assert ids(folder / "set-longest.npy") == ["b", "d"]
    assert len(ids(folder / "set-random.npy")) == 2
    assert "shortest: 2 items · min 0.30 s · max 0.46 s · mean 0.38 s" in done.out
    again = command("data", "subset", "all.npy", "--count", "2", "--pick", "all", "-o", "set.npy")
    assert again.code == 2
    assert "set-random.npy already exists" in again.err


def test_statistics_of_the_whole_set_write_nothing(command, folder):
    done = command("data", "subset", "all.npy")
    mean_s = sum(FRAMES.values()) / len(FRAMES) / 100
    assert done.out.strip() == f"5 items · min 0.30 s · max 1.20 s · mean {mean_s:.2f} s"
    assert [path.name for path in folder.iterdir()] == ["all.npy"]


def test_a_reference_set_says_which_items_are_taken(command, folder):
    write(folder / "ref.npy", ["d", "a"])
    done = command("data", "subset", "all.npy", "--ref-dataset", "ref.npy", "-o", "same.npy")
    assert done.code == 0, done.err
    assert ids(folder / "same.npy") == ["a", "d"]
    assert command("data", "subset", "all.npy", "--ref-dataset", "ref.npy", "--count", "1", "--pick", "longest",
                   "-o", "one.npy").code == 0  # fmt: skip
    assert ids(folder / "one.npy") == ["d"]


def test_a_reference_set_of_other_ids_is_refused(command, folder):
    write(folder / "part.npy", ["a", "b"])
    write(folder / "ref.npy", ["c"])
    done = command("data", "subset", "part.npy", "--ref-dataset", "ref.npy", "-o", "none.npy")
    assert done.code == 2
    assert "'part.npy' has none of the 1 ids of the reference set" in done.err
    assert not (folder / "none.npy").exists()


@pytest.mark.parametrize("words", [("data", "subset"), ("shapes",)])
def test_an_absent_list_is_named_as_the_argument_that_it_is(command, words):
    done = command(*words, "absent.tsv")
    assert done.code == 2
    assert "SOURCE: 'absent.tsv' does not exist" in done.err


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        (("--pick", "shortest"), "--pick: shortest needs a number of items; add it, for example --count 500"),
        (("--pick", "all"), "--pick: all needs a number of items"),
        (
            ("--pick", "most", "--count", "2"),
            "--pick: unknown choice 'most'; choose from: first, random, ",
        ),
        (("--ref-dataset", "absent.npy"), "--ref-dataset: 'absent.npy' does not exist"),
    ],
)
def test_what_cannot_be_chosen_is_one_line(command, folder, flags, what):
    done = command("data", "subset", "all.npy", *flags)
    assert done.code == 2
    assert what in done.err
