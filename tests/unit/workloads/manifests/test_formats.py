"""Fields of the formats beyond the plain ones, and how a format is recognised."""

import gzip
import json
from pathlib import Path

import pytest
from speech_sets import KINDS, waves, write_sounds

from speechmeter.core.errors import InputError
from speechmeter.workloads.manifests.formats import read, recognised
from speechmeter.workloads.manifests.utterance import Refused, Utterance


def one(path, text, **keywords):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (found,) = read(path, **keywords)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_format_is_recognised_by_what_the_path_holds(kind, tmp_path):
    items = waves(2)
    write_sounds(tmp_path / "sound", items)
    assert recognised(KINDS[kind](tmp_path, items)) == kind.removesuffix(" with segments").partition(" in ")[0]


@pytest.mark.parametrize("kind", ["nemo", "lhotse", "wenet"])
def test_json_lines_may_be_compressed(kind, tmp_path):
    items = waves(2)
    write_sounds(tmp_path / "sound", items)
    plain = KINDS[kind](tmp_path, items)
    packed = tmp_path / "set.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert list(read(packed)) == list(read(plain))


@pytest.mark.parametrize("kind", ["nemo", "lhotse"])
@pytest.mark.parametrize("name", ["cuts.json", "cuts.json.gz", "cuts.jsonl"])
def test_objects_may_be_the_items_of_one_json_array(kind, name, tmp_path):
    items = waves(3)
    write_sounds(tmp_path / "sound", items)
    lines = KINDS[kind](tmp_path, items)
    array = json.dumps([json.loads(line) for line in lines.read_text().splitlines()], indent=2).encode()
    folder = tmp_path / "array"
    folder.mkdir()
    (folder / name).write_bytes(gzip.compress(array) if name.endswith(".gz") else array)
    assert list(read(folder / name, root=tmp_path)) == list(read(lines, root=tmp_path))


@pytest.mark.parametrize("tail", ["", ",", "}", ', {"id"'])
def test_a_json_array_that_breaks_off_is_refused_where_it_does(tail, tmp_path):
    (tmp_path / "cuts.json").write_text('[{"audio_filepath": "a.wav"}' + tail)
    items = read(tmp_path / "cuts.json", "nemo")
    assert next(items).id == "a"
    with pytest.raises(InputError, match="cannot be read as JSON"):
        next(items)


