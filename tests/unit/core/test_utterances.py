"""Files of utterances in the leaderboard's fields: what is written is read, and a bad line is named."""

import gzip
import json

import pytest

from speechmeter.core.errors import InputError
from speechmeter.core.utterances import FIELDS, Utterance, read_utterances, write_utterances

GOOD = {"audio_filepath": "a.wav", "duration": 2.0, "time": 0.5, "text": "one two", "pred_text": "one"}


def test_what_is_written_is_read_again(tmp_path):
    utterances = [
        Utterance(name="a.wav", duration_s=2.5, time_s=0.1, reference="Grüße, Welt", output=""),
        Utterance(name="b\u2028c.wav", duration_s=1.0, time_s=0.2, reference="x", output="line\nbreak"),
    ]
    path = tmp_path / "new" / "utterances.jsonl"
    write_utterances(path, utterances)
    assert read_utterances(path).utterances == tuple(utterances)
    assert list(json.loads(path.read_text(encoding="utf-8").split("\n")[0])) == list(FIELDS)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        (json.dumps({**GOOD, "time": 0}), "time takes seconds above 0, not 0"),
        (json.dumps({**GOOD, "duration": True}), "duration takes seconds above 0, not True"),
        (json.dumps({**GOOD, "duration": float("inf")}), "duration takes seconds above 0, not inf"),
        (json.dumps({**GOOD, "text": 7}), "text takes text, not 7"),
        (json.dumps({k: v for k, v in GOOD.items() if k != "time"}), "time is missing"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_read(line, reason, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n{line}\n\n{json.dumps({**GOOD, 'audio_filepath': 'b.wav'})}\n")
    found = read_utterances(path)
    assert len(found.utterances) == 2
    (bad,) = found.bad_lines
    assert bad.startswith(f"{path}:2: ")
    assert reason in bad


def test_no_output_at_all_is_an_empty_one(tmp_path):
    (tmp_path / "x.jsonl").write_text(json.dumps({**GOOD, "pred_text": None}))
    assert read_utterances(tmp_path / "x.jsonl").utterances[0].output == ""


@pytest.mark.parametrize("text", ["", "\n", "{}\n"])
def test_a_file_without_utterances_is_refused(text, tmp_path):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(InputError, match=r"no line can be used.*each line needs audio_filepath"):
        read_utterances(tmp_path / "x.jsonl")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_utterances(tmp_path / "none.jsonl")


def test_the_second_utterance_of_one_id_is_left_out_and_named(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n{json.dumps({**GOOD, 'pred_text': 'two'})}\n")
    found = read_utterances(path)
    assert [one.output for one in found.utterances] == ["one"]
    assert found.bad_lines == (f"{path}:2: audio_filepath 'a.wav' appears for the second time",)


def test_a_file_may_be_gzipped(tmp_path):
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(f"{json.dumps(GOOD)}\n".encode()))
    assert read_utterances(tmp_path / "x.jsonl.gz").utterances[0].name == "a.wav"
    (tmp_path / "broken.jsonl.gz").write_bytes(gzip.compress(json.dumps(GOOD).encode())[:30])
    with pytest.raises(InputError, match="truncated or damaged"):
        read_utterances(tmp_path / "broken.jsonl.gz")
