"""Rounds of systems that speak, as a run makes them: files, warnings, what a recogniser hears, and recomputing."""

from pathlib import Path

import pytest
import soundfile

from speechmeter.api.recomputing import recompute
from speechmeter.api.runs import run_study
from speechmeter.api.starting import Options, check_study
from speechmeter.core import metrics
from speechmeter.core.errors import InputError, SubjectError
from speechmeter.plan.study import study_from_python
from speechmeter.report.choose import tables
from speechmeter.report.live import live_groups, live_names
from speechmeter.store.exchanges import read_exchanges

VOICE = {"name": "voice", "load": "known-voice", "clock": "virtual", "leading_s": 0.25, "gaps": [[1.0, 1.5]]}
EAR = """
def make():
    return lambda batch: ["the sheet"] * len(batch)
"""
SYNTHESISER = """
import numpy as np

def make():
    def speak(pieces):
        for piece in pieces:
            yield np.ones(800, dtype="float32") * np.resize([0.5, -0.5], 800), 16_000
    return speak
"""


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("The birch canoe slid.\nGlue the sheet.\nGlue the sheet.\n")
    return str(path)


def plan(lines, **more):
    return {"models": [VOICE], "text": {"lines": lines}, "pace": "fast", "rounds": 1, **more}


def run(tmp_path, given):
    return run_study(study_from_python(given), Options(output=tmp_path / "run", launcher="inline"))


def test_a_run_keeps_what_metrics_are_made_from(tmp_path, lines):
    (record,) = run(tmp_path, plan(lines, prebuffer=0.5)).records
    assert record.status == "ok"
    (file,) = (tmp_path / "run").rglob("exchanges-*.jsonl.gz")
    log = read_exchanges(file)
    assert (log.conditions.reads, log.conditions.speaks, log.conditions.prebuffer_s) == (True, True, 0.5)
    assert [one.text for one in log.exchanges] == ["The birch canoe slid.", "Glue the sheet.", "Glue the sheet."]
    assert all(one.speech is None and one.sound is not None for one in log.exchanges)
    assert any("1 of 3 texts had been sent before" in warning for warning in record.warnings)
    assert recompute(tmp_path / "run").changes == ()
    assert record.find(metrics.UNDERRUN_TOTAL.id).notes["prebuffer_s"] == 0.5


def test_a_recogniser_of_the_plan_hears_the_speech(tmp_path, lines):
    ear = tmp_path / "ear.py"
    ear.write_text(EAR)
    given = plan(lines, heard_by={"name": "ear", "load": f"python:{ear}:make"})
    (record,) = run(tmp_path, given).records
    found = record.find(metrics.ROUND_TRIP_WER.id)
    assert found.notes["heard_by"] == "ear"
    assert found.values == (pytest.approx(100 / 3),) * 2
    (file,) = (tmp_path / "run").rglob("exchanges-*.jsonl.gz")
    assert [one.heard for one in read_exchanges(file).exchanges] == [None, "the sheet", "the sheet"]


def test_a_recogniser_that_fails_costs_no_other_figure(tmp_path, lines):
    ear = tmp_path / "deaf.py"
    ear.write_text("def make():\n    raise RuntimeError('no ears')\n")
    (record,) = run(tmp_path, plan(lines, heard_by=f"python:{ear}:make")).records
    assert record.status == "ok" and record.find(metrics.FIRST_SOUND.id).values == (0.5, 0.5)
    assert any("no ears" in warning for warning in record.warnings)
    assert "could not transcribe" in record.find(metrics.ROUND_TRIP_WER.id).unavailable


def test_speech_is_saved_where_it_is_asked_for(tmp_path, lines):
    run(tmp_path, plan(lines, save_speech=True))
    files = sorted(path.name for path in (tmp_path / "run").rglob("*.flac"))
    assert files == ["text-1.flac", "text-2.flac"]  # not that of the warm-up
    sound, rate = soundfile.read(next((tmp_path / "run").rglob("text-1.flac")))
    assert (rate, len(sound)) == (16_000, round(0.25 * 16_000) + 15 * 1000)


def test_a_generator_of_samples_is_a_synthesiser(tmp_path, lines):
    path = tmp_path / "mine.py"
    path.write_text(SYNTHESISER)
    given = plan(lines, models=[f"python:{path}:make"], pace="realtime", text_pace=1000, warmup_turns=2)
    (record,) = run(tmp_path, given).records
    assert record.find(metrics.LIVE_COMPLETENESS.id).values == (100.0,)
    assert record.find(metrics.SOUND_MADE.id).values == (pytest.approx(0.05 * 4),)  # a piece for each of four tokens


