"""Sound that is read for an interpreter which cannot read it itself."""

import builtins
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from conftest import make_case

from speechmeter.core import plugins
from speechmeter.core.types import Spec
from speechmeter.workloads import lent


@pytest.fixture
def lend(tmp_path, monkeypatch):
    """Read a case's sound in this process, then make sound files unreadable: what is fed next was lent."""
    folder = tmp_path / "lent"
    folder.mkdir()

    def reading(case):
        monkeypatch.setattr(lent, "_lending", [folder])
        wanted = list(plugins.workload(case.workload.plugin).batches(case))
        monkeypatch.setattr(lent, "_lending", [])
        monkeypatch.setenv(lent.VARIABLE, str(folder))
        usual = builtins.__import__

        def without(name, *args, **kwargs):
            if name in ("soundfile", "soxr"):
                raise ImportError(f"No module named {name!r}")
            return usual(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", without)
        return wanted

    return reading


def write(path, seconds, rate=16_000, channels=1):
    samples = np.random.default_rng(len(path.name)).uniform(-0.5, 0.5, (round(seconds * rate), channels))
    soundfile.write(path, samples, rate)
    return path


def same(found, wanted):
    assert [batch.ids for batch in found] == [batch.ids for batch in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(one.data, other.data) and one.lengths == other.lengths


def audio(source):
    return make_case(workload=Spec(plugin="audio", name="a", source=str(source)))


@pytest.mark.parametrize("rate", [16_000, 8_000])
def test_a_file_is_fed_as_it_was_read_elsewhere(rate, lend, tmp_path):
    case = audio(write(tmp_path / "a.wav", 1.5, rate, channels=2))
    wanted = lend(case)
    batches = plugins.workload("audio").batches(case)
    same(list(batches), wanted)
    assert any("mixed to mono" in note for note in batches.notes)


def test_the_sample_that_ships_is_lent_too(lend):
    case = audio("sample")
    same(list(plugins.workload("audio").batches(case)), lend(case))


def test_of_a_list_the_same_items_are_left_out_for_the_same_reason(lend, tmp_path):
    write(tmp_path / "a.wav", 0.5)
    write(tmp_path / "b.wav", 0.7)
    (tmp_path / "c.wav").write_bytes(b"RIFF")
    case = audio(tmp_path)
    first = plugins.workload("audio").batches(case).left_out
    wanted = lend(case)
    batches = plugins.workload("audio").batches(case)
    same(list(batches), wanted)
    assert first.count == 1 and batches.left_out == first


def test_what_was_not_lent_says_what_to_install(lend, tmp_path):
    case, other = (audio(write(tmp_path / name, 0.5)) for name in ("a.wav", "other.wav"))
    lend(case)
    with pytest.raises(Exception, match="was not read for this interpreter; install soundfile and soxr"):
        plugins.workload("audio").batches(other)


def test_the_answers_are_plain_files(lend, tmp_path):
    lend(audio(write(tmp_path / "a.wav", 0.5)))
    files = sorted(Path(tmp_path / "lent").iterdir())
    assert {file.suffix for file in files} == {".json", ".npy"}
    assert all("found" in json.loads(file.read_text()) for file in files if file.suffix == ".json")
