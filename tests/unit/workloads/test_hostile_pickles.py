"""Sample lists that are pickles: what they ask for is refused, what they hold is read, and nothing of them is run."""

import io
import os
import pickle
import struct
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from speech_sets import pickled, pickled_list

from speechmeter.core.errors import InputError
from speechmeter.workloads.manifests.pickled import load
from speechmeter.workloads.selection import Choice, select
from speechmeter.workloads.sound import Taste


def chosen(path, taste=Taste(), **choice):
    return select(Choice(manifest=path, taste=taste, **choice))


def reasons(selection):
    return dict(selection.left_out.first)


class Runs:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return os.mkdir, (str(self._path),)


def item_of(array, name="a"):
    return {"id": name, "net_input": {"src_tokens": array, "src_lengths": [1]}}


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_runs_code_is_refused_and_names_what_it_asked_for(protocol, tmp_path):
    mark = tmp_path / "ran"
    path = pickled(tmp_path / "a.npy", pickle.dumps([item_of(Runs(mark))], protocol=protocol))
    with pytest.raises(InputError, match=r"it uses posix\.mkdir"):
        chosen(path)
    assert not mark.exists()
    with pytest.raises(FileNotFoundError):
        mark.rmdir()


class Storage:
    """Names torch's own loader of storages, with bytes of ours."""

    def __init__(self, raw):
        self._raw = raw

    def __reduce__(self):
        return torch.storage._load_from_bytes, (self._raw,)


class Tensor:
    def __init__(self, storage, size, stride, offset=0):
        self._arguments = storage, offset, size, stride, False, {}

    def __reduce__(self):
        return torch._utils._rebuild_tensor_v2, self._arguments


def hostile_storages(mark):
    legacy, zipped = io.BytesIO(), io.BytesIO()
    torch.save(Runs(mark), legacy, _use_new_zipfile_serialization=False)
    torch.save(Runs(mark), zipped)
    return [pickle.dumps(Runs(mark)), legacy.getvalue(), zipped.getvalue()]


@pytest.mark.parametrize("which", range(3))
def test_a_pickle_nested_in_the_bytes_of_a_storage_is_not_run_and_the_rest_is_read(which, tmp_path):
    mark = tmp_path / "ran"
    bad = Tensor(Storage(hostile_storages(mark)[which]), (1, 16), (16, 1))
    good = torch.ones(1, 1600)
    found = chosen(pickled_list(tmp_path / "a.npy", [item_of(good, "good"), item_of(bad, "bad")]))
    assert [item.utterance.id for item in found.items] == ["good"]
    assert "a tensor whose storage" in reasons(found)["bad"]
    assert not mark.exists()


def test_the_hostile_pickles_of_these_tests_do_run_where_nothing_holds_them(tmp_path):
    for number, raw in enumerate(hostile_storages(tmp_path / "x")[1:]):
        mark = tmp_path / f"ran{number}"
        torch.storage._load_from_bytes(hostile_storages(mark)[number + 1])
        assert mark.exists()
        assert raw


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [((1, 17), (17, 1), 0), ((1, 16), (16, 1), 1), ((1, 10**12), (0, 0), 0), ((1, -4), (1, 1), 0), ((1, 4), (1,), 0)],
)
def test_a_tensor_that_reaches_beyond_its_storage_is_refused(size, stride, offset, tmp_path):
    whole = io.BytesIO()
    torch.save(torch.ones(16).storage(), whole, _use_new_zipfile_serialization=False)
    bad = Tensor(Storage(whole.getvalue()), size, stride, offset)
    good = Tensor(Storage(whole.getvalue()), (1, 8), (8, 2))
    found = chosen(pickled_list(tmp_path / "a.npy", [item_of(bad, "bad"), item_of(good, "good")]))
    assert list(reasons(found)) == ["bad"]
    assert found.items[0].length == 8