MISBEHAVING = """
import numpy as np

TONE = (0.5 * np.sin(np.arange(4000) / 10)).astype("float32")

def early():
    def speak(pieces):
        yield TONE, 16_000
    return speak

def again():
    def speak(pieces):
        "".join(pieces)
        buffer = TONE.copy()
        for part in range(1, 5):
            buffer[:] = TONE * part / 4
            yield buffer, np.int64(16_000)
    return speak

def breaks():
    def speak(pieces):
        "".join(pieces)
        yield TONE, 16_000
        raise RuntimeError("broke in the middle")
    return speak

def plain():
    return lambda pieces: [(TONE, 16_000)]

def word():
    def speak(pieces):
        yield "".join(pieces), 16_000.0
    return speak
"""


def test_generators_that_misbehave_give_figures_or_a_clear_reason(tmp_path, lines):
    (tmp_path / "odd.py").write_text(MISBEHAVING)
    names = ("early", "again", "breaks", "plain", "word")
    models = [{"name": name, "load": f"python:{tmp_path / 'odd.py'}:{name}"} for name in names]
    found = {one.case.subject.name: one for one in run(tmp_path, plan(lines, models=models)).records}
    assert found["early"].status == "ok"  # a moment before the text was sent lost the whole record
    assert found["early"].find(metrics.FIRST_SOUND_COLD.id).values[0] < 0.25
    levels = [one.sound.levels_db for one in exchanges(tmp_path, found["again"])]
    assert all(9 < one[95] - one[5] < 15 for one in levels)  # the last piece is four times as loud as the first
    assert found["breaks"].reason.startswith("every conversation failed; the first: RuntimeError: broke in the middle")
    assert found["breaks"].find(metrics.FIRST_SOUND.id).unavailable == "all conversations ended with an error"
    assert [one.sound.samples for one in exchanges(tmp_path, found["breaks"])] == [4000] * 3  # nothing is lost
    assert "an iterator of pieces of text and yields (samples, rate)" in found["plain"].reason
    assert "rate being a whole number, not (str, float)" in found["word"].reason


def exchanges(tmp_path, record):
    (file,) = (tmp_path / "run" / "artifacts" / record.case.id).glob("exchanges-*.jsonl.gz")
    return read_exchanges(file).exchanges


def test_searches_and_slos_know_first_sound(tmp_path, lines):
    given = plan(lines, slo={"first_sound_p95_s": 0.6}, streams=[1, 2], turns=3)
    assert [record.status for record in run(tmp_path, given).records] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"text_pace": 20}, InputError, "sends it at once"),
        ({"text": {"vocabulary": 20}}, InputError, "not token ids"),
        ({"text": {"lines": "no.txt"}}, InputError, "^(?!.*Errno).*'no.txt' cannot be read: No such file or directory"),
        ({"heard_by": "known-voice"}, SubjectError, "does not take audio"),
        ({"heard_by": "no-such-thing"}, InputError, "no-such-thing"),
        ({"models": ["known:live"]}, SubjectError, "needs sound as input"),
        ({"models": [{**VOICE, "gaps": [1]}]}, SubjectError, "position, seconds"),
    ],
)
def test_what_cannot_be_is_refused(lines, more, error, message):
    with pytest.raises(error, match=message):
        run_checked(plan(lines, **more))


def test_a_voice_without_text_is_told_to_read_lines():
    given = {"models": [VOICE], "audio": "sample", "seconds": 1, "pace": "fast"}
    with pytest.raises(SubjectError) as caught:
        run_checked(given)
    assert "{lines: sentences.txt}" in caught.value.fix


def run_checked(given):
    check_study(study_from_python(given), Options())


def test_other_texts_under_the_same_name_are_another_case(lines):
    before = study_from_python(plan(lines)).cells.cases[0]
    with Path(lines).open("a") as file:
        file.write("A new line.\n")
    after = study_from_python(plan(lines)).cells.cases[0]
    assert before.id != after.id and before.workload.name == "lines.txt"


def test_text_pace_needs_text(lines):
    given = {"models": ["known:live"], "audio": "sample", "seconds": 1, "pace": "realtime", "text_pace": 20}
    with pytest.raises(InputError, match="applies to text"):
        run_checked(given)


def test_texts_at_several_paces_have_names_of_their_own(tmp_path, lines):
    found = run(tmp_path, plan(lines, pace="realtime", text_pace=[None, 20])).records
    labels = [row.labels for row in tables(found, "speech")[0].rows]
    assert labels == [("voice", "at once", "1"), ("voice", "20 tokens/s", "1")]
    assert list(live_names(live_groups(found)).values()) == ["voice · at once", "voice · 20 tokens/s"]
