"""Runners: programs in shell, C and Python that speak the protocol, and hostile ones, which only fail themselves."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from conftest import make_case

from speechmeter.core import metrics
from speechmeter.core.errors import SubjectError
from speechmeter.core.stages import run_chain
from speechmeter.core.types import Batch, Spec
from speechmeter.engine.measure import measure
from speechmeter.meters.latency import LatencyMeter
from speechmeter.subjects.runners import RunnerSubject, channel
from speechmeter.subjects.runners.files import Exchanged

EXAMPLES = Path(__file__).parents[4] / "examples/runners"
HELLO = """echo '{"type":"hello","version":1}'"""
LOADED = 'read -r load; echo \'{"type":"loaded"}\''
READY = f"{HELLO}; {LOADED}"
PYTHON = """#!{python} -IS
import base64, json, struct, sys
def say(**message):
    print(json.dumps(message), flush=True)
say(type="hello", version=1, name="mine", **{hello})
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "load":
        say(type="loaded", notes=[f"threads {{message['threads']}}, {{message['settings']}}"])
    elif message["type"] == "feed":
        {feed}
    else:
        break
"""


@pytest.fixture
def program(tmp_path):
    """`program(script)`: a case whose model is this script in shell; `hello` and `feed` are for one in Python."""

    def make(script="", hello=None, feed="pass", options=None, **changes):
        file = tmp_path / "runner"
        text = f"#!/bin/sh\n{script}\n"
        if hello is not None:
            text = PYTHON.format(python=sys.executable, hello=hello, feed=feed)
        file.write_text(text)
        file.chmod(0o755)
        subject = Spec(
            plugin="runner", name="mine", source=str(file), options={"start_timeout": 60.0, **(options or {})}
        )
        return make_case(subject=subject, **changes)

    return make


def batch_of(*waves):
    longest = max(len(wave) for wave in waves)
    data = np.zeros((len(waves), longest), dtype=np.float32)
    for row, wave in zip(data, waves, strict=True):
        row[: len(wave)] = wave
    return Batch(data=data, items=len(waves), lengths=tuple(map(len, waves)))


ONE = batch_of(np.linspace(-0.5, 0.5, 1600, dtype=np.float32))


def called(case, batch=ONE):
    """The output of one call; the runner is closed."""
    prepared = RunnerSubject().prepare(case, "cpu")
    try:
        return run_chain(prepared.stages, batch)[-1], prepared
    finally:
        prepared.close()


def test_the_reference_in_shell_gives_what_a_program_prints(program, tmp_path):
    spoken = tmp_path / "spoken"
    spoken.write_text('#!/bin/sh\nwc -c < "$1"; printf \'said "%s"\\tand \\\\ back\\n\' "$HOW"\n')
    spoken.chmod(0o755)
    case = program(f'exec {EXAMPLES / "command.sh"} "$@"', options={"args": [str(spoken)], "environ": {"HOW": "well"}})
    (text,), prepared = called(case)
    assert text == f'{44 + 2 * 1600} said "well" and \\ back'  # the header of a WAV file, and 16 bits a sample
    assert prepared.notes[0].startswith("runner command.sh: a program of its own, items one after another")
    assert prepared.data_dependent


def test_the_reference_in_shell_reports_a_program_that_fails(program):
    with pytest.raises(SubjectError, match="the program ended with exit code 1"):
        called(program(f"exec {EXAMPLES / 'command.sh'} false"))


@pytest.fixture(scope="module")
def bursts(tmp_path_factory):
    """The reference in C, built."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    built = tmp_path_factory.mktemp("c") / "bursts"
    subprocess.run(["cc", "-o", built, EXAMPLES / "bursts.c", "-lm"], check=True)
    return built


def test_the_reference_in_c_counts_bursts_and_stamps_its_own_time(bursts):
    loud, quiet = np.full(1600, 0.5, dtype=np.float32), np.zeros(1600, dtype=np.float32)
    three = np.concatenate([loud, quiet, loud, quiet, loud])
    subject = Spec(plugin="runner", name="bursts", source=str(bursts), options={"settings": {"threshold": 0.25}})
    texts, prepared = called(make_case(subject=subject), batch_of(three, quiet, loud))
    assert texts == ["three", "none", "one"]
    assert prepared.notes[1:] == ("loud is above 0.25",)
    assert list(prepared.inside()) == ["total"]


