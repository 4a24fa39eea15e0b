import numpy as np
import pytest
import soundfile
from conftest import make_case
from declared_options import check_as_in_a_plan

from speechmeter.core.errors import InputError
from speechmeter.core.types import Spec
from speechmeter.workloads.audio import RATE, AudioWorkload, read_audio, read_sample, sample_anchors, sample_transcript
from speechmeter.workloads.dataset import DatasetWorkload


def batch_of(source, **axes):
    case = make_case(workload=Spec(plugin="audio", name=str(source), source=str(source)), **axes)
    AudioWorkload().check(case)
    (batch,) = AudioWorkload().batches(case)
    return batch


def tone(seconds, rate=RATE, channels=1):
    wave = np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate)) / rate).astype(np.float32) * 0.5
    return np.stack([wave] * channels, axis=1)


@pytest.mark.parametrize("source", ["noise", "sample"])
@pytest.mark.parametrize(("seconds", "items"), [(0.5, 1), (20.0, 3)])
def test_a_batch_has_exactly_the_asked_seconds(source, seconds, items):
    batch = batch_of(source, seconds=seconds, batch=items)
    assert batch.data.shape == (items, round(seconds * RATE))
    assert batch.data.dtype == np.float32
    assert batch.audio_s == items * seconds
    assert batch.items == len(batch.ids) == len(batch.lengths) == items


def test_short_audio_is_repeated_in_time(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(0.25), RATE, subtype="FLOAT")
    batch = batch_of(tmp_path / "a.wav", seconds=1.0)
    np.testing.assert_array_equal(batch.data[0], np.tile(tone(0.25)[:, 0], 4))


