"""Names of items come from data: what is written for them stays in the folder of the case."""

import numpy as np
import pytest
import soundfile

from speechmeter.core.outputs import Output, SpeechFiles
from speechmeter.core.types import Batch, Speech
from speechmeter.engine.outputs import write_outputs
from speechmeter.meters.trace import file_name

NAMES = ("../../outside", "/tmp/outside", "..", "a/../../b", "nul\0", "x" * 5000, "-rf", "~/x", "a\nb")


@pytest.mark.parametrize("name", NAMES)
def test_names_of_items_stay_in_the_folder(name, tmp_path):
    folder = tmp_path / "run/artifacts/case"
    sound = Speech(samples=np.zeros(160, np.float32), rate=16_000)
    batch = Batch(data=None, items=1, ids=(name,))
    write_outputs(folder, [(batch, Output(speech=(sound,), lines=("said",)))], speech=SpeechFiles())
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(made) == 2
    assert all(path.parent == folder for path in made)


def test_sound_has_the_prefix_and_the_rate_that_were_asked_for(tmp_path):
    tone = np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000).astype(np.float32)
    batch = Batch(data=None, items=2, ids=("a", "b"))
    output = Output(speech=(Speech(samples=tone, rate=16_000), Speech(samples=tone, rate=8_000)))
    write_outputs(tmp_path, [(batch, output)], speech=SpeechFiles(prefix="dev", rate=8_000))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev_a.flac", "dev_b.flac"]
    samples, rate = soundfile.read(tmp_path / "dev_a.flac")
    assert (rate, len(samples)) == (8_000, 8_000)
    assert np.abs(np.fft.rfft(samples)).argmax() == 440  # the same tone, a second long
    assert soundfile.info(tmp_path / "dev_b.flac").frames == 16_000


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\r\nb", "a\u2028b", "a\ud800b"])
def test_an_item_has_one_line_of_two_fields_whatever_it_is_called(name, tmp_path):
    batch = Batch(data=None, items=2, ids=(name, "second"))
    write_outputs(tmp_path, [(batch, Output(lines=("said\ud800", "more")))])
    lines = (tmp_path / "text.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t") for line in lines] == [[lines[0].split("\t")[0], "said?"], ["second", "more"]]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_models_name_files_and_no_folders(name):
    made = file_name(name)
    assert made
    assert "/" not in made
    assert not made.startswith((".", "-"))
    assert len(made) <= 80
