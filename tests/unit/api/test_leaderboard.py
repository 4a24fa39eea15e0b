"""The Open ASR Leaderboard: its manifests, scorer and table, held against its own functions where they are here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import make_case, make_record
from typer.testing import CliRunner

from speechmeter.analysis.estimate import Estimate, estimate
from speechmeter.api import starting
from speechmeter.api.leaderboard import score_manifests, write_manifests
from speechmeter.cli.main import app
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.quality import PROFILES
from speechmeter.core.utterances import read_manifest
from speechmeter.meters import open_asr
from speechmeter.meters.quality import Answer, missing, score
from speechmeter.plan.study import Study
from speechmeter.report.leaderboard import mean_of
from speechmeter.report.quality import quality
from speechmeter.report.tables import Table

pytest.importorskip("kaldialign", reason="the leaderboard's scorer is not installed: pip install kaldialign")
pytest.importorskip("transformers", reason="it carries Whisper's numbers")
RUN = Path(__file__).parents[3] / "examples/runs/accuracy-vs-cost"
LISTS = """
# comments and code of this file are not run
import nothing_of_this_name
english_spelling_normalizer = {"colour": "color", "ok": "okay"}
english_name_normalizer = {"jon": "john"}
english_compound_normalizer = {r"\\bwi\\s+fi\\b": "wifi"}
raise SystemExit("run")
"""


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "checkout"
    (folder / "normalizer").mkdir(parents=True)
    (folder / "normalizer" / "english_abbreviations.py").write_text(LISTS)
    monkeypatch.setenv(open_asr.VARIABLE, str(folder))
    return folder


def _manifest(folder: Path, *rows: dict[str, Any], name: str = "MODEL_a-b_DATASET_x_test.jsonl") -> Path:
    usual = {"audio_filepath": "sample_0", "duration": 2.0, "time": 0.5, "text": "a", "pred_text": "a"}
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps({**usual, **row}) + "\n" for row in rows))
    return folder / name


def _figure(table: Table, column: str, row: int = 0) -> Estimate:
    found = table.rows[row].cells[table.columns.index(column)].estimate
    assert isinstance(found, Estimate)
    return found


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Jon won't [noise] (laughs) say um OK", "john will not say okay"),
        ("It's Jon's colour, isn't it?", "it is john s color is not it"),
        ("B.B.C. and 5 G", "bbc and 5g"),
        ("a b", "a b"),
        ("a b c", "abc"),
        ("Wi-Fi for $20 million", "wifi for $20000000"),
        ("Dr. Smith's 3,000th café", "doctor smith s 3000th cafe"),
        ("20% of .5 . $ x", "20% of .5 x"),
        ("twenty one point five", "21.5"),
    ],
)
def test_texts_are_normalised_by_hand_worked_rules(checkout: Path, text: str, normal: str) -> None:
    normalise, _ = open_asr.normaliser_of(str(checkout))
    assert normalise(text).split() == normal.split()


def test_a_split_or_joined_compound_is_no_error() -> None:
    assert open_asr.errors("a white paper b", "a whitepaper c") == (1, 4)
    assert open_asr.errors("a whitepaper b", "a white paper b") == (0, 3)
    assert open_asr.errors("", "x y") == (2, 0)


def test_the_word_lists_are_read_and_never_run(checkout: Path) -> None:
    lists = open_asr.lists_of(checkout)
    assert lists.names == {"jon": "john"}
    assert "nothing_of_this_name" not in sys.modules


@pytest.mark.parametrize("text", ["x = 1", "english_name_normalizer = open('x')", "(" * 500, "x = [\n"])
def test_another_file_in_the_place_of_the_lists_is_refused(checkout: Path, text: str) -> None:
    (checkout / "normalizer" / "english_abbreviations.py").write_text(text)
    with pytest.raises(InputError, match="word lists cannot be read"):
        open_asr.lists_of(checkout)


def test_missing_lists_are_named_with_the_way_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(open_asr.VARIABLE)
    with pytest.raises(InputError, match=r"clone https://github\.com/huggingface/open_asr_leaderboard and set"):
        score_manifests([RUN])


def test_wer_is_over_the_corpus_and_rtfx_the_ratio_of_sums(tmp_path: Path) -> None:
    path = _manifest(
        tmp_path / "r",
        {"text": "one two three four", "pred_text": "one two three x", "duration": 1.0, "time": 1.0},
        {"text": "", "pred_text": "y", "duration": 9.0, "time": 1.0},  # a name that repeats, and no word
    )
    (table,) = score_manifests([path])
    assert table.rows[0].labels == ("a-b",)
    # "one two three" is 123 in digits: 2 words, of which "four" joins it: 1234 against 123 x
    assert _figure(table, "x_test WER").value == pytest.approx(100 * 3 / 1)
    assert _figure(table, "RTFx").value == pytest.approx(5.0)


def test_chunks_are_joined_in_their_order(tmp_path: Path) -> None:
    path = _manifest(
        tmp_path / "r",
        {"parent_id": "s", "chunk_index": 1, "text": "b a", "pred_text": " a "},
        {"parent_id": "s", "chunk_index": 0, "text": "b a", "pred_text": "b"},
        {"parent_id": "r", "chunk_index": 0, "text": "c", "pred_text": None},
    )
    first, second = read_manifest(path)
    assert (first.name, first.output) == ("r", "")
    assert (second.output, second.duration_s, second.time_s) == ("b a", 4.0, 1.0)


@pytest.mark.parametrize("field", ["time", "duration"])
@pytest.mark.parametrize("value", [0, None])
def test_without_every_time_there_is_no_rtfx(tmp_path: Path, field: str, value: Any) -> None:
    (table,) = score_manifests([_manifest(tmp_path / "r", {}, {field: value})])
    assert table.rows[0].cells[0].estimate is None and "no time" in table.rows[0].cells[0].reason


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"text": 5}, "text takes text, not 5"),
        ({"text": [1] * 100}, r"text takes text, not \[1, 1, [1 ,]*;"),
        ({"time": 10**400}, "time takes seconds above 0"),
        ({"duration": float("nan")}, "duration takes seconds above 0, not nan"),
        ({"duration": 1e300}, "duration takes seconds above 0"),
        ({"time": [0]}, r"time takes seconds above 0, not \[0\]"),
        ({"parent_id": None, "chunk_index": 0}, "parent_id is missing, or no name"),
        ({"chunk_index": 1}, "parent_id is missing, or no name"),
        ({"parent_id": "s", "chunk_index": "last"}, "chunk_index takes a whole number from 0 on, not 'last'"),
        ({"parent_id": "s", "chunk_index": {"a": 1}}, "chunk_index takes a whole number"),
        ({"parent_id": "s"}, "chunk_index takes a whole number from 0 on, not None"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    first = {"parent_id": "s", "chunk_index": 0} if "_i" in "".join(row) else {}
    path = _manifest(tmp_path / "r", first, row)
    with pytest.raises(InputError, match=said) as refused:
        read_manifest(path)
    assert refused.value.where == f"{path}:2"


def test_the_average_is_the_plain_mean_of_datasets_with_an_interval(tmp_path: Path) -> None:
    files = [
        _manifest(tmp_path / "r", *({"text": "w", "pred_text": "x" if n < bad else "w"} for n in range(40)),
                  name=f"MODEL_m_DATASET_{name}.jsonl")
        for name, bad in (("d1", 4), ("d2", 12))
    ]  # fmt: skip
    (table,) = score_manifests(files)
    average, *own = (_figure(table, name) for name in ("average WER", "d1 WER", "d2 WER"))
    assert average.value == pytest.approx(20.0)
    halves = [one.value - one.low for one in own if one.low is not None]
    assert average.low == pytest.approx(20.0 - (halves[0] ** 2 + halves[1] ** 2) ** 0.5 / 2)
    assert mean_of([]) is None


def test_a_run_brings_latency_of_one_utterance_and_memory() -> None:
    (table,) = score_manifests([RUN])
    row = [one.labels[0] for one in table.rows].index("moonshine-voice")
    times = sorted(one.time_s or 0 for one in read_manifest(_of_model(RUN, "moonshine-voice")))
    latency = _figure(table, "latency at batch 1", row).value
    assert times[len(times) // 2 - 1] <= latency <= times[len(times) // 2]
    assert _figure(table, "memory", row).metric.unit == "bytes"


def _of_model(run: Path, model: str) -> Path:
    lines = map(json.loads, (run / "records.jsonl").read_text().splitlines())
    case = next(line["id"] for line in lines if line["case"]["subject"]["name"] == model)
    return run / "artifacts" / case / "utterances.jsonl"


def test_manifests_of_a_run_are_read_back_to_the_same(tmp_path: Path) -> None:
    paths = write_manifests(RUN, tmp_path / "results", "set/test")
    assert (tmp_path / "results/MODEL_moonshine-voice_DATASET_set-test.jsonl") in paths
    (direct,), (again,) = score_manifests([RUN]), score_manifests(paths)
    for name in ("RTFx", "average WER"):
        assert _figure(again, name, 2).value == _figure(direct, name, 2).value
    with pytest.raises(InputError, match="already exists"):
        write_manifests(RUN, tmp_path / "results", "set/test")


def test_utterances_that_two_normalisers_score_differently_are_listed(tmp_path: Path) -> None:
    path = _manifest(tmp_path / "r", {"text": "ah yes", "pred_text": "yes"}, {"text": "no", "pred_text": "yes"})
    _, table = score_manifests([path], normaliser="basic", differences=5)
    assert [[cell.word for cell in row.cells][:2] for row in table.rows] == [["1", "0"]]


ANSWERS = [
    Answer(name="a", reference="a whitepaper", output="A white paper."),
    Answer(name="b", reference="the colour of Jon", output="the color of John"),
    Answer(name="c", reference="one more word", output="no more word"),
]


def test_a_run_is_scored_in_both_ways_at_once() -> None:
    record = make_record(make_case(), *score(ANSWERS, PROFILES["open-asr"], "basic.v2"))
    wer, open_wer = (estimate([record], one) for one in (metrics.WER, metrics.WER_OPEN_ASR))
    assert wer is not None and wer.value == pytest.approx(100 * (2 + 2 + 1) / 9)
    # "one" is 1 in digits, and "no" is no number: 1 error in 2 + 4 + 3 words
    assert open_wer is not None and open_wer.value == pytest.approx(100 * 1 / 9)
    (table, *_) = quality([record])
    assert {"WER", "WER (Open ASR)"} <= set(table.columns)
    assert any(note.startswith("WER (Open ASR): text normalised by open-asr.v1+") for note in table.notes)


def test_a_plan_that_asks_for_the_leaderboards_score_needs_its_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(PROFILES["open-asr"]) is None
    monkeypatch.delenv(open_asr.VARIABLE)
    assert "word lists are missing" in (missing(PROFILES["open-asr"]) or "")


def test_the_profile_of_a_run_is_the_quality_of_its_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    studies: list[Study] = []
    monkeypatch.setattr(starting, "outlook", lambda study, options: studies.append(study) or 1 / 0)
    (tmp_path / "p.yaml").write_text("models: [log-mel]\nquality: {normaliser: english}\n")
    CliRunner().invoke(app, ["run", str(tmp_path / "p.yaml"), "--profile", "open-asr", "--dry-run"])
    found = studies[0].cells.cases[0].protocol.quality
    assert found is not None
    assert (found.normaliser, found.scores) == ("english.v2", PROFILES["open-asr"])


REAL = os.environ.get(open_asr.VARIABLE, "")


@pytest.mark.skipif(not Path(REAL, "normalizer/eval_utils.py").is_file() or not REAL, reason=(
    f"needs a checkout of the leaderboard, named by {open_asr.VARIABLE}"))  # fmt: skip
def test_the_published_functions_give_the_same_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(open_asr.VARIABLE, REAL)
    paths = write_manifests(RUN, tmp_path / "results", "sample_test")
    # what scoring never calls may be missing here
    code = (
        "import sys, types, json\n"
        "for name in ('datasets', 'huggingface_hub', 'num2words'):\n"
        "    made = sys.modules[name] = types.ModuleType(name)\n"
        "    made.Audio = made.IterableDataset = made.load_dataset = made.snapshot_download = None\n"
        "from normalizer.eval_utils import score_results\n"
        "print('\\n' + json.dumps([(v['wer'], v['rtfx']) for v in score_results(sys.argv[1])[1].values()]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "results")], cwd=REAL, capture_output=True, text=True, check=True
    )
    theirs = sorted(map(tuple, json.loads(done.stdout.splitlines()[-1])))
    (table,) = score_manifests(paths)
    ours = sorted(
        (round(_figure(table, "average WER", row).value, 2), round(_figure(table, "RTFx", row).value, 4))
        for row in range(len(table.rows))
    )
    assert ours == theirs


def test_the_score_has_counts_of_its_own() -> None:
    """It is never compared with the other WER: no record of one holds the counts of the other."""
    assert estimate([], metrics.WER_OPEN_ASR) is None
    assert metrics.WER_OPEN_ASR.id != metrics.WER.id