def test_long_audio_is_cut(tmp_path):
    soundfile.write(tmp_path / "a.flac", tone(2), RATE)
    assert batch_of(tmp_path / "a.flac", seconds=0.5).data.shape == (1, RATE // 2)


def batches_of(source, options=None, **axes):
    case = make_case(workload=Spec(plugin="audio", name=str(source), source=str(source), options=options or {}), **axes)
    AudioWorkload().check(case)
    return AudioWorkload().batches(case)


@pytest.mark.parametrize(
    ("lasts", "seconds", "note", "warned"),
    [
        (1.0, 1.0, None, False),
        (2.0, 1.0, None, False),
        (0.5, 1.0, "a.wav lasts 0.5 s and is repeated 2 times to fill 1 s", False),
        (0.4, 1.2, "a.wav lasts 0.4 s and is repeated 3 times to fill 1.2 s", False),
        (0.3, 1.0, "a.wav lasts 0.3 s and is repeated 3.33 times to fill 1 s", True),
        (0.01, 5.0, "a.wav lasts 0.01 s and is repeated 500 times to fill 5 s", True),
    ],
)
def test_a_file_that_is_repeated_is_noted_and_warned_of_where_that_is_often(tmp_path, lasts, seconds, note, warned):
    soundfile.write(tmp_path / "a.wav", tone(lasts), RATE)
    batches = batches_of(tmp_path / "a.wav", seconds=seconds)
    assert batches.notes == (() if note is None else (note,))
    assert [text.partition(": ")[0] for text in batches.warnings] == ([note] if warned else [])


def test_the_sample_and_random_cuts_are_noted_where_they_are_repeated_and_noise_never_is(tmp_path):
    assert batches_of("sample", seconds=32.0).notes == ("sample lasts 16.5 s and is repeated 1.94 times to fill 32 s",)
    assert batches_of("noise", seconds=32.0).notes == ()
    soundfile.write(tmp_path / "a.wav", tone(0.1), RATE)
    cut = batches_of(tmp_path / "a.wav", {"count": 2, "shortest": 0.05, "longest": 1.0})
    assert cut.notes == ("a.wav lasts 0.1 s and is repeated 10 times to fill 1 s",)
    assert len(cut.warnings) == 1


def test_what_was_done_to_a_file_is_noted(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(1, rate=44_100, channels=2), 44_100, subtype="FLOAT")
    assert batches_of(tmp_path / "a.wav", seconds=1.0).notes == (
        "1 of 1 items resampled to 16000 Hz from 44100 Hz",
        "1 of 1 items mixed to mono from 2 channels",
    )


def test_a_batch_that_is_loaded_again_is_the_same(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(0.5), RATE)
    for source in ("noise", "sample", tmp_path / "a.wav"):
        batches = batches_of(source, seconds=1.0)
        (first,), (again,) = batches, batches.again()
        np.testing.assert_array_equal(first.data, again.data)


def test_a_folder_is_read_by_the_rules_of_data(without_pyav, tmp_path):
    """Rate, channels, length, numbers that are none, empty and broken files, foreign kinds: one rule for both."""
    below = tmp_path / "below"
    below.mkdir()
    soundfile.write(tmp_path / "stereo.wav", tone(0.5, channels=2), RATE)
    soundfile.write(tmp_path / "fast.wav", tone(0.5, rate=44_100), 44_100)
    soundfile.write(below / "fine.flac", tone(0.25), RATE)
    soundfile.write(tmp_path / "nan.wav", np.full(RATE, np.nan), RATE, subtype="FLOAT")
    soundfile.write(tmp_path / "none.wav", tone(0), RATE)
    with soundfile.SoundFile(tmp_path / "long.wav", "w", 100, 1, subtype="PCM_U8") as file:
        file.write(np.zeros(3601 * 100, dtype=np.float32))
    whole = (below / "fine.flac").read_bytes()
    (tmp_path / "torn.flac").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "zero.wav").write_bytes(b"")
    (tmp_path / "garbage.mp3").write_bytes(b"no sound in here" * 100)
    (tmp_path / "phone.m4a").write_bytes(b"x")
    options = {"manifest": str(tmp_path)}
    data = make_case(workload=Spec(plugin="data", name="set", source=str(tmp_path), options=options), batch=2)
    audio, listed = batches_of(tmp_path, batch=2), DatasetWorkload().batches(data)
    assert [batch.ids for batch in audio] == [("fast", "stereo"), ("below/fine",)]
    for one, other in zip(audio, listed, strict=True):
        assert (one.ids, one.lengths, one.audio_s, one.padded_s) == (
            other.ids,
            other.lengths,
            other.audio_s,
            other.padded_s,
        )
        np.testing.assert_array_equal(one.data, other.data)
    assert (audio.notes, audio.left_out) == (listed.notes, listed.left_out)
    assert audio.notes == (
        "1 of 3 items resampled to 16000 Hz from 44100 Hz",
        "1 of 3 items mixed to mono from 2 channels",
    )
    assert {name for name, _ in audio.left_out.first} == {"nan", "none", "long", "torn", "zero", "garbage"}
    assert audio.left_out.kinds == ((".m4a", 1),)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nan.wav", "holds NaN or infinite numbers"),
        ("none.wav", "holds no sound"),
        ("torn.flac", "truncated"),
        ("zero.wav", "the file is empty"),
        ("garbage.mp3", "convert it: ffmpeg -i garbage.mp3 garbage.wav"),
        ("phone.m4a", "convert it: ffmpeg -i phone.m4a phone.wav"),
    ],
)
def test_a_single_file_is_refused_for_the_reasons_of_data(tmp_path, name, said):
    path = tmp_path / name
    if name == "nan.wav":
        soundfile.write(path, np.full(RATE, np.nan), RATE, subtype="FLOAT")
    elif name == "none.wav":
        soundfile.write(path, tone(0), RATE)
    elif name == "torn.flac":
        soundfile.write(path, tone(1), RATE)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        path.write_bytes(b"" if name == "zero.wav" else b"no sound in here" * 100)
    with pytest.raises(InputError) as refused:
        batches_of(path, seconds=1.0)
    assert str(refused.value).startswith(f"`audio`: '{path}': ") and said in str(refused.value)


