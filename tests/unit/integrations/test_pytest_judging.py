"""What a measurement means for its test, on records made by hand."""

from dataclasses import replace

import pytest
from conftest import make_case, make_record
from run_histories import write_run

from speechmeter.analysis.limits import limit_named
from speechmeter.core import metrics
from speechmeter.core.errors import DeviceError, InputError, UnavailableError
from speechmeter.core.types import VARIANT, Measurement
from speechmeter.integrations.pytest.judging import figures_of, findings_of, of_error, of_failure, of_limit, overall
from speechmeter.integrations.pytest.marks import asked_by
from speechmeter.integrations.pytest.settings import Settings

SAME, SLOWER = [0.1, 0.101, 0.099], [0.13, 0.131, 0.129]


@pytest.fixture
def settings(tmp_path):
    return Settings(
        root=tmp_path,
        run=tmp_path / "runs/now",
        baseline=tmp_path / "baseline",
        baseline_python=None,
        update_baseline=False,
    )


def judged(settings, **mark):
    found = list(findings_of(settings.root / "part", settings, asked_by([pytest.mark.speechmeter(**mark).mark])))
    return overall(found), [finding.word for finding in found], " ".join(finding.reason for finding in found)


@pytest.mark.parametrize(
    ("now", "outcome", "word"),
    [
        (SAME, "passed", "SAME"),
        (SLOWER, "failed", "SLOWER"),
        ([0.07, 0.0701, 0.0699], "passed", "FASTER"),
        ([0.09, 0.11, 0.13], "undecided", "CANNOT TELL"),
    ],
)
def test_a_regression_fails_and_what_cannot_be_told_is_undecided(settings, tmp_path, now, outcome, word):
    write_run(tmp_path / "baseline", 1, SAME)
    write_run(tmp_path / "part", 2, now)
    assert judged(settings)[:2] == (outcome, [word])


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ({}, "does not exist yet"),
        ({"case": make_case("another")}, "has no such case"),
        ({"cpu": "a faster abacus"}, "cpu: 'a faster abacus' in BASE, 'abacus' in NEW"),
        ({"cpu": "a faster abacus"}, "or add a new baseline with --speechmeter-update-baseline"),
        ({"case": make_case("model", protocol={"samples": 99})}, "samples: 99 in BASE, 3 in NEW"),
        ({"case": make_case("model", seconds=9.0)}, "no case in common"),
    ],
)
def test_no_verdict_without_a_baseline_that_was_measured_alike(settings, tmp_path, base, words):
    if base:
        write_run(tmp_path / "baseline", 1, SAME, **base)
    write_run(tmp_path / "part", 2, SLOWER)
    outcome, _, reason = judged(settings)
    assert outcome == "undecided"
    assert words in reason


def test_a_busy_machine_is_named_beside_a_change_that_it_may_have_caused(settings, tmp_path):
    write_run(tmp_path / "baseline", 1, SAME, busy=0.05)
    write_run(tmp_path / "part", 2, SLOWER, busy=0.73)
    outcome, _, reason = judged(settings)
    assert outcome == "failed"
    assert "other processes used 73% of the cores, compared with 5% in the baseline" in reason
    write_run(tmp_path / "quiet/part", 2, SLOWER, busy=0.05)
    assert judged(replace(settings, root=tmp_path / "quiet"))[2] == ""


def test_of_a_baseline_of_several_machines_the_own_one_counts(settings, tmp_path):
    write_run(tmp_path / "baseline", 1, SAME)
    write_run(tmp_path / "server", 1, SLOWER, host="server")
    with (tmp_path / "baseline/records.jsonl").open("a") as records:
        records.write((tmp_path / "server/records.jsonl").read_text())
    write_run(tmp_path / "part", 2, SAME)
    assert judged(settings)[:2] == ("passed", ["SAME"])


def test_limits_alone_need_no_baseline(settings, tmp_path):
    write_run(tmp_path / "part", 2, SAME)
    alone = replace(settings, baseline=None)
    assert judged(alone, max_latency_ms=110)[:2] == ("passed", ["WITHIN"])
    assert judged(alone, max_latency_ms=90)[:2] == ("failed", ["BEYOND"])
    assert judged(alone, max_latency_ms=100)[:2] == ("undecided", ["CANNOT TELL"])
    assert judged(alone, max_memory_mib=1)[:2] == ("undecided", ["NO VALUE"])
    assert judged(alone)[:2] == ("undecided", ["NOT COMPARED"])


