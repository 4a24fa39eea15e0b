import json

import numpy as np
import pytest
import soundfile
from speech_sets import KINDS, RATE, waves, write_sounds

from speechmeter.core.errors import InputError
from speechmeter.workloads.manifests.write import write
from speechmeter.workloads.selection import Choice, select
from speechmeter.workloads.sound import Taste


def subset(source, target, **choice):
    wanted = Choice(manifest=source, **choice)
    return write(target, select(wanted), wanted.taste)


def content(path):
    seen = []
    found = select(Choice(manifest=path), keep=lambda place, data: seen.append(data))
    return [(item.utterance.id, item.utterance.text, data) for item, data in zip(found.items, seen, strict=True)]


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".npy"])
@pytest.mark.parametrize("kind", ["fairseq", "kaldi", "lhotse", "folder"])
def test_a_subset_reads_back_as_it_was_chosen(suffix, kind, tmp_path):
    items = waves()
    write_sounds(tmp_path / "sound", items)
    target = tmp_path / "out" / f"set{suffix}"
    subset(KINDS[kind](tmp_path, items), target, count=7, how="longest")
    expected = sorted(sorted(items, key=lambda item: len(item[1]))[-7:])
    for (name, wave, text), (id_, said, data) in zip(expected, content(target), strict=True):
        assert (id_, said) == (name, text)
        np.testing.assert_array_equal(data, wave)


@pytest.mark.parametrize("suffix", [".jsonl", ".npy"])
def test_parts_of_a_file_keep_their_place(suffix, tmp_path):
    items = waves(6)
    subset(KINDS["kaldi with segments"](tmp_path, items), tmp_path / f"set{suffix}", count=4)
    for (name, wave, _), (id_, _, data) in zip(items[:4], content(tmp_path / f"set{suffix}"), strict=True):
        assert id_ == name
        np.testing.assert_array_equal(data, wave)


def test_ids_that_are_not_paths_are_kept_beside_a_tsv(tmp_path):
    items = waves(4)
    write_sounds(tmp_path / "sound", items)
    cuts = KINDS["lhotse"](tmp_path, items)
    cuts.write_text(cuts.read_text().replace('"id": "utt', '"id": "cut-'))
    made = subset(cuts, tmp_path / "set.tsv", count=4)
    assert {path.name for path in made} == {"set.tsv", "set.wrd", "set.ids"}
    assert [name for name, *_ in content(tmp_path / "set.tsv")] == [f"cut-{number:02d}" for number in range(4)]


def test_a_tsv_counts_samples_of_the_file_and_json_lines_true_seconds(tmp_path):
    items = waves(3)
    write_sounds(tmp_path / "sound", items)
    source = KINDS["wenet"](tmp_path, items)
    subset(source, tmp_path / "set.tsv")
    root, *rows = (tmp_path / "set.tsv").read_text().splitlines()
    assert root == str(tmp_path / "sound")
    assert rows == [f"{name}.flac\t{len(wave)}" for name, wave, _ in items]
    subset(source, tmp_path / "set.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "set.jsonl").read_text().splitlines()]
    assert [line["duration"] for line in lines] == [len(wave) / RATE for _, wave, _ in items]


@pytest.mark.parametrize(
    ("kind", "target", "what"),
    [
        ("npy", "set.tsv", "in the list itself"),
        ("npy", "set.jsonl", "in the list itself"),
        ("kaldi with segments", "set.tsv", "parts of a file"),
        ("npy", "set.csv", "is not supported"),
    ],
)
def test_what_a_format_cannot_hold_is_refused_and_nothing_is_written(kind, target, what, tmp_path):
    source = KINDS[kind](tmp_path, waves(3))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=what):
        subset(source, tmp_path / target)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("sign", ["\n", "\t", "\u2028"])
def test_a_file_whose_name_would_break_a_line_is_refused_by_a_tsv_and_kept_by_json_lines(sign, tmp_path):
    ((name, wave, _),) = waves(1)
    path = tmp_path / f"a{sign}b.wav"
    soundfile.write(path, wave, RATE)
    source = tmp_path / "list.jsonl"
    source.write_text(json.dumps({"id": name, "audio_filepath": str(path), "duration": len(wave) / RATE}) + "\n")
    with pytest.raises(InputError, match="a line of a TSV cannot hold"):
        subset(source, tmp_path / "set.tsv", count=1)
    assert not (tmp_path / "set.tsv").exists()
    subset(source, tmp_path / "set.jsonl", count=1)
    assert [id_ for id_, *_ in content(tmp_path / "set.jsonl")] == [name]


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".npy"])
def test_one_item_without_a_text_costs_the_others_none(suffix, tmp_path):
    items = waves(3)
    write_sounds(tmp_path / "sound", items)
    source = KINDS["kaldi"](tmp_path, items)
    table = source / "text" if source.is_dir() else source.parent / "text"
    table.write_text("".join(line for line in table.read_text().splitlines(keepends=True) if "utt01" not in line))
    subset(source, tmp_path / f"set{suffix}")
    assert [text for _, text, _ in content(tmp_path / f"set{suffix}")] == [items[0][2], None, items[2][2]]


@pytest.mark.parametrize("channel", [1, "mix"])
def test_the_chosen_channel_is_written(channel, tmp_path):
    left, right = np.full(RATE // 4, 0.25, np.float32), np.full(RATE // 4, 0.75, np.float32)
    (tmp_path / "sound").mkdir()
    soundfile.write(tmp_path / "sound/a.wav", np.stack([left, right], axis=1), RATE, subtype="FLOAT")
    subset(tmp_path / "sound", tmp_path / "set.jsonl", taste=Taste(channel=channel))
    ((_, _, data),) = content(tmp_path / "set.jsonl")
    np.testing.assert_allclose(data, right if channel == 1 else (left + right) / 2)
