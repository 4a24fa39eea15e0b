"""Exchange files survive whatever ends the process, and are read without Speechmeter."""

import gzip
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from live_rounds import held, known, utterance
from live_voices import spoken

from speechmeter.analysis.live import measurements
from speechmeter.core.errors import StoreError
from speechmeter.core.live import Anchors, Conditions
from speechmeter.store.exchanges import ExchangeWriter, exchange_file, read_exchanges

CONDITIONS = Conditions(pace="realtime", chunk_s=0.1, turn_end="system", quiet_s=3.0, normaliser="basic.v2")
MANY = [utterance(f"u{n}") for n in range(5)]


@pytest.fixture(scope="module")
def exchanges():
    return held(known(MANY, final_s=0.25), MANY).exchanges


def written(path, exchanges):
    writer = ExchangeWriter(path)
    writer.begin(CONDITIONS)
    for exchange in exchanges:
        writer.take(exchange)
    writer.close()
    return path


def test_what_is_written_is_read(tmp_path, exchanges):
    log = read_exchanges(written(tmp_path / "case" / exchange_file(0), exchanges))
    assert log.conditions == CONDITIONS
    assert list(log.exchanges) == exchanges
    assert not log.torn


def test_what_a_recogniser_heard_comes_last_and_may_be_missing(tmp_path, exchanges):
    path = tmp_path / exchange_file(0)
    writer = ExchangeWriter(path)
    writer.begin(CONDITIONS)
    for exchange in exchanges:
        writer.take(exchange)
    writer.hear(["one", None, "three", "four", "five"])
    writer.close()
    assert [one.heard for one in read_exchanges(path).exchanges] == ["one", None, "three", "four", "five"]
    subprocess.run([sys.executable, "-I", "-S", "-c", documented_script(), str(path)], check=True, capture_output=True)
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))  # killed while it heard
    assert list(read_exchanges(path).exchanges) == exchanges
    path.write_bytes(gzip.compress(b"".join([lines[0], *lines[2:]])))
    with pytest.raises(StoreError, match="it has 4 conversations, but 5 transcripts"):
        read_exchanges(path)


def test_speech_is_kept_without_its_samples(tmp_path):
    (said,) = spoken(leading_s=0.25)
    path = written(tmp_path / exchange_file(0), [said])
    (found,) = read_exchanges(path).exchanges
    assert found == said and found.sound.levels_db == said.sound.levels_db and found.speech is None
    assert path.stat().st_size < 4_000


def documented_script():
    """The script that docs/reference/records.md shows."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "records.md").read_text()
    return page.partition("<!-- a test runs this script -->")[2].partition("```python\n")[2].partition("```")[0]


def test_ten_lines_without_speechmeter_give_the_same_final_delays(tmp_path, exchanges):
    assert len(list(filter(None, documented_script().splitlines()))) == 10
    # finals in several segments, some lost, and conversations that fail
    uneven = held(known(MANY, segment_words=2, lose_final=0.5, fail=0.3, spread_s=0.5, seed=4), MANY).exchanges
    assert {one.error for one in uneven} == {"", "asked to fail"}
    for number, these in enumerate((exchanges, uneven)):
        path = written(tmp_path / exchange_file(number), these)
        script = [sys.executable, "-I", "-S", "-c", documented_script(), str(path)]
        printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
        told = dict(line.split() for line in printed.splitlines())
        found = next(
            m for m in measurements(these, replace(CONDITIONS, endpoints=True)) if m.metric == "final_delay.v1"
        )
        ours = dict(zip((these[place].utterance for place in found.notes["of"]), found.values, strict=True))
        missing = {these[place].utterance for place in found.notes.get("missing", ())}
        assert {name: float(text) for name, text in told.items() if text != "None"} == pytest.approx(ours)
        assert {name for name, text in told.items() if text == "None"} == missing
    # the last word ends at 2.5 s; finish is due at 4 s, and the final comes 0.25 s later
    assert set(measurements(exchanges, replace(CONDITIONS, endpoints=True))[6].values) == {1.75}


def test_the_script_says_where_the_data_name_no_end_of_speech(tmp_path, exchanges):
    some = [replace(exchanges[0], anchors=Anchors()), exchanges[1]]
    path = written(tmp_path / exchange_file(0), some)
    script = [sys.executable, "-I", "-S", "-c", documented_script(), str(path)]
    printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["u0 unknown", "u1 1.75"]


@pytest.mark.parametrize("cut", [1, 7, 20])
def test_a_torn_end_loses_its_own_line_alone(tmp_path, exchanges, cut):
    path = written(tmp_path / exchange_file(0), exchanges)
    path.write_bytes(path.read_bytes()[:-cut])
    log = read_exchanges(path)
    assert log.torn
    # what was unpacked whole is kept, though its checksum is not
    assert list(log.exchanges) == exchanges[: 5 if cut < 8 else 4]


def test_a_plain_file_is_read_too_and_a_line_without_an_end_is_left_out(tmp_path, exchanges):
    packed = written(tmp_path / exchange_file(0), exchanges)
    plain = tmp_path / "plain.jsonl"
    plain.write_bytes(gzip.decompress(packed.read_bytes())[:-5])
    assert len(read_exchanges(plain).exchanges) == 4


def test_what_a_process_had_finished_is_there_when_it_is_killed(tmp_path):
    path = tmp_path / exchange_file(0)
    code = f"""
import sys, time
from pathlib import Path
from speechmeter.core.live import Conditions, Exchange
from speechmeter.store.exchanges import ExchangeWriter
writer = ExchangeWriter(Path({str(path)!r}))
writer.begin(Conditions(pace="realtime", chunk_s=0.1, turn_end="system", quiet_s=3.0))
for number in range(3):
    writer.take(Exchange(utterance=str(number), audio_s=1.0, ended_s=1.0, timeout_s=30.0))
while not writer._lines.empty():
    time.sleep(0.01)
time.sleep(0.1)
print("ready", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert [one.utterance for one in read_exchanges(path).exchanges] == ["0", "1", "2"]


def test_a_file_of_a_round_that_did_not_finish_is_kept(tmp_path, exchanges):
    path = tmp_path / exchange_file(0)
    for count in (1, 2, 3):
        written(path, exchanges[:count])
    names = [exchange_file(0), "exchanges-0-unfinished-1.jsonl.gz", "exchanges-0-unfinished-2.jsonl.gz"]
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(names)
    assert [len(read_exchanges(tmp_path / name).exchanges) for name in names] == [3, 1, 2]


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "does not begin with the conditions"),
        ('{"a": 1}\n', "does not begin with the conditions"),
        ("[]\n", "not an exchange file"),
        ("no json\n", "not an exchange file"),
        (json.dumps({**CONDITIONS.to_json(), "version": 99}) + "\n", "newer Speechmeter"),
        (json.dumps(CONDITIONS.to_json()) + '\n{"utterance": "x"}\n', "not an exchange file"),
    ],
)
def test_other_files_are_refused_with_a_reason(tmp_path, text, reason):
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(StoreError, match=reason):
        read_exchanges(path)


def test_a_missing_file_is_a_store_error(tmp_path):
    with pytest.raises(StoreError, match="cannot be read"):
        read_exchanges(tmp_path / "none")