class Fed:
    """A workload of one batch."""

    def __init__(self, batch=ONE):
        self.batch = batch

    def batches(self, case):
        yield self.batch


def test_the_runners_own_seconds_stand_beside_ours(program):
    stages = 'say(type="result", id=message["id"], texts=["x"], seconds=0.25, stages={"encode": 0.125})'
    case = program(hello="{}", feed=stages, protocol={"kind": "repeats", "discard": 1, "samples": 3})
    outcome = measure(case, RunnerSubject(), Fed(), [LatencyMeter()])
    assert outcome.status == "ok", outcome.reason
    found = {(m.metric, m.scope): m.values for m in outcome.measurements}
    assert found["latency_inside.v1", "total"] == (0.25,) * 3
    assert found["latency_inside.v1", "stage:encode"] == (0.125,) * 3
    assert len(found["latency.v1", "stage:model"]) == len(found["latency.v1", "total"]) == 3
    assert found["latency_load.v1", "total"][0] > 0


@pytest.mark.parametrize("sound", ["wav", "f32", "base64"])
def test_sound_arrives_as_it_is_whichever_way_it_goes(program, sound):
    read = {
        "wav": "[s / 32767 for s in struct.unpack('<1600h', open(item['path'], 'rb').read()[44:])]",
        "f32": "struct.unpack('<1600f', open(item['path'], 'rb').read())",
        "base64": "struct.unpack('<1600f', base64.b64decode(item['samples']))",
    }[sound]
    feed = f"(item,) = message['items']; x = {read}; say(type='result', id=message['id'], texts=[json.dumps(x)])"
    (text,), _ = called(program(hello={"sound": sound}, feed=feed))
    heard = np.array(__import__("json").loads(text))
    assert np.abs(heard - ONE.data[0]).max() < (1e-4 if sound == "wav" else 1e-9)


def test_items_go_together_where_the_runner_takes_several_and_in_order(program):
    feed = "say(type='result', id=message['id'], texts=[str(i['seconds']) for i in message['items']])"
    waves = [np.zeros(1600 * n, dtype=np.float32) for n in (3, 1, 2, 4, 5)]
    said = "say(type='result', id=message['id'], texts=[str(len(message['items']))] * len(message['items']))"
    assert called(program(hello={"batch": 2}, feed=feed), batch_of(*waves))[0] == ["0.3", "0.1", "0.2", "0.4", "0.5"]
    assert called(program(hello={"batch": 2}, feed=said), batch_of(*waves))[0] == ["2", "2", "2", "2", "1"]


def test_what_is_said_before_the_result_is_stamped(program):
    feed = "[say(type=kind, id=message['id'], text='on', texts=['one']) for kind in ('part', 'part', 'result')]"
    case = program(hello={"parts": True}, feed=feed, protocol={"kind": "repeats", "discard": 0, "samples": 2})
    outcome = measure(case, RunnerSubject(), Fed(), [LatencyMeter()])
    found = {(m.metric, m.scope): m.values for m in outcome.measurements}
    first, between = (found[f"latency_{name}.v1", "stage:model"] for name in ("first_item", "item"))
    assert len(between) == 2 * len(first) >= 4  # three items in each call
    assert called(case)[0] == ["one"]


def test_it_is_told_what_the_case_asks(program):
    case = program(hello="{}", options={"settings": {"model": "tiny"}}, threads=3)
    _, prepared = called_without_call(case)
    assert prepared.notes[1] == "threads 3, {'model': 'tiny'}"


def called_without_call(case):
    prepared = RunnerSubject().prepare(case, "cpu")
    prepared.close()
    return None, prepared


WAV_MAKER = (
    "w = wave.open(out, 'wb'); w.setparams((1, 2, 8000, 0, 'NONE', '')); w.writeframes(b'\\0\\1' * 800); w.close()"
)


def text_case(program, **options):
    return program(workload=Spec(plugin="text", name="text"), **options)