class Array:
    """An array of numpy's, its state made by hand."""

    def __init__(self, *state):
        self._state = state

    def __reduce__(self):
        return np._core.multiarray._reconstruct, (np.ndarray, (0,), b"b"), (1, *self._state)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (((2,), np.dtype("O"), False, b"\x41" * 16), "instead of numbers"),
        (((10**9,), np.dtype("f4"), False, b"\x00" * 16), "reshape"),
        (((4,), np.dtype("S4"), False, b"\x00" * 16), "instead of numbers"),
        (((4,), "f4", False, b"\x00" * 16), "without numbers"),
    ],
)
def test_an_array_whose_state_does_not_fit_is_refused(state, why, tmp_path):
    rows = [item_of(np.ones((1, 160), np.float32), "good"), item_of(Array(*state), "bad")]
    found = chosen(pickled_list(tmp_path / "a.npy", rows))
    assert why in reasons(found)["bad"]
    assert found.items[0].utterance.id == "good"


@pytest.mark.parametrize("name", ["torch._utils\n_rebuild_tensor_v2", "numpy\nndarray", "_codecs\nencode"])
def test_a_pickle_cannot_change_what_stands_for_a_name(name, tmp_path):
    """`setattr(name, "numpy", 1)`, and the name's own state, by the opcode BUILD."""
    for state in (b"(N(S'numpy'\nI1\ndtb", b"(S'numpy'\nI1\ndb"):
        path = pickled(tmp_path / "a.npy", b"c" + name.encode() + b"\n" + state + b".")
        with pytest.raises(InputError, match="it is broken"):
            chosen(path)
    good = pickled_list(tmp_path / "b.npy", [item_of(torch.ones(1, 160)), item_of(np.ones((1, 160), "f4"), "b")], 2)
    assert len(chosen(good).items) == 2


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2", "<f8"])
def test_arrays_of_every_protocol_and_byte_order_are_read(protocol, dtype, tmp_path):
    wave = np.linspace(-1, 1, 1600).astype(dtype)
    seen = []
    path = pickled_list(tmp_path / "a.npy", [item_of(wave[None])], protocol=protocol)
    select(Choice(manifest=path), keep=lambda place, data: seen.append(data))
    np.testing.assert_array_equal(seen[0], wave.astype(np.float32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_tensors_are_read_as_they_lie_in_their_storage(dtype, tmp_path):
    wide = torch.linspace(-1, 1, 4000).to(dtype)
    seen = []
    path = pickled_list(tmp_path / "a.npy", [item_of(wide[100:3300:2][None])])
    select(Choice(manifest=path), keep=lambda place, data: seen.append(data))
    np.testing.assert_array_equal(seen[0], wide[100:3300:2].float().numpy())


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x93NUMPY", b"no array", pickle.dumps([1]),
    ],
)  # fmt: skip
def test_what_is_no_npy_file_is_refused(content, tmp_path):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        chosen(tmp_path / "a.npy")


def test_numbers_alone_and_lists_of_other_things_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(4))
    with pytest.raises(InputError, match="only numbers"):
        chosen(tmp_path / "a.npy")
    other = pickled_list(tmp_path / "b.npy", [{"id": 1}, 7, item_of([1, 2]), item_of(np.arange(4)[None], "ids")])
    with pytest.raises(InputError, match=r"net_input\.src_tokens"):
        chosen(other)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_pickle_is_read_or_refused_and_raises_nothing_else(data, damaged_bytes):
    raw = bytearray(damaged_bytes)
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        load(io.BytesIO(bytes(raw[: data.draw(st.integers(0, len(raw)))])))
    except InputError as error:
        assert "\n" not in str(error)


@pytest.fixture(scope="module")
def damaged_bytes():
    array = np.empty(2, dtype=object)
    array[:] = [item_of(np.ones((1, 20), np.float32)), item_of(torch.ones(1, 20))]
    return pickle.dumps(array)


def test_a_large_number_of_an_object_takes_no_memory(tmp_path):
    """Twenty millions here; a file of the same size may say four billions, for which pickle in C takes 64 GB."""
    numbered = b"\x80\x02]r" + struct.pack("<I", 20_000_000) + b"."
    tracemalloc.start()
    try:
        assert load(io.BytesIO(numbered)) == []
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_list_that_would_not_fit_into_memory_is_refused(tmp_path):
    path = tmp_path / "list.npy"
    with path.open("wb") as file:
        file.write(b"\x93NUMPY\x01\x00")
        file.truncate(5 << 30)  # of which nothing is on the disk
    with pytest.raises(InputError, match="larger than 4 GiB"):
        chosen(path)
