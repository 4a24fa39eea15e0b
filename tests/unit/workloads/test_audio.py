import numpy as np
import pytest
import soundfile
from conftest import make_case

from speechmeter.core.errors import InputError
from speechmeter.core.types import Spec
from speechmeter.workloads.audio import RATE, AudioWorkload, read_audio, read_sample


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
    AudioWorkload().check(case)
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
        ({"count": 0}, "count takes"),
        ({"count": True}, "count takes"),
        ({"count": None}, "count takes"),
        ({"shortest": 0}, "seconds above 0"),
        ({"longest": "8"}, "seconds above 0"),
        ({"longest": float("inf")}, "seconds above 0"),
        ({"shortest": 2.0}, "shortest is more than longest"),
    ],
)
def test_bad_cuts_are_refused(changes, what):
    with pytest.raises(InputError, match=what):
        cuts(options={**CUTS, **changes})


def test_bounds_without_a_count_and_cuts_of_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="count takes"):
        cuts(options={"shortest": 1.0, "longest": 2.0})
    with pytest.raises(InputError, match="as long as they are"):
        cuts(tmp_path)


def test_the_whole_sample_comes_with_its_transcript_and_a_part_of_it_without():
    voice, transcript = read_sample()
    whole = len(voice) / RATE
    assert batch_of("sample", seconds=whole).references == (transcript,)
    assert batch_of("sample", seconds=whole / 2).references == ()
    assert batch_of("sample", seconds=whole * 2).references == ()
    assert batch_of("sample", seconds=whole, batch=2).references == ()
    assert batch_of("noise", seconds=whole).references == ()
