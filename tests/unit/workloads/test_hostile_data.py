"""Broken and hostile data: each item has its own clear reason, the rest is read, and nothing is ever run."""

import io
import json
import os
import pickle
import tracemalloc

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from speech_sets import RATE, nemo, npy, pickled, pickled_list, waves, write_sounds

from speechmeter.core.errors import InputError
from speechmeter.workloads.manifests import formats, unpickle
from speechmeter.workloads.manifests.utterance import Refused, Utterance
from speechmeter.workloads.selection import Choice, choose, select
from speechmeter.workloads.sound import Taste


def chosen(path, taste=Taste(), **choice):
    return select(Choice(manifest=path, taste=taste, **choice))


def reasons(selection):
    return dict(selection.left_out.first)


@pytest.fixture
def folder(tmp_path):
    write_sounds(tmp_path, waves(3))
    return tmp_path


def rows_of(folder, **extra):
    """A list of the three good files and others, each with its fields beside the path."""
    rows = [{"id": name, "audio_filepath": f"{name}.flac"} for name, *_ in waves(3)]
    rows += [{"id": name, "audio_filepath": f"{name}.wav", **fields} for name, fields in extra.items()]
    (folder / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "set.jsonl"


def test_every_broken_item_has_its_reason_and_the_rest_is_read(folder):
    sound = np.zeros(RATE, dtype=np.float32)
    whole = (folder / "utt00.flac").read_bytes()
    (folder / "truncated.wav").write_bytes(whole[: len(whole) // 2])
    (folder / "zero.wav").write_bytes(b"")
    (folder / "garbage.wav").write_bytes(b"no sound in here" * 100)
    for name in ("short", "slow", "two", "fine", "hours"):
        soundfile.write(folder / f"{name}.wav", np.stack([sound] * (2 if name == "two" else 1), axis=1), RATE)
    soundfile.write(folder / "none.wav", sound[:0], RATE)
    for name, value in (("nan", np.nan), ("infinite", np.inf)):
        soundfile.write(folder / f"{name}.wav", np.where(np.arange(RATE) == 5, value, 0.1), RATE, subtype="FLOAT")
    path = rows_of(
        folder, truncated={}, zero={}, garbage={}, none={}, nan={}, infinite={}, missing={}, short={"duration": 2.0},
        slow={"sample_rate": 8000}, two={}, fine={"duration": 1.01}, hours={"duration": 36_000.0},
        late={"audio_filepath": "fine.wav", "offset": 0.5, "duration": 3.0},
        beyond={"audio_filepath": "fine.wav", "offset": 5.0},
    )  # fmt: skip
    found = chosen(path)
    assert [item.utterance.id for item in found.items] == ["utt00", "utt01", "utt02", "fine"]
    expected = {
        "truncated": "decoded", "zero": "empty", "garbage": "cannot be read", "none": "holds no sound",
        "nan": "NaN", "infinite": "NaN or infinite", "missing": "no such file",
        "short": "the list says 2.00 s, the file has 1.00 s", "slow": "the list says 8000 Hz, the file has 16000 Hz",
        "two": "has 2 channels; set channel: mix", "hours": "lasts 36000 s, more than 3600 s",
        "late": "the list says 3.00 s, from there on the file has 0.50 s", "beyond": "begins at 5.00 s",
    }  # fmt: skip
    told = reasons(found)
    assert told.keys() == expected.keys()
    for name, part in expected.items():
        assert part in told[name], name
        assert "\n" not in told[name]
    assert (found.left_out.count, found.left_out.of) == (13, 17)
    assert found.left_out.line().startswith("13 of 17 items left out: truncated: ")


def test_a_file_of_ten_hours_is_refused_by_its_header_before_it_is_decoded(folder):
    with soundfile.SoundFile(folder / "a.wav", "w", 8000, 1, subtype="PCM_U8") as file:
        for _ in range(10):
            file.write(np.zeros(3600 * 800, dtype=np.float32))
    tracemalloc.start()
    found = chosen(folder, taste=Taste(longest_s=600.0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "lasts 3600 s, more than 600 s; cut it, or raise longest" in reasons(found)["a"]
    assert peak < 3600 * 8000


@pytest.mark.parametrize(("channel", "value"), [(0, 0.25), (1, 0.75), ("mix", 0.5)])
def test_a_channel_is_chosen_where_there_are_several(channel, value, tmp_path):
    soundfile.write(tmp_path / "a.wav", np.tile([0.25, 0.75], (RATE, 1)), RATE, subtype="FLOAT")
    choice = Choice(manifest=tmp_path, taste=Taste(channel=channel))
    seen = []
    select(choice, keep=lambda place, data: seen.append(data))
    assert seen[0].shape == (RATE,)
    np.testing.assert_allclose(seen[0], value)


def test_a_channel_that_is_not_there_is_refused(folder):
    soundfile.write(folder / "a.wav", np.zeros((RATE, 2)), RATE)
    assert "channel 2 is none of them" in reasons(chosen(folder, taste=Taste(channel=2)))["a"]


def test_a_list_without_one_usable_item_is_refused_with_reasons(tmp_path):
    path = rows_of(tmp_path, gone={})
    with pytest.raises(InputError, match=r"no item that can be used: utt00: .* no such file"):
        chosen(path)


def test_an_id_that_stands_twice_is_refused_the_second_time(folder):
    path = rows_of(folder)
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    found = chosen(path)
    assert len(found.items) == 3
    assert reasons(found) == {"utt01": "the list has this id twice"}


def test_lines_that_are_none_are_refused_by_number(folder):
    path = rows_of(folder)
    bad = b'{"audio_filepath": \n[1]\n{"duration": 1}\n\xff\xfe\n{"audio_filepath": "a.wav", "duration": "long"}\n'
    bad += b'{"audio_filepath": "a.wav", "duration": NaN}\n' + b'{"a":' * 100_000 + b"\n" + b"x" * (3 << 20) + b"\n"
    path.write_bytes(bad + path.read_bytes())
    found = chosen(path)
    assert len(found.items) == 3
    assert list(reasons(found)) == [f"line {number}" for number in range(1, 9)]


def test_a_command_in_wav_scp_is_never_run(folder):
    (folder / "wav.scp").write_text(f"a touch {folder / 'ran'} |\nutt00 utt00.flac\n")
    found = chosen(folder)
    assert "commands are never run" in reasons(found)["a"]
    assert not (folder / "ran").exists()


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
    with pytest.raises(InputError, match=r"it asks for posix\.mkdir"):
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
    with pytest.raises(InputError, match="numbers alone"):
        chosen(tmp_path / "a.npy")
    other = pickled_list(tmp_path / "b.npy", [{"id": 1}, 7, item_of([1, 2]), item_of(np.arange(4)[None], "ids")])
    with pytest.raises(InputError, match=r"net_input\.src_tokens"):
        chosen(other)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_pickle_is_read_or_refused_and_raises_nothing_else(data, damaged_bytes):
    raw = bytearray(damaged_bytes)
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        unpickle.load(io.BytesIO(bytes(raw[: data.draw(st.integers(0, len(raw)))])))
    except InputError as error:
        assert "\n" not in str(error)


@pytest.fixture(scope="module")
def damaged_bytes():
    array = np.empty(2, dtype=object)
    array[:] = [item_of(np.ones((1, 20), np.float32)), item_of(torch.ones(1, 20))]
    return pickle.dumps(array)


def peak_of_choosing(path, lines):
    """Most bytes that Python held while three of so many lines were chosen."""
    with path.open("w") as file:
        file.write(f"{path.parent}\n")
        file.writelines(f"{number}.flac\t{number + 1}\n" for number in range(lines))
    tracemalloc.start()
    found = choose(Choice(manifest=path, count=3, how="random"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.utterances) == 3
    assert all(int(utterance.id) + 1 == utterance.frames for utterance in found.utterances)
    return peak


def test_a_list_of_50_000_lines_is_gone_through_without_being_held(tmp_path):
    small, large = (peak_of_choosing(tmp_path / f"{lines}.tsv", lines) for lines in (5_000, 50_000))
    assert large < small + 2**18


def test_stated_names_of_good_lists_are_not_touched_by_these_checks(folder):
    for made in (nemo, npy):
        path = made(folder, waves(3)) if made is npy else rows_of(folder)
        assert chosen(path).left_out.count == 0


def test_refusals_beyond_the_first_twenty_are_counted(folder):
    path = rows_of(folder, **{f"gone{number}": {} for number in range(30)})
    left_out = chosen(path).left_out
    assert (left_out.count, len(left_out.first)) == (30, 20)
    assert Refused(id="gone0", reason=left_out.first[0][1]).reason.endswith("no such file")


GOOD = {
    "fairseq": b"/data\na.flac\t1600\nb/c.flac\t320\n",
    "nemo": b'{"audio_filepath": "a.wav", "duration": 1.5, "offset": 0.5, "text": "x"}\n{"audio_filepath": "b.wav"}\n',
    "wenet": b'{"key": "a", "wav": "a.wav", "txt": "x", "start": 0.5, "end": 1}\n',
    "lhotse": b'{"id": "c", "start": 0, "duration": 1.0, "channel": 0, "supervisions": [{"start": 0, "text": "x"}], '
    b'"recording": {"sources": [{"type": "file", "channels": [0], "source": "a.wav"}], "duration": 2.0}}\n',
    "speechbrain-csv": b'ID,duration,wav,start,stop,wrd\na,1.0,"a.wav",0,100,x\nb,,b.wav,,,y\n',
    "speechbrain-json": b'{"a": {"wav": {"file": "a.wav", "start": 1, "stop": 9}, "words": "x"}, "b": {"wav": "b"}}',
    "audiofolder": b'file_name,transcription\na.wav,"x, y"\nb.wav,z\n',
    "kaldi": b"a a.wav\nb dir/b.wav\n",
}
PIECES = (
    b"\x00",
    b"\xff\xfe",
    b'"',
    b"\n",
    b"\t",
    b"{",
    b"}",
    b"[",
    b"9" * 5000,
    b"-1",
    b"1e999",
    b"NaN",
    b"null",
    b",",
    b"\\u0000",
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), kind=st.sampled_from(sorted(GOOD)))
def test_a_damaged_list_gives_items_and_refusals_and_raises_nothing_else(data, kind, tmp_path):
    raw = GOOD[kind]
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(raw)))
        piece = data.draw(st.sampled_from(PIECES) | st.binary(max_size=3))
        raw = raw[:place] + piece + raw[place + data.draw(st.integers(0, 3)) :]
    path = tmp_path / ("wav.scp" if kind == "kaldi" else "metadata.csv" if kind == "audiofolder" else "list")
    path.write_bytes(raw)
    try:
        found = list(formats.read(path, kind))
        assert all(isinstance(item, Refused | Utterance) for item in found)
        with pytest.raises(InputError, match="no item that can be used"):
            chosen(path, format=kind)
    except InputError as error:
        assert "\n" not in str(error)


def test_a_pipe_among_the_files_is_refused_and_not_waited_for(folder):
    os.mkfifo(folder / "pipe.wav")
    assert "is no plain file" in reasons(chosen(rows_of(folder, pipe={})))["pipe"]


def test_reasons_are_one_line_that_a_list_cannot_colour(folder):
    evil = {"audio_filepath": "\x1b[31m\n" + "x" * 1000}
    told = reasons(chosen(rows_of(folder, evil=evil)))["evil"]
    assert told.isprintable()
    assert len(told) <= 301


def test_ids_that_cannot_be_printed_are_refused(folder):
    path = rows_of(folder)
    path.write_text(path.read_text().replace("utt01", "utt\\n01", 1))
    found = chosen(path)
    assert [item.utterance.id for item in found.items] == ["utt00", "utt02"]
    assert found.left_out.first[0][1] == "its id cannot be printed"


def test_a_limit_below_a_second_is_told_as_it_is(folder):
    path = rows_of(folder, long={"duration": 1.25})
    found = chosen(path, Taste(longest_s=0.5))
    assert reasons(found)["long"].startswith("lasts 1.25 s, more than 0.5 s;")