def test_a_file_that_is_cut_may_last_longer_than_an_item_that_is_fed_whole(tmp_path):
    with soundfile.SoundFile(tmp_path / "long.wav", "w", 100, 1, subtype="PCM_U8") as file:
        file.write(np.zeros(3601 * 100, dtype=np.float32))
    assert batches_of(tmp_path / "long.wav", seconds=1.0)[0].data.shape == (1, RATE)


def test_another_rate_and_two_channels_become_mono_16_khz(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(1, rate=44_100, channels=2), 44_100, subtype="FLOAT")
    wave = read_audio(tmp_path / "a.wav")
    assert abs(len(wave) - RATE) <= 1
    spectrum = np.abs(np.fft.rfft(wave[:RATE]))
    assert abs(np.argmax(spectrum) * RATE / len(wave[:RATE]) - 440) < 2


def test_noise_follows_the_seed_and_differs_between_items():
    first = batch_of("noise", batch=2)
    again = batch_of("noise", batch=2)
    other = batch_of("noise", batch=2, protocol={"seed": 1})
    np.testing.assert_array_equal(first.data, again.data)
    assert not np.array_equal(first.data, other.data)
    assert not np.array_equal(first.data[0], first.data[1])


def test_the_shipped_sample_is_speech_with_a_transcript():
    wave, transcript = read_sample()
    assert len(wave) / RATE >= 10
    assert transcript.count(".") >= 3
    assert np.abs(wave).max() > 0.1


@pytest.mark.parametrize("content", [None, b"", b"not sound at all", "folder", "empty wav"])
def test_what_is_no_sound_is_refused(content, tmp_path):
    path = tmp_path / "a.wav"
    if content == "folder":
        path.mkdir()
    elif content == "empty wav":
        soundfile.write(path, tone(0), RATE)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        batch_of(path)
    assert "a.wav" in str(caught.value)


def test_a_folder_gives_every_file_at_its_own_length(tmp_path):
    for name, seconds in (("b", 0.5), ("a", 1.0), ("c", 0.25)):
        soundfile.write(tmp_path / f"{name}.wav", tone(seconds), RATE)
    (tmp_path / "notes.txt").write_text("no sound")
    case = make_case(workload=Spec(plugin="audio", name="folder", source=str(tmp_path)), batch=2)
    AudioWorkload().check(case)
    first, second = AudioWorkload().batches(case)
    assert (first.ids, second.ids) == (("a", "b"), ("c",))
    assert first.lengths == (RATE, RATE // 2)
    assert first.data.shape == (2, RATE)
    assert not first.data[1, RATE // 2 :].any()
    assert (first.audio_s, first.padded_s) == (1.5, 2.0)


def test_a_folder_without_sound_is_refused(tmp_path):
    case = make_case(workload=Spec(plugin="audio", name="folder", source=str(tmp_path)))
    with pytest.raises(InputError, match="holds no sound file"):
        AudioWorkload().check(case)


CUTS = {"count": 5, "shortest": 0.5, "longest": 1.5}


def cuts(source="sample", options=CUTS, **axes):
    case = make_case(workload=Spec(plugin="audio", name="cut", source=str(source), options=options), **axes)
    check_as_in_a_plan(AudioWorkload(), case)
    return list(AudioWorkload().batches(case))


def test_cuts_have_lengths_between_the_bounds_and_are_padded_with_silence():
    batches = cuts(batch=2)
    assert [batch.items for batch in batches] == [2, 2, 1]
    lengths = [length for batch in batches for length in batch.lengths]
    assert all(0.5 * RATE <= length <= 1.5 * RATE for length in lengths)
    assert len(set(lengths)) == 5
    first = batches[0]
    short = min(range(2), key=first.lengths.__getitem__)
    assert not first.data[short, first.lengths[short] :].any()
    assert first.audio_s == sum(first.lengths) / RATE
    assert first.padded_s == 2 * max(first.lengths) / RATE
    assert first.ids == ("cut-000", "cut-001")


def test_cuts_come_out_of_the_source_and_follow_the_seed(tmp_path):
    ramp = np.arange(3 * RATE, dtype=np.float32) / (3 * RATE)
    soundfile.write(tmp_path / "ramp.wav", ramp, RATE, subtype="FLOAT")
    (batch, *_) = cuts(tmp_path / "ramp.wav")
    piece = batch.data[0, : batch.lengths[0]]
    start = int(np.argmin(np.abs(ramp - piece[0])))
    np.testing.assert_array_equal(piece, np.resize(np.roll(ramp, -start), len(piece)))
    again, other = cuts(tmp_path / "ramp.wav")[0], cuts(tmp_path / "ramp.wav", protocol={"seed": 1})[0]
    np.testing.assert_array_equal(batch.data, again.data)
    assert batch.lengths != other.lengths


def test_noise_and_speech_are_cut_to_the_same_lengths():
    assert [b.lengths for b in cuts("noise", batch=5)] == [b.lengths for b in cuts("sample", batch=5)]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"count": 0}, "count must be at least 1"),
        ({"count": True}, "count takes"),
        ({"count": None}, "must be given together"),
        ({"shortest": 0}, "shortest must be greater than 0"),
        ({"longest": "8"}, "longest takes a number"),
        ({"longest": float("inf")}, "longest must be finite"),
        ({"shortest": 2.0}, "`shortest` must be at most `longest`"),
    ],
)
def test_bad_cuts_are_refused(changes, what):
    with pytest.raises(InputError, match=what):
        cuts(options={**CUTS, **changes})


