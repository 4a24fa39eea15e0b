"""Sound that libsndfile does not decode: read by PyAV, in files and in tar files; playlists are never followed."""

import io
import tarfile

import numpy as np
import pytest
from speech_sets import RATE

from speechmeter.workloads import compressed, sound
from speechmeter.workloads.manifests.formats import read
from speechmeter.workloads.manifests.utterance import Utterance
from speechmeter.workloads.sound import Taste, UnusableError

av = pytest.importorskip("av", reason="PyAV is not installed: pip install 'speechmeter[m4a]'")


@pytest.fixture(scope="module")
def m4a():
    """A second of 440 Hz as AAC, with two channels of which the second is half as loud."""
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)
    made = io.BytesIO()
    with av.open(made, "w", format="mp4") as container:
        track = container.add_stream("aac", rate=RATE, layout="stereo")
        frame = av.AudioFrame.from_ndarray(np.stack([tone, tone / 2]).astype(np.float32), "fltp", "stereo")
        frame.rate = RATE
        container.mux([*track.encode(frame), *track.encode(None)])
    return made.getvalue()


def test_aac_is_decoded_to_the_tone_that_was_encoded(tmp_path, m4a):
    (tmp_path / "a.m4a").write_bytes(m4a)
    (item,) = read(tmp_path)
    heard = sound.read(item, Taste())
    assert len(heard) == pytest.approx(RATE, abs=2048)
    spectrum = np.abs(np.fft.rfft(heard[2000:14000]))
    assert spectrum.argmax() * RATE / 12000 == pytest.approx(440, abs=2)
    loud = sound.read(item, Taste(channel=0))
    assert np.abs(loud[4000:12000]).max() == pytest.approx(0.5, rel=0.1)
    assert np.abs(sound.read(item, Taste(channel=1))[4000:12000]).max() == pytest.approx(0.25, rel=0.1)


def test_a_part_begins_where_the_list_says(tmp_path, m4a):
    (tmp_path / "a.m4a").write_bytes(m4a)
    part = Utterance(id="p", path=str(tmp_path / "a.m4a"), part=True, start_s=0.5, duration_s=0.25)
    assert len(sound.read(part, Taste())) == RATE // 4


def test_aac_in_a_tar_file_is_decoded(tmp_path, m4a):
    with tarfile.open(tmp_path / "set.tar", "w") as file:
        info = tarfile.TarInfo("a.m4a")
        info.size = len(m4a)
        file.addfile(info, io.BytesIO(m4a))
    (item,) = read(tmp_path / "set.tar")
    assert len(sound.read(item, Taste())) == pytest.approx(RATE, abs=2048)


@pytest.mark.parametrize(
    "content",
    [
        b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n",
        b"ffconcat version 1.0\nfile '/etc/passwd'\n",
        b"\0\0\0\x18ftypM4A " + b"\0" * 100,
        b"x",
    ],
)
def test_playlists_and_damaged_files_are_left_out(tmp_path, content):
    (tmp_path / "a.m4a").write_bytes(content)
    (item,) = read(tmp_path)
    with pytest.raises(UnusableError, match="cannot be read"):
        sound.read(item, Taste())


def test_a_file_cut_short_is_left_out(tmp_path, m4a):
    (tmp_path / "a.m4a").write_bytes(m4a[: len(m4a) // 2])
    (item,) = read(tmp_path)
    with pytest.raises(UnusableError):
        sound.read(item, Taste())


def test_what_unpacks_to_too_much_is_refused(tmp_path, m4a, monkeypatch):
    monkeypatch.setattr(compressed, "_MOST_DECODED", 10_000)
    with pytest.raises(compressed.UndecodableError, match="decodes to more than"):
        compressed.decoded(m4a)


def test_without_pyav_such_files_are_counted(tmp_path, m4a, monkeypatch):
    monkeypatch.setattr(compressed, "is_installed", lambda: False)
    (tmp_path / "a.m4a").write_bytes(m4a)
    (refused,) = read(tmp_path)
    assert refused.kind == ".m4a"
