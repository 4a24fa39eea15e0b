"""Sound inside larger files: hostile and damaged containers, bad members left out by name, names of columns."""

import io
import json
import struct
import tarfile

import numpy as np
import pytest
import soundfile
from speech_sets import KINDS, RATE, parquet, waves, webdataset, write_sounds

from speechmeter.core.errors import InputError
from speechmeter.workloads import sound
from speechmeter.workloads.manifests.columns import read_columns
from speechmeter.workloads.manifests.formats import read, recognised
from speechmeter.workloads.manifests.inside import Slice
from speechmeter.workloads.manifests.tar import members
from speechmeter.workloads.manifests.utterance import Refused
from speechmeter.workloads.selection import Choice, select
from speechmeter.workloads.sound import Taste, UnusableError


@pytest.fixture
def items(tmp_path):
    made = waves(3)
    write_sounds(tmp_path / "sound", made)
    return made


def tar(path, *entries, **options):
    """A tar file of (name, content), or of ready TarInfos."""
    with tarfile.open(path, "w", **options) as file:
        for entry in entries:
            info, content = entry if isinstance(entry, tuple) else (entry, b"")
            if isinstance(info, str):
                info = tarfile.TarInfo(info)
            info.size = len(content) if info.isreg() else 0
            file.addfile(info, io.BytesIO(content))
    return path


def flac(tmp_path, name="utt00"):
    return (tmp_path / f"sound/{name}.flac").read_bytes()


def test_every_member_is_found_where_tarfile_finds_it(tmp_path):
    long = "d/" * 80 + "a.wav"
    for format in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        entries = [("a.wav", b"x" * 700), (("b" * 90) + ".wav", b""), ("ü.wav", b"yy"), (long, b"z" * 512)]
        path = tar(tmp_path / "a.tar", *entries, format=format)
        with tarfile.open(path) as file:
            known = [(one.name, one.offset_data, one.size) for one in file]
        assert [tuple(one) for one in members(path)] == known


@pytest.mark.parametrize(("name", "said"), [("a\0.tar", "null character"), ("none.tar", "No such file")])
def test_a_list_that_names_no_tar_file_is_refused_in_words(tmp_path, name, said):
    (tmp_path / "shards.list").write_text(f"x.tar\n{name}\n")
    tar(tmp_path / "x.tar")
    with pytest.raises(InputError, match=said):
        list(read(tmp_path / "shards.list"))


def test_names_that_lead_elsewhere_are_only_names(tmp_path, items):
    link = tarfile.TarInfo("link.flac")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    path = tar(tmp_path / "set.tar", ("../../evil.flac", flac(tmp_path)), link, ("/abs.flac", flac(tmp_path)))
    before = sorted(tmp_path.iterdir())
    found = list(read(path))
    assert [one.id for one in found] == ["../../evil", "/abs"]
    assert {one.path for one in found} == {str(path)}
    assert len(sound.read(found[0], Taste())) == len(items[0][1])
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:700], "ends beyond the file"),
        (lambda data: b"\x01" + data[1:], "no header at byte 0"),
        (lambda data: b"\x1f\x8b" + data, "packed with gzip"),
        (lambda data: b"no tar file at all", "no header at byte 0"),
    ],
)
def test_a_damaged_tar_is_refused_in_words(tmp_path, items, damage, said):
    path = webdataset(tmp_path, items)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=said):
        list(read(path))