def test_an_object_of_objects_may_be_compressed(tmp_path):
    rows = {"a": {"wav": "a.wav"}, "b": {"wav": "b.wav"}}
    (tmp_path / "set.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))
    assert [item.id for item in read(tmp_path / "set.json.gz")] == ["a", "b"]


def test_a_broken_gzip_file_is_refused(tmp_path):
    (tmp_path / "set.jsonl.gz").write_bytes(gzip.compress(b'{"audio_filepath": "a.wav"}\n' * 1000)[:40])
    with pytest.raises(InputError, match="the gzipped file is truncated or damaged"):
        list(read(tmp_path / "set.jsonl.gz", "nemo"))


def test_a_gzip_file_with_a_bad_byte_or_without_measure_is_refused(tmp_path, monkeypatch):
    raw = gzip.compress(b"".join(b'{"audio_filepath": "%d.wav"}\n' % n for n in range(1000)))
    (tmp_path / "set.jsonl.gz").write_bytes(raw[:500] + bytes([raw[500] ^ 0xFF, raw[501] ^ 0xFF]) + raw[502:])
    with pytest.raises(InputError, match="the gzipped file is truncated or damaged"):
        list(read(tmp_path / "set.jsonl.gz", "nemo"))
    monkeypatch.setattr("speechmeter.core.files._FROM_BYTES", 2**18)
    (tmp_path / "set.jsonl.gz").write_bytes(gzip.compress(b"\n" * 2**22))
    with pytest.raises(InputError, match="more than 200 times its size"):
        list(read(tmp_path / "set.jsonl.gz", "nemo"))


def test_an_unknown_format_is_refused_with_the_formats(tmp_path):
    (tmp_path / "a.list").write_text("shard_000.zip\nshard_001.zip\n")
    with pytest.raises(
        InputError, match=r"is not recognised: line 1: not JSON.*; set `format` to one of fairseq, nemo"
    ):
        recognised(tmp_path / "a.list")
    (tmp_path / "a.csv").write_text("name,sound\n")
    with pytest.raises(InputError, match="neither a column ID nor file_name"):
        recognised(tmp_path / "a.csv")


def test_letters_beside_a_tsv_become_words(tmp_path):
    (tmp_path / "set.ltr").write_text("H E L L O | Y O U |\n")
    assert one(tmp_path / "set.tsv", "/data\na/b.flac\t160\n").text == "HELLO YOU"


def test_a_root_takes_the_place_of_the_lists_own(tmp_path):
    found = one(tmp_path / "set.tsv", "/elsewhere\na.flac\t160\n", root=tmp_path)
    assert found.file == tmp_path / "a.flac"
    assert found.id == "a"


@pytest.mark.parametrize("written", ["$data_folder/a.wav", "{data_root}/a.wav"])
def test_placeholders_of_speechbrain_need_a_root(written, tmp_path):
    text = json.dumps({"a": {"wav": written, "length": 1.0}})
    assert "root" in one(tmp_path / "set.json", text).reason
    assert one(tmp_path / "set.json", text, root=tmp_path).file == tmp_path / "a.wav"


def test_a_part_in_speechbrain_counts_samples(tmp_path):
    fields = {"a": {"wav": {"file": "a.wav", "start": 1600, "stop": 4800}, "words": "x"}}
    found = one(tmp_path / "set.json", json.dumps(fields))
    assert (found.part, found.start_frame, found.frames) == (True, 1600, 3200)
    found = one(tmp_path / "set.csv", "ID,duration,wav,start,stop\na,0.2,a.wav,1600,4800\n")
    assert (found.part, found.start_frame, found.frames) == (True, 1600, 3200)


def test_a_json_object_that_breaks_off_is_refused_where_it_does(tmp_path):
    (tmp_path / "set.json").write_text('{"a": {"wav": "a.wav"}, "b": {"wav"')
    items = read(tmp_path / "set.json", "speechbrain-json")
    assert next(items).id == "a"
    with pytest.raises(InputError, match="cannot be read as JSON"):
        next(items)


def test_a_json_object_longer_than_a_window_is_read_whole(tmp_path):
    rows = {f"item{number}": {"wav": f"{number}.wav", "note": "x" * (number % 977)} for number in range(2000)}
    (tmp_path / "set.json").write_text(json.dumps(rows))
    found = list(read(tmp_path / "set.json"))
    assert [item.id for item in found] == list(rows)
    assert [item.path for item in found] == [row["wav"] for row in rows.values()]


def cut(**changes):
    source = {"type": "file", "channels": [0, 1], "source": "a.wav"}
    recording = {"id": "r", "sources": [source], "sampling_rate": 16_000, "num_samples": 32_000, "duration": 2.0}
    fields = {"id": "c", "start": 0, "duration": 1.0, "channel": 1, "supervisions": [], "recording": recording}
    return json.dumps({**fields, "type": "MonoCut", **changes})


def test_a_cut_is_a_part_of_one_channel(tmp_path):
    said = [{"start": 0.5, "text": "two"}, {"start": 0.1, "text": "one"}]
    found = one(tmp_path / "cuts.jsonl", cut(supervisions=said))
    assert isinstance(found, Utterance)
    assert (found.part, found.channel, found.rate, found.duration_s, found.text) == (True, 1, 16_000, 1.0, "one two")
    assert one(tmp_path / "cuts.jsonl", cut(duration=2.0)).part is False


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"type": "MixedCut", "tracks": []}, "the audio of a MixedCut is not stored in a file"),
        ({"type": "PaddingCut"}, "the audio of a PaddingCut is not stored in a file"),
        ({"recording": {"sources": [], "transforms": [{"name": "Speed"}]}}, "transforms"),
        ({"recording": {"sources": [{"type": "command", "channels": [1], "source": "sox |"}]}}, "is of type command"),
        (
            {"recording": {"sources": [{"type": "file", "channels": [0], "source": "a.wav"}]}},
            "no audio source has channel 1",
        ),
        ({"recording": {}}, "no sources"),
        ({"duration": -1}, "duration is -1"),
    ],
)
def test_cuts_whose_sound_is_in_no_file_are_refused(changes, why, tmp_path):
    found = one(tmp_path / "cuts.jsonl", cut(**changes), format="lhotse")
    assert isinstance(found, Refused)
    assert found.id == "c"
    assert why in found.reason


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a", "needs a recording, a start and an end"),
        ("a other 0 1", "no recording 'other'"),
        ("a rec 2 1", r"the end (1 s) must be after the start (2 s)"),
        ("a rec x 1", "start is 'x'"),
        ("a rec 0 y", "could not convert"),
    ],
)
def test_bad_segments_are_refused(line, why, tmp_path):
    (tmp_path / "segments").write_text(line + "\n")
    assert why in one(tmp_path / "wav.scp", "rec a.wav\n").reason


