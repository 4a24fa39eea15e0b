"""`run` as far as its flags: which cases they make, seen by `--dry-run`."""

import sys

import numpy as np
import pytest
import soundfile

from speechmeter.api.runs import load
from speechmeter.plan.study import study_from_file


@pytest.fixture(autouse=True)
def here(workshop, monkeypatch):
    monkeypatch.chdir(workshop)
    return workshop


def models_of(done):
    """The models of the cases that a dry run lists."""
    assert done.code == 0, done.err
    lines = [line.split("  ") for line in done.out.splitlines()[:-1]]
    return list(dict.fromkeys(words[1].partition(" · ")[0] for words in lines))


def measured(command, *words):
    """The one record of an inline run with these words."""
    done = command(
        "run", "--model", "python:fakes.py:nothing", "--quick", "--meters", "latency", "--launcher", "inline",
        "--set", "repeats=1", "-o", "out", *words,
    )  # fmt: skip
    assert done.code == 0, done.err
    (record,) = load("out").records
    assert record.status == "ok", record.reason
    return record, done


def test_audio_that_is_repeated_often_is_a_warning_of_the_record(command):
    soundfile.write("short.wav", np.zeros((160, 2)), 16_000)
    record, done = measured(command, "--audio", "short.wav", "--seconds", "5")
    note = "short.wav lasts 0.01 s and is repeated 500 times to fill 5 s"
    assert record.find("items.v1").notes["notes"] == ["1 of 1 items mixed to mono from 2 channels", note]
    assert [text for text in record.warnings if text.startswith(note)]
    assert f"warning: {note}" in done.out and "mixed to mono" in done.out


@pytest.mark.parametrize("flag", ["--audio", "--data"])
def test_files_of_a_folder_that_cannot_be_decoded_are_a_warning_of_the_record(without_pyav, command, here, flag):
    (here / "sounds").mkdir()
    soundfile.write("sounds/a.wav", np.zeros(1600), 16_000)
    for name in ("b.m4a", "c.m4a", "d.wma"):
        (here / "sounds" / name).write_bytes(b"x")
    record, done = measured(command, flag, "sounds")
    said = "3 of 4 items left out: 2 .m4a, 1 .wma (cannot be decoded; convert them, for example: ffmpeg -i x.m4a x.wav)"
    assert said in record.warnings and f"warning: {said}" in done.out
    refused = record.find("items_refused.v1")
    assert (refused.values, refused.notes["kinds"]) == ((3.0,), {".m4a": 2, ".wma": 1})


@pytest.mark.parametrize("flag", ["--audio", "--data"])
def test_a_folder_of_phone_recordings_is_refused_with_what_is_in_it_and_the_way_out(without_pyav, command, here, flag):
    (here / "sounds").mkdir()
    for name in ("b.m4a", "c.m4a"):
        (here / "sounds" / name).write_bytes(b"x")
    done = command("run", "--model", "python:fakes.py:nothing", flag, "sounds", "-o", "out")
    assert (done.code, (here / "out").exists()) == (2, False)
    assert done.err == (
        f"speechmeter: {flag}: 'sounds' has no item that can be used: 2 .m4a (cannot be decoded; "
        "convert them, for example: ffmpeg -i x.m4a x.wav)\n"
    )


def test_a_model_is_named_by_the_word_in_front_of_it(command):
    done = command(
        "run", "--dry-run", "--model", "first=python:fakes.py:nothing", "--model", "second=python:fakes.py:nothing",
        "--model", "log-mel",
    )  # fmt: skip
    assert models_of(done) == ["first", "second", "log-mel"]


def test_a_name_given_by_a_flag_makes_the_case_that_a_plan_makes(command, here):
    (here / "plan.yaml").write_text('models: [{name: mine, load: "python:fakes.py:nothing"}]\n')
    planned = study_from_file(here / "plan.yaml", trust=True).cells.cases
    done = command("run", "--dry-run", "--model", "mine=python:fakes.py:nothing")
    assert [line.split()[0] for line in done.out.splitlines()[:-1]] == [case.id for case in planned]


def test_a_named_model_takes_the_place_of_a_plan_s_models(command, here):
    (here / "plan.yaml").write_text("models: [log-mel]\n")
    done = command("run", "plan.yaml", "--dry-run", "--model", "mine=python:fakes.py:nothing")
    assert models_of(done) == ["mine"]


def test_two_models_of_one_name_are_refused_with_the_way_to_name_them(command):
    done = command("run", "--dry-run", "--model", "python:fakes.py:nothing", "--model", "python:./fakes.py:nothing")
    assert done.code == 2
    assert done.err == (
        "speechmeter: --model: models: 'fakes:nothing' is listed twice; "
        "give each one a name of its own: --model a=… --model b=…\n"
    )


def test_a_name_without_a_model_is_refused(command):
    done = command("run", "--dry-run", "--model", "mine=")
    assert (done.code, done.err.startswith("speechmeter: --model: 'mine=' is not NAME=MODEL;")) == (2, True)


def tried(command, model, *words):
    return command(
        "run", "--model", model, "--quick", "--meters", "latency", "--launcher", "inline", "--set", "repeats=1",
        "-o", "out", *words,
    )  # fmt: skip


def test_a_run_without_a_single_ok_case_ends_with_1_and_its_reason_comes_first(command, here):
    (here / "bad.py").write_text(
        "def make():\n    def call(x):\n        raise ValueError('no such thing')\n    return call\n"
    )
    done = tried(command, "python:bad.py:make")
    assert done.code == 1
    assert done.out.startswith("failed: ")
    assert "ValueError: no such thing" in done.out.splitlines()[0]


def test_a_run_with_an_ok_case_ends_with_0_and_names_what_failed(command, here):
    (here / "bad.py").write_text(
        "def make():\n    def call(x):\n        raise ValueError('no such thing')\n    return call\n"
    )
    done = tried(command, "python:bad.py:make", "--model", "python:fakes.py:nothing")
    assert done.code == 0
    assert "ValueError: no such thing" in done.out.splitlines()[0]


def test_another_interpreter_that_loads_the_same_code_is_refused_and_leaves_no_run(command, here):
    (here / "net.py").write_text("def make():\n    return lambda x: None\n")
    done = command(
        "run", "--model", "python:net.py:make", "--meters", "latency", "--rounds", "2", "--set", "repeats=1",
        "--baseline-python", sys.executable, "-o", "out",
    )  # fmt: skip
    assert done.code == 2
    assert "both interpreters run the same code" in done.err
    assert not (here / "out" / "records.jsonl").exists()