def test_bounds_without_a_count_and_cuts_of_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="must be given together"):
        cuts(options={"shortest": 1.0, "longest": 2.0})
    with pytest.raises(InputError, match="is used as a whole, so no excerpts can be taken"):
        cuts(tmp_path)


def test_the_whole_sample_comes_with_its_transcript_and_a_part_of_it_without():
    voice, transcript = read_sample()
    whole = len(voice) / RATE
    assert batch_of("sample", seconds=whole).references == (transcript,)
    assert batch_of("sample", seconds=whole / 2).references == ()
    assert batch_of("sample", seconds=whole * 2).references == ()
    assert batch_of("sample", seconds=whole, batch=2).references == ()
    assert batch_of("noise", seconds=whole).references == ()


def test_the_sample_says_where_speech_is_at_every_length():
    whole = sample_anchors(16.47, 16.47)
    assert (whole.speech_start_s, whole.speech_end_s, len(whole.words)) == (0.256, 16.384, 49)
    assert [word.text for word in whole.words] == sample_transcript().lower().replace(",", "").replace(".", "").split()
    inside_a_word = sample_anchors(1.0, 16.47)  # "the harbour was", and the beginning of "quiet"
    assert ([word.text for word in inside_a_word.words], inside_a_word.speech_end_s) == (["the", "harbour", "was"], 1.0)
    in_a_pause = sample_anchors(3.0, 16.47)  # between "in" and "seven"
    assert (in_a_pause.words[-1].text, in_a_pause.speech_end_s) == ("in", 2.83)
    again = sample_anchors(33.0, 16.47)
    assert len(again.words) == 98
    assert again.words[49].start_s == pytest.approx(16.47 + 0.16)
    assert again.speech_end_s == pytest.approx(16.47 + 16.384)
    assert sample_anchors(0.1, 16.47).speech_end_s is None
    assert sample_anchors(0.1, 16.47).speech_start_s is None
    batch = batch_of("sample", seconds=2.0, batch=3)
    assert len(batch.anchors) == 3
    assert all(one.words == sample_anchors(2.0, 16.47).words for one in batch.anchors)


def test_sound_that_decodes_to_more_than_fits_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    path = tmp_path / "silence.flac"
    soundfile.write(path, np.zeros((RATE, 2), np.float32), RATE)
    monkeypatch.setattr("speechmeter.workloads.sound._MOST_DECODED", 4 * RATE - 1)
    monkeypatch.setattr("soundfile.SoundFile.read", lambda *a, **k: pytest.fail("it is decoded"))
    with pytest.raises(InputError, match="decodes to"):
        read_audio(path)