def test_a_segment_that_ends_at_minus_one_goes_to_the_end_of_its_file(tmp_path):
    (tmp_path / "segments").write_text("a rec 0.5 -1\n")
    found = one(tmp_path / "wav.scp", "rec a.wav\n")
    assert (found.start_s, found.duration_s, found.part) == (0.5, None, True)


def test_a_relative_path_starts_from_the_list_else_from_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.wav").write_bytes(b"")
    assert one(tmp_path / "lists/set.jsonl", '{"key": "a", "wav": "here.wav"}').file.resolve() == tmp_path / "here.wav"
    (tmp_path / "lists/here.wav").write_bytes(b"")
    assert one(tmp_path / "lists/set.jsonl", '{"key": "a", "wav": "here.wav"}').file == tmp_path / "lists/here.wav"


def test_files_below_a_folder_are_named_by_their_path(tmp_path):
    items = waves(1)
    write_sounds(tmp_path / "b", items)
    write_sounds(tmp_path / "a", items)
    assert [item.id for item in read(tmp_path)] == ["a/utt00", "b/utt00"]


def test_a_file_of_an_installed_package_is_found_and_the_package_is_not_imported(tmp_path, monkeypatch):
    package = tmp_path / "loudpackage"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert Utterance(id="a", path="package:loudpackage/a.wav").file == package / "a.wav"
    assert Utterance(id="a", path="package:nosuchpackage/a.wav").file == Path("nosuchpackage/a.wav")
    assert Utterance(id="a", path="package:../etc/passwd").file == Path("../etc/passwd")


@pytest.mark.parametrize("suffix", [".wrd", ".ltr", ".ids"])
@pytest.mark.parametrize("lines", [1, 3])
def test_a_file_beside_a_tsv_must_have_a_line_for_each_item(suffix, lines, tmp_path):
    (tmp_path / "set.tsv").write_text("/data\na.flac\t160\nb.flac\t160\n")
    (tmp_path / f"set{suffix}").write_text("word\n" * lines)
    with pytest.raises(InputError, match=rf"set.tsv has 2 items but set\{suffix} has {lines} lines?, so they"):
        list(read(tmp_path / "set.tsv"))


def test_an_empty_line_beside_a_tsv_is_an_item_without_a_text(tmp_path):
    (tmp_path / "set.tsv").write_text("/data\na.flac\t160\nb.flac\t160\n")
    (tmp_path / "set.wrd").write_text("\nhello\n\n")  # an empty line at the end is nobody's
    assert [item.text for item in read(tmp_path / "set.tsv")] == [None, "hello"]


