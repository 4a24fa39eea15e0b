"""The adapter's own rules without the package, then the real engine on the shipped and on its own recorded speech."""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from conftest import make_case
from live_talk import heard_live
from words import share_heard, words

from speechmeter.core.errors import SubjectError
from speechmeter.core.types import Batch, Spec
from speechmeter.subjects import moonshine
from speechmeter.subjects.moonshine import MoonshineSubject
from speechmeter.workloads.audio import read_audio, read_sample

FILES = ("encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin")
ALL_CORES = os.cpu_count()


def case_with(source="", axes=None, **options):
    spec = Spec(plugin="moonshine-voice", name="moonshine", source=source, options=options)
    return make_case(subject=spec, **(axes or {}))


def model_directory(place, files=FILES):
    place.mkdir()
    for name in files:
        (place / name).write_text("not a model")
    return str(place)


def refusal(case):
    with pytest.raises(SubjectError) as caught:
        MoonshineSubject().check(case)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_directory_that_is_not_there_or_no_model(tmp_path):
    assert f"there is no directory '{tmp_path}/tiny'" in refusal(case_with(f"{tmp_path}/tiny"))
    half = model_directory(tmp_path / "tiny", FILES[:1])
    message = refusal(case_with(half))
    assert "contains no decoder_model_merged.ort and no tokenizer.bin; use a directory with" in message


def test_the_architecture_is_told_by_the_name_or_by_the_option(tmp_path):
    check = MoonshineSubject().check
    check(case_with(model_directory(tmp_path / "base-es")))
    unnamed = model_directory(tmp_path / "mine")
    assert "use `arch: tiny` or `arch: base`" in refusal(case_with(unnamed))
    check(case_with(unnamed, arch="tiny"))


def test_a_package_without_weights_says_which_one_has_them(monkeypatch):
    monkeypatch.setattr(moonshine, "find_spec", lambda name: None)
    assert "install moonshine-voice 0.0.73" in refusal(case_with())


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ({}, None),
        ({"threads": ALL_CORES, "cores": ALL_CORES}, None),
        ({"threads": ALL_CORES + 1, "cores": ALL_CORES}, f"not on {ALL_CORES + 1}"),
        ({"threads": 2, "cores": 1 if ALL_CORES == 2 else 2}, f"on 1 thread or on all {ALL_CORES} cores"),
        ({"device": "cuda"}, "CPU only"),
        ({"dtype": "bfloat16"}, "not bfloat16"),
        ({"compile": True}, "torch.compile"),
    ],
)
def test_what_it_cannot_do_is_refused(axes, reason):
    found = MoonshineSubject().unavailable(case_with(axes=axes))
    assert (found is None) if reason is None else (reason in found)


def test_files_that_are_no_model_are_an_error_of_one_line(tmp_path):
    pytest.importorskip("moonshine_voice", reason="needs moonshine-voice")
    with pytest.raises(SubjectError, match=r"moonshine-voice cannot load .*tiny-junk"):
        MoonshineSubject().prepare(case_with(model_directory(tmp_path / "tiny-junk")), "cpu")


@pytest.fixture
def transcribe():
    pytest.importorskip("moonshine_voice", reason="needs moonshine-voice")
    opened = []

    def call(*waves, **options):
        prepared = MoonshineSubject().prepare(case_with(**options), "cpu")
        opened.append(prepared)
        longest = max(map(len, waves))
        data = np.stack([np.pad(wave, (0, longest - len(wave))) for wave in waves])
        state = Batch(data=data, items=len(waves), lengths=tuple(map(len, waves)))
        outputs = []
        for stage in prepared.stages:
            state = stage.fn(state)
            state = state if isinstance(state, list) else list(state)
            outputs.append(state)
        return outputs

    yield call
    for prepared in opened:
        prepared.close()


def test_the_shipped_sample_is_read(transcribe):
    wave, transcript = read_sample()
    ((text,),) = transcribe(wave)
    assert share_heard(transcript, text) >= 0.7


def test_an_item_is_read_to_its_length_whatever_came_before_it(transcribe):
    wave = read_sample()[0]
    first = wave[: 3 * 16_000]
    ((alone,),) = transcribe(first)
    ((_, after),) = transcribe(wave[: 7 * 16_000], first)
    assert after == alone
    assert "passengers" not in words(alone)


def test_recorded_speech_of_the_package_is_read(transcribe):
    pytest.importorskip("moonshine_voice", reason="needs moonshine-voice")
    assets = Path(find_spec("moonshine_voice").submodule_search_locations[0]) / "assets"
    opening = "it was the best of times it was the worst of times it was the age of wisdom"
    ((text,),) = transcribe(read_audio(assets / "two_cities.wav")[: 8 * 16_000])
    assert share_heard(opening, text) >= 0.8


def test_a_stream_gives_growing_partials_and_ends_with_the_whole_text():
    pytest.importorskip("moonshine_voice", reason="needs moonshine-voice")
    wave = read_sample()[0][: 3 * 16_000]
    prepared = MoonshineSubject().prepare(case_with(axes={"threads": ALL_CORES, "cores": ALL_CORES}), "cpu")
    heard = heard_live(prepared, np.concatenate([wave, np.zeros(16_000, np.float32)]))
    prepared.close()
    texts = [event.text for event in heard if event.kind == "partial"]
    assert len(texts) > 2
    assert len(words(texts[0])) < len(words(texts[-1]))
    *_, last = (event for event in heard if event.kind == "final")
    assert share_heard("the was when the first came in", last.text) >= 0.8
    assert 0 <= last.start_s < last.end_s <= 4.2


def tasks():
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads by /proc")
def test_one_thread_is_one_thread_and_all_cores_are_more(transcribe):
    before = tasks()
    one = MoonshineSubject().prepare(case_with(axes={"threads": 1}), "cpu")
    assert tasks() == before
    many = MoonshineSubject().prepare(case_with(axes={"threads": ALL_CORES, "cores": ALL_CORES}), "cpu")
    assert (tasks() > before) is (ALL_CORES > 1)
    one.close()
    many.close()
