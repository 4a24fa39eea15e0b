from itertools import pairwise

import numpy as np
import pytest
import soundfile
from conftest import make_case
from declared_options import check_as_in_a_plan
from speech_sets import KINDS, RATE, fairseq, folder, nemo, npy, pickled_list, waves, write_sounds

from speechmeter.core.errors import InputError
from speechmeter.core.types import Spec
from speechmeter.workloads import dataset
from speechmeter.workloads.dataset import DatasetWorkload
from speechmeter.workloads.sound import read


def case_of(manifest, /, protocol=None, axes=None, **options):
    workload = Spec(plugin="data", name="set", source=str(manifest), options={"manifest": str(manifest), **options})
    return make_case(
        workload=workload, protocol=protocol or {}, **{"sort": "none", "batch_seconds": None, **(axes or {})}
    )


def batches_of(manifest, /, axes=None, **options):
    case = case_of(manifest, axes=axes, **options)
    check_as_in_a_plan(DatasetWorkload(), case)
    return DatasetWorkload().batches(case)


@pytest.fixture
def items(tmp_path):
    made = waves()
    write_sounds(tmp_path / "sound", made)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_list_gives_the_same_batches(kind, tmp_path, items):
    batches = batches_of(KINDS[kind](tmp_path, items), axes={"batch": 6})
    assert [batch.items for batch in batches] == [6, 6, 6, 2]
    for number, batch in enumerate(batches):
        part = items[6 * number : 6 * number + 6]
        assert batch.ids == tuple(name for name, *_ in part)
        assert batch.references == tuple(text for *_, text in part)
        assert batch.lengths == tuple(len(wave) for _, wave, _ in part)
        assert batch.data.dtype == np.float32
        assert batch.data.shape == (len(part), max(batch.lengths))
        for row, (_, wave, _) in enumerate(part):
            np.testing.assert_array_equal(batch.data[row, : len(wave)], wave)
            assert not batch.data[row, len(wave) :].any()
        assert batch.audio_s == pytest.approx(sum(batch.lengths) / RATE)
        assert batch.padded_s == pytest.approx(batch.data.size / RATE)
    assert batches.left_out.count == 0
    assert batches.left_out.of == 20


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".mp3", ".opus"])
def test_sound_of_every_codec_is_read_at_16_khz(suffix, tmp_path):
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(48_000) / 48_000).astype(np.float32)
    kinds = {".opus": {"format": "OGG", "subtype": "OPUS"}, ".mp3": {"format": "MP3"}}
    soundfile.write(tmp_path / f"a{suffix}", tone, 48_000, **kinds.get(suffix, {}))
    batches = batches_of(tmp_path)
    wave = batches[0].data[0]
    assert abs(len(wave) - RATE) <= 0.05 * RATE
    spectrum = np.abs(np.fft.rfft(wave))
    assert abs(np.argmax(spectrum) * RATE / len(wave) - 440) < 2
    assert batches.notes == ("1 of 1 items resampled to 16000 Hz from 48000 Hz",)