@pytest.mark.parametrize(
    ("meters", "limit", "reason"),
    [
        (("latency", "flops"), "max_flops", "max_flops: torch computed nothing"),
        (("latency", "flops"), "max_flops_per_audio_second", "max_flops_per_audio_second: torch computed nothing"),
        (("latency", "flops"), "max_bytes_moved_mib", "max_bytes_moved_mib: torch computed nothing"),
        (("latency", "parameters"), "max_parameters", "max_parameters: the meter parameters returned no value"),
        (("latency",), "max_parameters", "max_parameters: it was not measured; add its meter with meters=[…]"),
    ],
)
def test_a_limit_without_a_figure_says_why(meters, limit, reason):
    absent = Measurement.absent(metrics.FLOPS, "torch computed nothing")
    record = make_record(make_case(meters=meters), *([absent] if "flops" in meters else []))
    asked = limit_named(limit, 1, where="")
    finding = of_limit([record], asked, metrics.find(asked.name))
    assert (finding.word, finding.outcome, finding.reason) == ("NO VALUE", "undecided", reason)


def test_a_limit_that_holds_does_not_hide_a_regression(settings, tmp_path):
    write_run(tmp_path / "baseline", 1, SAME)
    write_run(tmp_path / "part", 2, SLOWER)
    assert judged(settings, max_latency_ms=500)[:2] == ("failed", ["WITHIN", "SLOWER"])


def test_a_case_that_fails_fails_its_test_and_one_that_cannot_be_had_does_not(settings, tmp_path):
    write_run(tmp_path / "part", 2, SAME, status="oom")
    assert judged(settings)[:2] == ("failed", ["OOM"])
    write_run(tmp_path / "other/part", 2, SAME, status="unavailable")
    assert judged(replace(settings, root=tmp_path / "other"))[:2] == ("undecided", ["UNAVAILABLE"])


@pytest.mark.parametrize("statuses", [("crashed", "ok", "ok"), ("ok", "oom", "ok"), ("unavailable", "timeout", "ok")])
def test_one_failed_round_fails_the_case_whatever_the_others_did(statuses):
    records = [make_record(make_case("model"), status=status, reason=f"was {status}") for status in statuses]
    (bad,) = {"crashed", "oom", "timeout"} & set(statuses)
    finding = of_failure(records)
    assert (finding.outcome, finding.word, finding.reason) == ("failed", bad.upper(), f"was {bad}")


def test_a_case_of_which_all_rounds_were_measured_is_no_failure():
    assert of_failure([make_record(make_case("model"))] * 2) is None


def test_a_new_baseline_is_not_compared(settings, tmp_path):
    write_run(tmp_path / "baseline", 1, SAME)
    write_run(tmp_path / "part", 2, SLOWER)
    assert judged(replace(settings, update_baseline=True))[:2] == ("passed", ["NEW BASELINE"])


@pytest.mark.parametrize(("update", "word"), [(True, "NEW BASELINE"), (False, "NOT COMPARED")])
def test_what_is_not_compared_shows_its_figures_all_the_same(settings, tmp_path, update, word):
    write_run(tmp_path / "part", 2, SAME)
    asked = asked_by([pytest.mark.speechmeter(metric=["latency", "flops"]).mark])
    found = findings_of(tmp_path / "part", replace(settings, update_baseline=update), asked)
    assert [(one.word, one.metric, one.figure[:6]) for one in found] == [
        (word, "latency", "100 ms"),
        (word, "flops", "–"),
    ]


def test_two_interpreters_are_compared_within_one_run(settings, tmp_path):
    for variant, values in (("baseline", SAME), ("this", SLOWER)):
        write_run(tmp_path / variant, 1, values, make_case("model", **{VARIANT: variant}))
    lines = [(tmp_path / variant / "records.jsonl").read_text() for variant in ("this", "baseline")]
    (tmp_path / "this").rename(tmp_path / "part")
    (tmp_path / "part/records.jsonl").write_text("".join(lines))
    both = replace(settings, baseline_python="python")
    assert judged(both)[:2] == ("failed", ["SLOWER"])
    assert judged(both, max_latency_ms=110)[1] == ["BEYOND", "SLOWER"]


def test_figures_without_a_judgement(settings, tmp_path):
    write_run(tmp_path / "part", 2, SAME)
    (finding,) = figures_of(tmp_path / "part", settings, asked_by([]))
    assert (finding.metric, finding.word, finding.figure[:6]) == ("latency", "MEASURED", "100 ms")


def test_what_the_machine_lacks_is_no_fault_of_the_test_and_bad_input_is():
    assert of_error("a", UnavailableError("no package")).outcome == "undecided"
    assert of_error("a", DeviceError("no such device")).outcome == "undecided"
    assert of_error("a", InputError("a slip")).outcome == "failed"


def test_options_are_named_as_a_test_suite_has_them():
    error = InputError("/no/python cannot be started", key="baseline_python", fix="or use `launcher: inline`")
    refused = of_error("a", error).reason
    assert refused == ('--speechmeter-baseline-python: /no/python cannot be started; or use `launcher="inline"`')
