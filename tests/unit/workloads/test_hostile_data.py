"""Broken and hostile data: each item has its own clear reason, the rest is read, and nothing is ever run."""

import json
import os
import tracemalloc

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from speech_sets import RATE, nemo, npy, waves, write_sounds

from speechmeter.core.errors import InputError
from speechmeter.workloads.manifests import formats
from speechmeter.workloads.manifests.utterance import Refused, Utterance
from speechmeter.workloads.selection import Choice, check_some, choose, select
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
    for name in ("short", "slow", "fine", "hours"):
        soundfile.write(folder / f"{name}.wav", sound, RATE)
    soundfile.write(folder / "none.wav", sound[:0], RATE)
    for name, value in (("nan", np.nan), ("infinite", np.inf)):
        soundfile.write(folder / f"{name}.wav", np.where(np.arange(RATE) == 5, value, 0.1), RATE, subtype="FLOAT")
    path = rows_of(
        folder, truncated={}, zero={}, garbage={}, none={}, nan={}, infinite={}, missing={}, short={"duration": 2.0},
        slow={"sample_rate": 8000}, fine={"duration": 1.01}, hours={"duration": 36_000.0},
        late={"audio_filepath": "fine.wav", "offset": 0.5, "duration": 3.0},
        beyond={"audio_filepath": "fine.wav", "offset": 5.0},
    )  # fmt: skip
    found = chosen(path)
    assert [item.utterance.id for item in found.items] == ["utt00", "utt01", "utt02", "fine"]
    expected = {
        "truncated": "decoded", "zero": "empty", "garbage": "cannot be read", "none": "holds no sound",
        "nan": "NaN", "infinite": "NaN or infinite", "missing": "no such file",
        "short": "the list says 2.00 s, but the file has 1.00 s",
        "slow": "the list says 8000 Hz, the file has 16000 Hz",
        "hours": "lasts 36000 s, more than 3600 s",
        "late": "the list says 3.00 s, but from 0.50 s on, the file has 0.50 s",
        "beyond": "begins at 5.00 s, but the file has 1.00 s",
    }  # fmt: skip
    told = reasons(found)
    assert told.keys() == expected.keys()
    for name, part in expected.items():
        assert part in told[name], name
        assert "\n" not in told[name]
    assert (found.left_out.count, found.left_out.of) == (12, 16)
    assert found.left_out.line().startswith("12 of 16 items left out: truncated: ")


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        (None, "is truncated: its header says 1.00 s, but it has 0.25 s"),
        (0xFFFFFFFF, None),  # as ffmpeg writes to a pipe
        (0, "holds no sound"),
    ],
)
def test_a_wav_file_that_ends_before_its_header_says_is_left_out(folder, size, reason):
    soundfile.write(folder / "cut.wav", np.full(RATE, 0.1), RATE, subtype="PCM_16")
    raw = (folder / "cut.wav").read_bytes()
    place = raw.index(b"data") + 4
    told = raw[place : place + 4] if size is None else size.to_bytes(4, "little")
    (folder / "cut.wav").write_bytes(raw[:place] + told + raw[place + 4 : place + 4 + RATE // 2])
    found = chosen(folder)
    assert reasons(found).get("cut") == reason


def test_a_file_of_ten_hours_is_refused_by_its_header_before_it_is_decoded(folder):
    with soundfile.SoundFile(folder / "a.wav", "w", 8000, 1, subtype="PCM_U8") as file:
        for _ in range(10):
            file.write(np.zeros(3600 * 800, dtype=np.float32))
    tracemalloc.start()
    found = chosen(folder, taste=Taste(longest_s=600.0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "lasts 3600 s, more than 600 s; shorten it, or raise `longest`" in reasons(found)["a"]
    assert peak < 3600 * 8000


@pytest.mark.parametrize(("channel", "value"), [(0, 0.25), (1, 0.75), ("mix", 0.5)])
def test_a_channel_is_chosen_where_there_are_several(channel, value, tmp_path):
    soundfile.write(tmp_path / "a.wav", np.tile([0.25, 0.75], (RATE, 1)), RATE, subtype="FLOAT")
    choice = Choice(manifest=tmp_path, taste=Taste(channel=channel))
    seen = []
    select(choice, keep=lambda place, data: seen.append(data))
    assert seen[0].shape == (RATE,)
    np.testing.assert_allclose(seen[0], value)


def test_several_channels_are_mixed_where_nothing_is_said_of_them_and_a_note_says_so(folder):
    for name, channels in (("a", 2), ("b", 3)):
        soundfile.write(folder / f"{name}.wav", np.tile(np.arange(channels) / 4, (RATE, 1)), RATE, subtype="FLOAT")
    seen = {}
    found = select(Choice(manifest=folder), keep=lambda place, data: seen.update({place: data}))
    assert [item.utterance.id for item in found.items[:2]] == ["a", "b"]
    np.testing.assert_allclose(seen[0], 0.125)
    np.testing.assert_allclose(seen[1], 0.25)
    assert found.notes == ("2 of 5 items mixed to mono from 2, 3 channels",)
    assert chosen(folder, taste=Taste(channel=1)).notes == ()


def test_a_channel_that_is_not_there_is_refused(folder):
    soundfile.write(folder / "a.wav", np.zeros((RATE, 2)), RATE)
    assert "no channel 2, only channels 0 to 1" in reasons(chosen(folder, taste=Taste(channel=2)))["a"]


def test_sound_of_kinds_that_cannot_be_decoded_is_counted_by_kind_with_the_way_out(without_pyav, folder):
    for number in range(30):
        (folder / f"{number}.m4a").write_bytes(b"x")
    (folder / "below").mkdir()
    (folder / "below/a.WMA").write_bytes(b"x")
    (folder / "gone.flac").write_bytes(b"")
    (folder / "notes.txt").write_text("no sound, and nobody misses it")
    found = chosen(folder)
    assert [item.utterance.id for item in found.items] == ["utt00", "utt01", "utt02"]
    assert found.left_out.kinds == ((".m4a", 30), (".wma", 1))
    assert found.left_out.line() == (
        "32 of 35 items left out: 30 .m4a, 1 .wma (cannot be decoded; convert them, for example: "
        f"ffmpeg -i x.m4a x.wav); gone: {folder}/gone.flac: the file is empty"
    )


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "holds no sound file; it holds nothing; use a folder with sound in it"),
        (
            ["a.pdf", "b.pdf", "c.txt", "d"],
            "holds no sound file; it holds 2 .pdf, 1 .txt, 1 file without a suffix; use",
        ),
        (["a.m4a", "b.m4a"], "has no item that can be used: 2 .m4a (cannot be decoded; convert them, for example: ff"),
    ],
)
def test_a_folder_without_a_readable_file_names_what_is_in_it(without_pyav, tmp_path, files, said):
    for name in files:
        (tmp_path / name).write_bytes(b"x")
    for call in (check_some, select):
        with pytest.raises(InputError) as refused:
            call(Choice(manifest=tmp_path))
        assert said in str(refused.value)


def test_a_codec_that_libsndfile_lacks_names_the_conversion(folder):
    (folder / "a b.mp3").write_bytes(b"\0" * 500)
    (folder / "c.wav").write_bytes(b"no sound in here" * 100)
    told = reasons(chosen(folder))
    assert told["a b"].endswith("is not recognised as sound; convert it: ffmpeg -i 'a b.mp3' 'a b.wav'")
    assert "ffmpeg" not in told["c"]


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


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
        with pytest.raises(InputError, match="no item"):
            chosen(path, format=kind)
    except InputError as error:
        assert "\n" not in str(error)


def test_a_pipe_among_the_files_is_refused_and_not_waited_for(folder):
    os.mkfifo(folder / "pipe.wav")
    assert "this is not a plain file" in reasons(chosen(rows_of(folder, pipe={})))["pipe"]


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