def test_a_huge_header_is_refused_before_it_is_read(tmp_path):
    """A sparse file: two gibibytes of extended header that are nowhere on the disk."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 2 << 30
    path = tmp_path / "huge.tar"
    with path.open("wb") as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        file.truncate(3 << 30)
    with pytest.raises(InputError, match=r"header of 2,147,483,648 bytes"):
        list(members(path))


@pytest.mark.parametrize("field", [b"9999999 path=a\n", b"0 path=a\n", b"x path=a\n", b"99999999999 a=b\n"])
def test_an_extended_header_that_lies_is_refused(tmp_path, field):
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, len(field)
    path = tmp_path / "lie.tar"
    path.write_bytes(info.tobuf(tarfile.USTAR_FORMAT) + field.ljust(512, b"\0"))
    with pytest.raises(InputError, match="wrong length"):
        list(members(path))


def test_bad_members_are_left_out_by_name(tmp_path, items):
    path = tar(
        tmp_path / "set.tar",
        ("good.flac", flac(tmp_path)), ("noise.flac", b"this is no sound"), ("empty.flac", b""),
        ("only.txt", b"a text"), ("two.flac", flac(tmp_path)), ("two.wav", b"x"),
        ("odd.json", b"[1]"), ("odd.flac", flac(tmp_path)), ("long.txt", b"x" * (2 << 20)),
        ("long.flac", flac(tmp_path)),
    )  # fmt: skip
    found = select(Choice(manifest=path))
    assert [one.utterance.id for one in found.items] == ["good"]
    reasons = dict(found.left_out.first)
    assert reasons.keys() == {"noise", "empty", "only", "two", "odd", "long"}
    assert "several sounds" in reasons["two"] and "no sound" in reasons["only"] and "1,048,576" in reasons["long"]


def test_a_slice_that_ends_beyond_its_file_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 10)
    with pytest.raises(ValueError, match="truncated"):
        Slice(offset=5, size=6).read(tmp_path / "a")
    with pytest.raises(ValueError, match="more than"):
        Slice(offset=0, size=2 << 30).read(tmp_path / "a")


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"RIFF\xff\xff\xff\xff", "how long"),
        (b"\0BFM 1234", "no WAV file begins"),
        (b"RIFF\xff\xff\xff\x7f", "more than"),
    ],
)
def test_a_wav_header_in_an_archive_that_lies_is_refused(tmp_path, head, said):
    (tmp_path / "wav.ark").write_bytes(b"a " + head + b"x" * 30)
    (tmp_path / "wav.scp").write_text(f"a {tmp_path}/wav.ark:2\n")
    (item,) = read(tmp_path)
    with pytest.raises(UnusableError, match=said):
        sound.read(item, Taste())


def matrix(kind, rows):
    rows = np.asarray(rows)
    if kind in ("FM", "DM"):
        sizes = struct.pack("<bibi", 4, rows.shape[0], 4, rows.shape[1])
        return f"\0B{kind} ".encode() + sizes + rows.astype("<f4" if kind == "FM" else "<f8").tobytes()
    sizes = struct.pack("<ffii", -1.0, 2.0, *rows.shape)
    if kind == "CM":  # every column goes from -1 to 1, by quarters
        columns = np.tile(np.array([0, 16384, 49151, 65535], "<u2"), rows.shape[1])
        return b"\0BCM " + sizes + columns.tobytes() + rows.T.astype("u1").tobytes()
    return f"\0B{kind} ".encode() + sizes + rows.astype("<u2" if kind == "CM2" else "u1").tobytes()


@pytest.mark.parametrize(
    ("kind", "stored", "values"),
    [
        ("FM", [[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]),
        ("DM", [[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]),
        ("CM2", [[0, 65535], [32767, 0]], [[-1, 1], [-1 / 65535, -1]]),
        ("CM3", [[0, 255], [51, 0]], [[-1, 1], [-0.6, -1]]),
        ("CM", [[0, 255], [64, 192], [128, 32]], [[-1, 1], [-0.5, 0.5], [0, -0.75]]),
    ],
)
def test_matrices_of_an_archive_are_decoded(tmp_path, kind, stored, values):
    (tmp_path / "feats.ark").write_bytes(b"utt " + matrix(kind, stored))
    (tmp_path / "feats.scp").write_text(f"utt {tmp_path}/feats.ark:4\nbad {tmp_path}/feats.ark\n")
    (tmp_path / "text").write_text("utt some words\n")
    assert recognised(tmp_path) == recognised(tmp_path / "feats.scp") == "kaldi-feats"
    item, refused = read(tmp_path)
    np.testing.assert_allclose(sound.read(item, Taste()), values, atol=1e-4)
    assert item.text == "some words"
    assert isinstance(refused, Refused) and "needs an archive and an offset" in refused.reason


@pytest.mark.parametrize(
    "content", [b"", b"\0B", b"\0BFM ", b"text [ 1 2 ]", matrix("FM", [[1.0]])[:-1],
                b"\0BFM " + struct.pack("<bibi", 4, 2**30, 4, 2**30),
                b"\0BFM " + struct.pack("<bibi", 4, -1, 4, 2), b"\0BCM9" + b"x" * 20],
)  # fmt: skip
def test_other_matrices_are_left_out(tmp_path, content):
    (tmp_path / "feats.ark").write_bytes(content)
    (tmp_path / "feats.scp").write_text(f"utt {tmp_path}/feats.ark:0\n")
    (item,) = read(tmp_path)
    with pytest.raises(UnusableError):
        sound.read(item, Taste())


def test_columns_of_other_names_are_named(tmp_path, items):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {
        "clip": [flac(tmp_path, name) for name, *_ in items], "said": [text for *_, text in items],
        "number": [7, 8, 9], "who": ["a", "b", "a"], "text": ["x", "y", "z"],
    }  # fmt: skip
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="no column of sound among clip, said"):
        list(read(tmp_path / "a.parquet"))
    found = list(read(tmp_path / "a.parquet", columns=read_columns("audio=clip,text=said,id=number,speaker=who")))
    assert [(one.id, one.text, one.speaker) for one in found] == [
        (str(7 + index), text, "aba"[index]) for index, (*_, text) in enumerate(items)
    ]
    np.testing.assert_array_equal(sound.read(found[2], Taste()), items[2][1])
    with pytest.raises(InputError, match="has no column 'clap'"):
        list(read(tmp_path / "a.parquet", columns=read_columns("audio=clap")))


@pytest.mark.parametrize("text", ["audio", "audio=", "sound=x", "audio=a,audio=b", "=x"])
def test_columns_that_say_nothing_are_refused(text):
    with pytest.raises(InputError, match="columns"):
        read_columns(text)


def test_columns_are_refused_where_names_are_fixed(tmp_path, items):
    with pytest.raises(InputError, match="have fixed names"):
        list(read(KINDS["nemo"](tmp_path, items), columns=read_columns("text=x")))


def test_rows_without_sound_are_left_out_by_name(tmp_path, items):
    import pyarrow as pa
    import pyarrow.parquet as pq

    sounds = [
        {"bytes": flac(tmp_path), "path": "good.flac"}, {"bytes": None, "path": "gone.flac"},
        {"bytes": b"", "path": "empty.flac"}, None, {"bytes": b"text", "path": "../../noise.flac"},
    ]  # fmt: skip
    pq.write_table(pa.table({"audio": sounds, "text": ["a"] * 5}), tmp_path / "a.parquet")
    found = select(Choice(manifest=tmp_path / "a.parquet"))
    assert [one.utterance.id for one in found.items] == ["good"]
    assert {name for name, _ in found.left_out.first} == {"gone", "empty", "row 3", "noise"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"PAR1" + b"x" * 40 + struct.pack("<I", 2**31) + b"PAR1",
        lambda data: b"",
        lambda data: data[: -8 - int.from_bytes(data[-8:-4], "little")] + b"\xff" * 300 + data[-8:],
    ],
)
def test_a_damaged_parquet_is_refused_in_words(tmp_path, items, damage):
    (file,) = parquet(tmp_path, items).glob("data/*")
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(InputError, match="cannot be read"):
        list(read(file))


def test_damaged_pages_leave_out_their_rows(tmp_path, items):
    """The list is whole, and only the sound of the first row group is damaged."""
    (file,) = parquet(tmp_path, items).glob("data/*")
    data = bytearray(file.read_bytes())
    data[4:40] = b"\xff" * 36
    file.write_bytes(data)
    with pytest.raises(InputError, match="no item that can be used"):
        select(Choice(manifest=file))


def test_a_saved_dataset_cannot_name_files_elsewhere(tmp_path, items):
    saved = KINDS["huggingface in arrow"](tmp_path, items)
    (saved / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../secret.arrow"}]}))
    with pytest.raises(InputError, match="outside this folder"):
        list(read(saved))


def test_splits_are_named_one_by_one(tmp_path, items):
    saved = KINDS["huggingface in arrow"](tmp_path, items)
    both = tmp_path / "both"
    both.mkdir()
    saved.rename(both / "test")
    (both / "dataset_dict.json").write_text('{"splits": ["test"]}')
    with pytest.raises(InputError, match="several splits: test"):
        list(read(both))
    assert len(list(read(both / "test"))) == 3


def test_a_tarred_list_without_its_tar_or_member_says_which(tmp_path, items):
    source = KINDS["nemo-tarred"](tmp_path, items)
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    rows[0]["audio_filepath"], rows[1]["shard_id"] = "other.flac", 9
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reasons = [one.reason for one in read(source) if isinstance(one, Refused)]
    assert reasons == ["audio_0.tar has no member 'other.flac'", "there is no tar file of shard_id 9"]
    for file in tmp_path.glob("audio_*.tar"):
        file.unlink()
    with pytest.raises(InputError, match="no tar file with a number"):
        list(read(source))


def test_a_shar_without_one_recording_names_it(tmp_path, items):
    folder = KINDS["shar"](tmp_path, items)
    tar(folder / "recording.000000.tar", ("utt00.flac", flac(tmp_path)))
    found = list(read(folder))
    assert [isinstance(one, Refused) for one in found] == [False, True, True]
    assert found[1].reason == "recording.000000.tar has no sound of this name"


def test_parts_of_a_sound_in_a_tar_are_read(tmp_path):
    wave = np.arange(RATE, dtype=np.float32) / 2**15 / 2
    written = io.BytesIO()
    soundfile.write(written, wave, RATE, format="WAV", subtype="PCM_16")
    tar(tmp_path / "audio_0.tar", ("a.wav", written.getvalue()))
    row = {"audio_filepath": "a.wav", "offset": 0.25, "duration": 0.5, "shard_id": 0}
    (tmp_path / "list.json").write_text(json.dumps(row) + "\n")
    (item,) = read(tmp_path / "list.json")
    assert len(sound.read(item, Taste())) == RATE // 2
