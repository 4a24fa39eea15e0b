"""The adapter's own rules without the package, then the real detector against the library's own loop."""

import json
import struct
from importlib.util import find_spec
from math import prod
from pathlib import Path

import numpy as np
import pytest
from conftest import make_case
from live_talk import AXES, LIVE, heard_live

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch, Spec
from speechmeter.subjects.silero_vad import SileroVadSubject
from speechmeter.workloads.audio import read_sample


def case_with(source="", **axes):
    return make_case(subject=Spec(plugin="silero-vad", name="vad", source=source), **axes)


def test_it_takes_no_source():
    with pytest.raises(
        SubjectError, match="nothing can follow silero-vad, but silero-vad:v4 was given; write only silero-vad"
    ):
        SileroVadSubject().check(case_with("v4"))


@pytest.mark.parametrize(
    ("axes", "word"),
    [({"device": "cuda"}, "cuda"), ({"dtype": "float16"}, "float16"), ({"compile": True}, "torch.compile")],
)
def test_what_it_cannot_do_is_refused(axes, word):
    assert word in SileroVadSubject().unavailable(case_with(**axes))
    assert SileroVadSubject().unavailable(case_with(threads=2)) is None


@pytest.fixture
def prepared():
    pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("silero_vad", reason="needs silero-vad")
    return SileroVadSubject().prepare(case_with(), "cpu")


def detect(prepared, *waves):
    longest = max(map(len, waves))
    data = np.stack([np.pad(wave, (0, longest - len(wave))) for wave in waves]).astype(np.float32)
    state = Batch(data=data, items=len(waves), lengths=tuple(map(len, waves)))
    for stage in prepared.stages:
        state = stage.fn(state)
    return state


def test_segments_are_those_of_the_library_item_by_item(prepared):
    import silero_vad
    import torch

    wave = read_sample()[0][: 4 * 16_000]
    found = detect(prepared, wave, wave[:20_000], np.zeros(16_000))
    model = silero_vad.load_silero_vad()
    theirs = [
        [(s["start"] / 16_000, s["end"] / 16_000) for s in silero_vad.get_speech_timestamps(torch.from_numpy(w), model)]
        for w in (wave, wave[:20_000])
    ]
    assert found == [*theirs, []]
    assert 2.0 < sum(end - start for start, end in found[0]) < 4.0


def test_live_it_says_when_speech_ended(prepared):
    live = SileroVadSubject().prepare(case_with(protocol=LIVE, **AXES), "cpu")
    wave = np.concatenate([read_sample()[0][: 3 * 16_000], np.zeros(16_000, np.float32)])
    ((_, end_s),) = detect(prepared, wave)[0][-1:]
    for _ in range(2):  # the second conversation gets the model of the first, with a new state
        *_, last = heard_live(live, wave, chunk=1_000)
        assert last.kind == "endpoint"
        assert last.end_s == pytest.approx(end_s, abs=0.1)


def test_audio_shorter_than_a_window_is_no_speech(prepared):
    assert detect(prepared, np.zeros(100)) == [[]]


def test_weights_are_those_of_the_network_for_16_khz(prepared):
    pytest.importorskip("silero_vad", reason="needs silero-vad")
    folder = Path(find_spec("silero_vad").submodule_search_locations[0])
    with (folder / "data/silero_vad_16k.safetensors").open("rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    stored = sum(prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
    module = prepared.modules["silero-vad"]
    assert sum(t.numel() for t in (*module.parameters(), *module.buffers())) == stored


def test_threads_are_as_asked_although_the_library_sets_one(prepared):
    import torch

    SileroVadSubject().prepare(case_with(threads=2), "cpu")
    assert torch.get_num_threads() == 2