def test_text_becomes_sound_that_is_read_outside_the_clock(program):
    feed = "import wave; out = message['items'][0]['out']; " + WAV_MAKER + "; say(type='result', id=message['id'])"
    case = text_case(program, hello={"takes": ["text"], "gives": "sound"}, feed=feed)
    batch = Batch(data=("one", "two"), items=2)
    speech, prepared = called(case, batch)
    assert [(one.rate, one.seconds) for one in speech] == [(8000, 0.1)] * 2
    assert abs(speech[0].samples[0] - 256 / 32768) < 1e-6
    assert [stage.clocked for stage in prepared.stages] == [True, True, False]


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ("0", "did not write the sound"),
        ("__import__('os').mkfifo(out)", "not a plain file"),
        ("__import__('os').symlink('/dev/zero', out)", "cannot be read"),
        ("open(out, 'w').write('RIFF nothing')", "cannot be read"),
    ],
)
def test_sound_that_is_no_wav_file_is_refused(program, made, reason):
    feed = f"out = message['items'][0]['out']; {made}; say(type='result', id=message['id'])"
    case = text_case(program, hello={"takes": ["text"], "gives": "sound"}, feed=feed)
    with pytest.raises(SubjectError, match=reason):
        called(case, Batch(data=("one",), items=1))


def test_a_runner_of_tts_bench_is_understood_as_it_is(program):
    script = f"""exec {sys.executable} -IS -c "
import json, sys, wave
print(json.dumps({{'ready': True}}), flush=True)
for line in sys.stdin:
    job = json.loads(line); out = job['out']
    {WAV_MAKER}
    print(json.dumps({{'ok': True, 'run_index': 0, 'ttfa_ms': 125.0, 'gen_s': 0.5, 'audio_s': 0.1}}), flush=True)
" """
    case = text_case(program, script=script)
    (speech,), prepared = called(case, Batch(data=("one",), items=1))
    assert (speech.rate, len(speech.samples)) == (8000, 800)
    assert prepared.inside() == {"total": 0.5, "first sound": 0.125}


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            """echo '{"ready": true}'; read -r j; echo '{"ok": false, "error": "no voice"}'; read -r b""",
            "error: no voice",
        ),
        ("""echo '{"ok": false, "run_index": 0, "error": "load failed: no weights"}'""", "load failed: no weights"),
    ],
)
def test_an_error_of_a_runner_of_tts_bench_is_its_reason(program, script, reason):
    with pytest.raises(SubjectError, match=reason):
        called(text_case(program, script=script), Batch(data=("one",), items=1))


FEED = f"{READY}; read -r feed"
HOSTILE = {
    "garbage": ("echo '\\033[31mLoading model...'; read -r x", r"no JSON object \(waiting for `hello`\): .*Loading"),
    "binary": ("head -c 3000 /dev/zero | tr '\\0' '\\377'; echo; read -r x", "no JSON object"),
    "nesting": ("yes '[' | head -200000 | tr -d '\\n'; echo; read -r x", "no JSON object"),
    "a flood without an end": ("yes '{' | tr -d '\\n'", "printed 1 MiB without an end of line"),
    "a flood of lines": (f"{READY}; yes '{{\"type\":\"part\"}}'", "said 'part'|said \"part\"|answered"),
    "early exit": ("echo cannot find the weights >&2; exit 3", "exit code 3 .*cannot find the weights"),
    "killed": (f"{READY}; kill -9 $$", "killed by SIGKILL"),
    "another version": ("""echo '{"type":"hello","version":2}'; read -r x""", "speaks version 2"),
    "no hello": ("""echo '{"type":"loaded"}'; read -r x""", "first line is not its `hello`"),
    "a bad hello": ("""echo '{"type":"hello","version":1,"sound":"mp3"}'; read -r x""", "`sound` of `hello`"),
    "no batch": ("""echo '{"type":"hello","version":1,"batch":0}'; read -r x""", "`batch` of `hello`"),
    "not words": ("""echo '{"type":"hello","version":1,"devices":7}'; read -r x""", "`devices` of `hello`"),
    "out of order": (f"""{FEED}; echo '{{"type":"result","id":2,"texts":["x"]}}'; read -r x""", "answered 2 while 1"),
    "too few texts": (f"""{FEED}; echo '{{"type":"result","id":1,"texts":[]}}'; read -r x""", "a list of 1 text"),
    "no text": (f"""{FEED}; echo '{{"type":"result","id":1,"texts":[7]}}'; read -r x""", "must be a JSON string"),
    "half a character": (f"""{FEED}; echo '{{"type":"result","id":1,"texts":["\\ud800"]}}'; read -r x""", "Unicode"),
    "no seconds": (
        f"""{FEED}; echo '{{"type":"result","id":1,"texts":["x"],"seconds":NaN}}'; read -r x""", "seconds of 'total'",
    ),
    "its own error": (f"""{FEED}; echo '{{"type":"error","message":"no GPU"}}'; read -r x""", "an error: no GPU"),
    "a closed output": (f"{FEED}; exec >&-; read -r x; read -r x", r"closed its output|exit code"),
}  # fmt: skip


