"""Quality from plan to table, imported scores, and files of utterances, as a user meets them."""

import json

import pytest
from sacrebleu.metrics import BLEU

LINES = "The ferry came in early.\nSeven passengers walked down.\nSomeone laughed at the dog.\n"
PLAN = """models:
  - {name: reader, load: "python:fakes.py:reader"}
  - {name: mumbler, load: "python:fakes.py:mumbler"}
text: {lines: lines.txt, references: lines.txt}
meters: [latency]
rounds: 2
repeats: 2
"""


@pytest.fixture
def study(workshop):
    (workshop / "lines.txt").write_text(LINES)

    def write(quality):
        (workshop / "plan.yaml").write_text(f"{PLAN}quality: {quality}\n")

    return write


def shown(cli, run, *more):
    found = cli("show", run, "--metric", "quality", "--format", "json", *more)
    assert found.returncode == 0, found.stderr
    return {
        table["title"]: {
            " ".join(label.split(" ")[0] for label in row["labels"]): dict(
                zip(table["columns"], row["cells"], strict=True)
            )
            for row in table["rows"]
        }
        for table in json.loads(found.stdout)
    }


def test_a_run_scores_what_was_put_out_once(cli, study, workshop):
    study("{scores: [wer, bleu]}")
    made = cli("run", "plan.yaml", "--trust", "-o", "run")
    assert made.returncode == 0, made.stderr
    records = [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]
    counted = [record["round"] for record in records for m in record["measurements"] if m["metric"] == "word_errors.v1"]
    assert counted == [0, 0]  # once a system, though there are two rounds
    assert records[0]["case"]["protocol"]["quality"] == {"normaliser": "basic.v2", "scores": ["wer", "bleu"]}
    tables = shown(cli, "run")
    assert tables["quality"]["reader"]["WER"]["value"] == pytest.approx(100 * 1 / 14)
    assert tables["quality"]["mumbler"]["WER"]["value"] == pytest.approx(100 * 5 / 14)
    assert tables["quality"]["mumbler"]["completeness"]["value"] == pytest.approx(200 / 3)
    lines = LINES.splitlines()
    truth = BLEU().corpus_score([lines[0], lines[1] + " indeed", lines[2]], [lines]).score
    assert tables["quality"]["reader"]["BLEU"]["value"] == pytest.approx(truth)
    difference = tables["differences by pairs"]["reader mumbler"]
    assert difference["ΔWER"]["value"] == pytest.approx(100 * (1 - 5) / 14)
    assert difference["utterances"]["text"] == "3"


def test_imported_scores_stand_beside_measured_cost(cli, study, workshop):
    study("{import: scores.csv}")
    (workshop / "scores.csv").write_text("model,wer,wer_low,wer_high\nreader,4.5,4,5\n")
    made = cli("run", "plan.yaml", "--trust", "-o", "run")
    assert made.returncode == 0, made.stderr
    tables = shown(cli, "run")
    assert list(tables) == ["quality"]
    assert tables["quality"]["reader"]["WER"]["text"] == "4.50 % [4.00, 5.00] imported"
    assert tables["quality"]["mumbler"]["WER"]["text"] == "unavailable"
    assert "has no row for mumbler" in tables["quality"]["mumbler"]["WER"]["reason"]
    assert tables["quality"]["mumbler"]["latency"]["value"] > 0


def test_a_bad_file_of_scores_is_one_line_and_nothing_is_written(cli, study, workshop):
    study("{import: scores.csv}")
    (workshop / "scores.csv").write_text("model,wer\nreader,0.04\n")
    bad = cli("run", "plan.yaml", "--trust", "-o", "run")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.count("\n") == 1
    assert "rename it to wer_percent or wer_fraction" in bad.stderr
    assert not (workshop / "run").exists()


def leaderboard_line(name, duration, time, text, pred_text):
    return json.dumps(
        {"audio_filepath": name, "duration": duration, "time": time, "text": text, "pred_text": pred_text}
    )


def test_files_of_the_leaderboard_are_scored_and_compared(cli, workshop):
    (workshop / "a.jsonl").write_text(
        leaderboard_line("sample_0", 10.0, 0.5, "one two three four", "one two three four") + "\n"
        + leaderboard_line("sample_1", 2.5, 0.25, "five six", "five") + "\n"
    )  # fmt: skip
    (workshop / "b.jsonl").write_text(
        leaderboard_line("sample_1", 2.5, 1.0, "five six", "") + "\nnot json\n"
        + leaderboard_line("sample_0", 10.0, 1.5, "one two three four", "one to three four") + "\n"
    )  # fmt: skip
    found = cli("data", "score", "a.jsonl", "b.jsonl", "--format", "json")
    assert found.returncode == 0, found.stderr
    assert found.stderr.startswith("speechmeter: left out: b.jsonl:2: not JSON")
    scores, differences = json.loads(found.stdout)
    cells = {row["labels"][0]: dict(zip(scores["columns"], row["cells"], strict=True)) for row in scores["rows"]}
    # the leaderboard's own definition: sum of durations over sum of times
    assert cells["a.jsonl"]["RTFx"]["value"] == pytest.approx(sum([10.0, 2.5]) / sum([0.5, 0.25]))
    assert cells["b.jsonl"]["RTFx"]["value"] == pytest.approx(12.5 / 2.5)
    assert cells["a.jsonl"]["WER"]["value"] == pytest.approx(100 * 1 / 6)
    assert cells["b.jsonl"]["WER"]["value"] == pytest.approx(100 * 3 / 6)
    assert cells["b.jsonl"]["completeness"]["value"] == 50
    assert cells["a.jsonl"]["utterances"]["text"] == "2"
    assert differences["rows"][0]["cells"][0]["value"] == pytest.approx(100 * (1 - 3) / 6)


def test_without_every_time_there_is_no_rtfx_but_a_wer(cli, workshop):
    lines = [leaderboard_line("a", 1.0, 0.1, "one", "one"), leaderboard_line("b", None, None, "two", "to")]
    (workshop / "a.jsonl").write_text("\n".join(lines))
    found = cli("data", "score", "a.jsonl", "--format", "json")
    assert found.returncode == 0, found.stderr
    (table,) = json.loads(found.stdout)
    cells = dict(zip(table["columns"], table["rows"][0]["cells"], strict=True))
    assert cells["WER"]["value"] == 50
    assert (cells["RTFx"]["text"], cells["hours"]["text"]) == ("unavailable", "–")
    assert cells["RTFx"]["reason"] == "1 of 2 utterances have no time"


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["none.jsonl"], "cannot be read"),
        (["bad.jsonl"], "each line needs audio_filepath"),
        (["good.jsonl", "--normaliser", "englsh"], "did you mean 'english'?"),
        (["good.jsonl", "good.jsonl"], "is given twice"),
        (["good.jsonl", "--format", "pdf"], "unknown format 'pdf'"),
    ],
)
def test_what_cannot_be_scored_is_refused_in_one_line(args, reason, cli, workshop):
    (workshop / "bad.jsonl").write_text("{}\n")
    (workshop / "good.jsonl").write_text(leaderboard_line("a", 1.0, 1.0, "a", "a"))
    bad = cli("data", "score", *args)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.count("\n") == 1
    assert reason in bad.stderr