@pytest.mark.parametrize("segments", [False, True])
def test_texts_in_kaldi_that_are_about_no_item_are_refused(segments, tmp_path):
    (tmp_path / "wav.scp").write_text("rec1 a.wav\nrec2 b.wav\n")
    if segments:
        (tmp_path / "segments").write_text("utt1 rec1 0 1\n")
    (tmp_path / "text").write_text("other1 hello\n")
    with pytest.raises(InputError, match="its first id is 'other1'"):
        list(read(tmp_path))
    name = "utt1" if segments else "rec2"
    (tmp_path / "text").write_text(f"other1 hello\n{name} you\n")
    assert [item.text for item in read(tmp_path)] == (["you"] if segments else [None, "you"])


@pytest.mark.parametrize(
    ("name", "line", "key"),
    [
        ("set.jsonl", {"audio_filepath": "a.wav", "text": ["a", "b"]}, "text"),
        ("set.jsonl", {"key": "a", "wav": "a.wav", "txt": 5}, "txt"),
        ("metadata.jsonl", {"file_name": "a.wav", "transcription": {"en": "a"}}, "transcription"),
    ],
)
def test_a_text_that_is_none_refuses_its_item(name, line, key, tmp_path):
    found = one(tmp_path / name, json.dumps(line) + "\n")
    assert isinstance(found, Refused)
    assert f"{key} is " in found.reason
    assert "not text" in found.reason


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"\xff\xfe\n", "line 1: the line is too long or not UTF-8"),
        (b"hello\n", "line 1: not JSON"),
        (b"[1]\n", "item 1: not a JSON object"),
        (b'{"sound": "a.wav"}\n', "line 1 has the keys 'sound'"),
    ],
)
def test_json_lines_that_are_no_list_are_refused_with_the_cause(content, why, tmp_path):
    (tmp_path / "set.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=why):
        recognised(tmp_path / "set.jsonl")


def test_a_sound_file_in_place_of_a_list_is_pointed_to_audio(tmp_path):
    (tmp_path / "a.WAV").write_bytes(b"RIFF")
    with pytest.raises(InputError, match="is a sound file, not a list of them; use `audio`"):
        recognised(tmp_path / "a.WAV")


def test_hidden_files_are_passed_over_and_files_of_one_stem_keep_their_endings(tmp_path):
    items = waves(2)
    write_sounds(tmp_path, items)
    write_sounds(tmp_path, items[:1], suffix=".wav")
    write_sounds(tmp_path / ".cache", items)
    (tmp_path / "._utt00.wav").write_bytes(b"")
    assert [item.id for item in read(tmp_path)] == ["utt00.flac", "utt00.wav", "utt01"]


SPEAKERS = {
    "set.jsonl": '{"audio_filepath": "a.wav", "duration": 1.0, "speaker": "anna"}\n',
    "wenet.jsonl": '{"key": "a", "wav": "a.wav", "txt": "x", "spk": "anna"}\n',
    "set.csv": "ID,duration,wav,spk_id\na,1.0,a.wav,anna\n",
    "set.json": '{"a": {"wav": "a.wav", "length": 1.0, "speaker_id": "anna"}}',
    "voices/metadata.csv": "file_name,client_id\na.wav,anna\n",
}


@pytest.mark.parametrize("name", SPEAKERS)
def test_a_speaker_is_read_by_its_usual_names(name, tmp_path):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(SPEAKERS[name])
    source = (tmp_path / name).parent if name.startswith("voices") else tmp_path / name
    (found,) = read(source)
    assert found.speaker == "anna"


def test_a_speaker_of_kaldi_is_that_of_utt2spk(tmp_path):
    (tmp_path / "wav.scp").write_text("a a.wav\nb b.wav\n")
    (tmp_path / "utt2spk").write_text("a anna\n")
    assert [item.speaker for item in read(tmp_path)] == ["anna", None]


@pytest.mark.parametrize(("names", "speaker"), [(["anna", "anna"], "anna"), (["anna", "ben"], None), ([], None)])
def test_a_cut_has_a_speaker_where_its_supervisions_agree(names, speaker, tmp_path):
    said = [{"id": str(n), "text": "x", "speaker": name} for n, name in enumerate(names)]
    assert one(tmp_path / "cuts.jsonl", cut(supervisions=said)).speaker == speaker