@pytest.mark.parametrize(("script", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_runner_fails_with_a_reason_and_is_ended(program, monkeypatch, script, reason):
    monkeypatch.setattr(channel, "MOST_LINE_BYTES", 2**20)
    started = []
    monkeypatch.setattr(channel.subprocess, "Popen", lambda *a, **k: started.append(POPEN(*a, **k)) or started[-1])
    with pytest.raises(SubjectError, match=reason):
        called(program(script))
    assert started[0].returncode is not None
    assert ended(lambda: not living(started[0].pid))


def ended(is_so):
    """Whether it comes true: what was killed ends when it is given a core."""
    deadline = time.monotonic() + 60
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_so()


def living(group):
    """Processes (of a group) that have not ended; nobody may be there to bury those that have."""
    fields = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields[stat.parent.name] = stat.read_text().rpartition(")")[2].split()
    return [int(pid) for pid, (state, _, of, *_) in fields.items() if group in (None, int(of)) and state not in "ZX"]


POPEN = subprocess.Popen


def test_silence_ends_at_the_timeout(program):
    with pytest.raises(SubjectError, match=r"did not answer within 0.2 s \(waiting for `result` 1\)"):
        called(program(f"{FEED}; read -r x; read -r x", options={"timeout": 0.2}))
    with pytest.raises(SubjectError, match=r"did not answer within 0.2 s \(waiting for `hello`\)"):
        called(program("read -r x", options={"start_timeout": 0.2}))


def test_a_runner_that_reads_nothing_ends_at_the_timeout(program):
    hello = """echo '{"type":"hello","version":1,"sound":"base64"}'"""
    case = program(f"{hello}; {LOADED}; exec sleep 600", options={"timeout": 0.2})
    with pytest.raises(SubjectError, match=r"read nothing for 0\.2 s"):
        called(case, batch_of(np.zeros(160_000, dtype=np.float32)))


def test_a_runner_may_print_any_amount_of_errors(program):
    script = f"""{FEED}; yes error | head -c 3000000 >&2; echo '{{"type":"result","id":1,"texts":["x"]}}'; read -r x"""
    assert called(program(script))[0] == ["x"]


def test_what_a_runner_started_ends_with_it(program, tmp_path):
    note = tmp_path / "pid"
    called_without_call(program(f"sleep 600 & echo $! > {note}; {READY}; read -r bye"))
    left = int(note.read_text())
    assert ended(lambda: left not in living(None))


@pytest.mark.parametrize(
    ("hello", "changes", "reason"),
    [
        ({"takes": "text"}, {}, "takes text, and it is fed sound"),
        ({"devices": ["cuda"]}, {}, "runs on cuda, not on cpu"),
        ({}, {"dtype": "float16"}, "computes in float32, not in float16"),
    ],
)
def test_a_case_that_the_runner_cannot_serve_is_refused(program, hello, changes, reason):
    with pytest.raises(SubjectError, match=reason):
        called(program(hello=hello, **changes))


@pytest.mark.parametrize(
    ("source", "options", "reason"),
    [
        ("", {}, "names no program"),
        ("/nowhere/runner", {}, "there is no program '/nowhere/runner'"),
        (str(EXAMPLES / "bursts.c"), {}, "is not a program; chmod"),
        ("cat", {"args": "'open"}, "the command cannot be read"),
    ],
)
def test_a_program_that_is_not_there_is_refused_before_the_run(source, options, reason):
    case = make_case(subject=Spec(plugin="runner", name="x", source=source, options=options))
    with pytest.raises(SubjectError, match=reason):
        RunnerSubject().check(case)


def test_files_of_a_process_that_was_killed_are_removed_by_the_next(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    left, other = tmp_path / f"speechmeter-runner-{gone.pid}-x", tmp_path / f"speechmeter-runner-{os.getpid()}-x"
    for folder in (left, other):
        folder.mkdir()
    files = Exchanged(tmp_path)
    files.close()
    assert [path.name for path in tmp_path.iterdir()] == [other.name]
    assert metrics.LATENCY_INSIDE.unit == "s"
