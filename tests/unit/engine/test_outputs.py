"""What calls return: files, and results that are not there yet."""

import asyncio
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from conftest import make_case

from speechmeter.core.outputs import Output, SpeechFiles
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Speech, Stage
from speechmeter.engine import doubts
from speechmeter.engine.measure import measure
from speechmeter.engine.outputs import unfinished, write_outputs
from speechmeter.meters.latency import LatencyMeter
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


async def answer():
    return "text"


@dataclass
class Answer:
    text: object


class Promise:
    """What libraries of their own have: a result to wait for."""

    def ready(self):
        return False

    def get(self):
        return "text"


class Later:
    """A result to ask for, of a class that nobody knows."""

    def result(self):
        return "text"


class Running(threading.Thread):
    """A thread that works on after the call."""

    def is_alive(self):
        return True


def coroutine():
    made = answer()
    made.close()
    return made


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (coroutine(), "a coroutine"),
        ({"text": coroutine()}, "a coroutine (at ['text'])"),
        (Future(), "a future"),
        ([("a", Future())], "a future (at [0][1])"),
        ({"text": (word for word in "abc")}, "an iterator (at ['text'])"),
        (Answer(text=map(str, [1])), "an iterator (at .text)"),
        (SimpleNamespace(text=map(str, [1])), "an iterator (at .text)"),
        (SimpleNamespace(text="abc", log=BytesIO()), ""),
        (Running(), "a thread or process that is still running"),
        (threading.Thread(), ""),
        (Promise(), "an asynchronous result"),
        (Later(), "a future"),
        ({"text": lambda: "abc"}, "a function that is still to be called (at ['text'])"),
        ({"text": partial(str, 1)}, "a function that is still to be called (at ['text'])"),
        (asyncio.Event().wait, ""),
        (iter("abc"), ""),  # drained inside the clock
        ({"text": ["abc"], "scores": np.zeros(3)}, ""),
        (None, ""),
    ],
)
def test_what_is_not_computed_yet_is_found_inside_a_result(result, words):
    assert unfinished(result) == words


class Subject:
    """One stage, and one batch of sound."""

    def __init__(self, fn, data=None):
        self._fn = fn
        self._data = np.arange(100, dtype=np.float32)[None] if data is None else data

    def prepare(self, case, device):
        return Prepared(stages=(Stage(name="model", fn=self._fn),))

    def batches(self, case):
        yield Batch(data=self._data, items=1, audio_s=1.0)


def warnings_of(fn, data=None):
    subject = Subject(fn, data)
    case = make_case(protocol={"mode": "repeats", "discard": 2, "samples": 5})
    outcome = measure(case, subject, subject, [LatencyMeter()])
    assert outcome.status == "ok", outcome.reason
    return " ".join(outcome.warnings)


def test_a_future_in_the_result_of_a_model_is_warned_about():
    with ThreadPoolExecutor(1) as pool:
        assert "the model returned a future (at ['text'])" in warnings_of(lambda batch: {"text": pool.submit(len, "a")})


class Cached:
    """Sleeps for every input that it has not seen before; `holds` as many answers as that."""

    def __init__(self, key, holds=1000):
        self._key, self._holds, self._seen = key, holds, []

    def __call__(self, batch):
        key = self._key(batch.data)
        if key not in self._seen:
            time.sleep(0.05)
            self._seen = [*self._seen, key][-self._holds :]
        return "text"


@pytest.mark.parametrize(
    ("key", "data"),
    [
        (lambda data: data.tobytes(), None),
        (id, None),
        (str, ("one two three", "four five six")),
        (str, ((1, 2, 3), (4, 5, 6))),
        (str, {"ids": [1, 2, 3], "flag": True}),
    ],
)
@pytest.mark.parametrize("holds", [1, 1000])
def test_answers_from_a_cache_are_warned_about(key, data, holds):
    assert "answers come from a cache" in warnings_of(Cached(key, holds), data)


def test_a_slow_first_call_is_no_cache():
    calls = []

    def slow_once(batch):
        if not calls:
            time.sleep(0.05)
        calls.append(1)

    assert "cache" not in warnings_of(slow_once)


@pytest.mark.parametrize("slow", [2, 3, 5])
def test_a_few_new_inputs_that_are_slow_by_chance_are_no_cache(slow):
    """As on a busy machine: the first call, and the first calls with other content."""
    contents = []

    def slow_by_chance(batch):
        content = batch.data.tobytes()
        if content not in contents:
            contents.append(content)
            if len(contents) <= 1 + slow:
                time.sleep(0.02)

    assert "cache" not in warnings_of(slow_by_chance)


def test_threads_that_fall_asleep_between_calls_are_no_cache(monkeypatch):
    """As on a busy machine: the first call after other work is slow, whatever it is fed."""
    asleep = [True]

    def other_content(data, turn):
        asleep.append(True)
        return made(data, turn)

    made = doubts.other_content
    monkeypatch.setattr(doubts, "other_content", other_content)

    def slow_after_a_pause(batch):
        if asleep:
            asleep.clear()
            time.sleep(0.02)

    assert "cache" not in warnings_of(slow_after_a_pause)


def test_an_input_that_costs_more_is_no_cache():
    dear = np.arange(100, dtype=np.float32)[None]

    def by_content(batch, begun=[]):  # noqa: B006
        if not begun or not np.array_equal(batch.data, dear):
            begun.append(1)
            time.sleep(0.02)

    assert "cache" not in warnings_of(by_content, dear)


def test_a_model_that_takes_no_other_input_is_left_alone():
    kept = np.arange(100, dtype=np.float32)[None]
    calls = []

    def only_this(batch):
        if batch.data is not kept:
            raise ValueError("not my input")
        if not calls:
            time.sleep(0.05)
        calls.append(1)

    assert "cache" not in warnings_of(only_this, kept)