def test_a_part_of_a_file_is_read_at_its_place(tmp_path):
    ramp = (np.arange(RATE) / 32768).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", ramp, RATE, subtype="PCM_16")
    (tmp_path / "set.jsonl").write_text('{"audio_filepath": "a.wav", "offset": 0.25, "duration": 0.5, "text": "x"}\n')
    (batch,) = batches_of(tmp_path / "set.jsonl")
    np.testing.assert_array_equal(batch.data[0], ramp[RATE // 4 : 3 * RATE // 4])


def test_sorted_batches_waste_less_and_hold_the_same_items(tmp_path, items):
    path = fairseq(tmp_path, items)
    lengths = sorted(len(wave) for _, wave, _ in items)
    plain, rising, falling = (
        batches_of(path, axes={"batch": 4, "sort": sort}) for sort in ("none", "ascending", "descending")
    )
    assert [length for batch in rising for length in batch.lengths] == lengths
    assert [length for batch in falling for length in batch.lengths] == lengths[::-1]
    assert sum(batch.padded_s for batch in rising) < sum(batch.padded_s for batch in plain)
    assert sum(batch.audio_s for batch in rising) == pytest.approx(sum(batch.audio_s for batch in plain))
    assert {name for batch in rising for name in batch.ids} == {name for name, *_ in items}


def test_batches_by_seconds_hold_as_many_as_fit_with_their_padding(tmp_path, items):
    batches = batches_of(fairseq(tmp_path, items), axes={"batch_seconds": 1.0})
    assert all(batch.padded_s <= 1.0 for batch in batches)
    assert [name for batch in batches for name in batch.ids] == [name for name, *_ in items]
    for batch, after in pairwise(batches):
        longest = max(*batch.lengths, after.lengths[0])
        assert longest * (batch.items + 1) / RATE > 1.0


def test_an_item_beyond_batch_seconds_is_a_batch_of_its_own(tmp_path, items):
    batches = batches_of(fairseq(tmp_path, items), axes={"batch_seconds": 0.01})
    assert [batch.items for batch in batches] == [1] * 20


def test_batch_and_batch_seconds_exclude_each_other(tmp_path, items):
    with pytest.raises(InputError, match="cannot be combined"):
        batches_of(fairseq(tmp_path, items), axes={"batch": 2, "batch_seconds": 1.0})


def test_references_are_given_where_every_item_has_one(tmp_path, items):
    path = nemo(tmp_path, items[:4])
    lines = path.read_text().splitlines()
    lines[3] = lines[3].replace('"text"', '"other"')
    path.write_text("\n".join(lines))
    first, second = batches_of(path, axes={"batch": 2})
    assert first.references == ("one 0", "two 1")
    assert second.references == ()


def test_features_of_a_sample_list_become_a_padded_batch(tmp_path):
    draw = np.random.default_rng(0)
    arrays = [draw.standard_normal((1, frames, 80)).astype(np.float32) for frames in (7, 12)]
    rows = [{"id": n, "net_input": {"src_tokens": a, "src_lengths": [a.shape[1]]}} for n, a in enumerate(arrays)]
    (batch,) = batches_of(pickled_list(tmp_path / "f.npy", rows), axes={"batch": 2})
    assert batch.data.shape == (2, 12, 80)
    np.testing.assert_array_equal(batch.data[0, :7], arrays[0][0])
    assert not batch.data[0, 7:].any()
    assert (batch.lengths, batch.audio_s, batch.padded_s) == ((7, 12), None, None)


class Reads:
    def __init__(self, monkeypatch):
        self.ids = []
        monkeypatch.setattr(dataset.sound, "read", self._read)

    def _read(self, utterance, taste):
        self.ids.append(utterance.id)
        return read(utterance, taste)


def test_kept_sound_is_not_decoded_again_and_loading_anew_is(tmp_path, items, monkeypatch):
    reads = Reads(monkeypatch)
    batches = batches_of(fairseq(tmp_path, items), axes={"batch": 5})
    for _ in range(3):
        assert [batch.items for batch in batches] == [5] * 4
    assert sorted(reads.ids) == [name for name, *_ in items]
    assert len(list(batches.again())) == 4
    assert len(reads.ids) == 40


def test_sound_beyond_the_room_is_read_in_its_turn_and_not_held(tmp_path, items, monkeypatch):
    reads = Reads(monkeypatch)
    monkeypatch.setattr(dataset, "_KEPT_BYTES", 0)
    batches = batches_of(fairseq(tmp_path, items))
    assert len(reads.ids) == 20
    np.testing.assert_array_equal(batches[3].data[0], items[3][1])
    assert reads.ids[20:] == ["utt03"]
    assert [outline.ids for outline in batches.outlines()] == [(name,) for name, *_ in items]
    assert len(reads.ids) == 21


def test_a_choice_is_the_same_for_a_seed_and_keeps_the_order(tmp_path, items):
    def chosen(seed):
        case = case_of(folder(tmp_path / str(seed), items), protocol={"seed": seed // 2}, count=8, pick="random")
        return [name for batch in DatasetWorkload().batches(case) for name in batch.ids]

    first, again, other = chosen(0), chosen(1), chosen(2)
    assert first == again == sorted(first)
    assert first != other
    assert len(first) == 8


@pytest.mark.parametrize("how", ["shortest", "longest"])
@pytest.mark.parametrize("kind", ["fairseq", "folder", "npy"])
def test_the_shortest_and_longest_are_found_whether_lengths_are_stated_or_not(how, kind, tmp_path, items):
    ranked = sorted(items, key=lambda item: len(item[1]), reverse=how == "longest")[:5]
    batches = batches_of(KINDS[kind](tmp_path, items), count=5, pick=how)
    assert [name for batch in batches for name in batch.ids] == sorted(name for name, *_ in ranked)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"count": 0}, "count must be at least 1"),
        ({"count": True}, "count takes"),
        ({"pick": "best", "count": 2}, "pick takes one of"),
        ({"pick": "random"}, "needs a count"),
        ({"longest": 0}, "longest must be greater than 0"),
        ({"longest": float("nan")}, "longest must be finite"),
        ({"channel": "left"}, "channel takes"),
        ({"channel": -1}, "channel must be at least 0"),
        ({"format": "nemmo"}, "format takes one of auto, fairseq, nemo"),
        ({"manifest": ""}, "manifest is missing"),
        ({"manifest": "absent.tsv"}, "does not exist"),
    ],
)
def test_bad_options_are_refused(options, what, tmp_path, items):
    with pytest.raises(InputError, match=what):
        batches_of(fairseq(tmp_path, items), **options)


def test_sound_from_a_sample_list_needs_no_files(tmp_path, items):
    path = npy(tmp_path, items)
    for file in (tmp_path / "sound").iterdir():
        file.unlink()
    np.testing.assert_array_equal(batches_of(path)[0].data[0], items[0][1])


def test_a_sample_list_keeps_its_numbers_where_a_model_is_run_on_shapes_alone(tmp_path, items):
    from speechmeter.meters.flops.shapes_only import shapes_only

    path = npy(tmp_path, items)
    with shapes_only():
        batch = batches_of(path)[0]
    np.testing.assert_array_equal(batch.data[0], items[0][1])
