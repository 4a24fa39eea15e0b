"""Real audio against noise: what is paired with what, the ratio and its interval, and what one round says."""

import math
from dataclasses import replace
from statistics import fmean, stdev

import pytest
from conftest import make_case, make_record

from speechmeter.core import metrics
from speechmeter.core.types import Measurement, Spec
from speechmeter.plan.study import study_from_python
from speechmeter.report.choose import tables

NOISE = Spec(plugin="audio", name="noise", source="noise")
SPEECH = Spec(plugin="audio", name="a.wav", source="x/a.wav", options={"sha256": "12345"})
T_975_WITH_2 = 4.302652729749464


def rounds(workload, times, name="m", start=0, flops=1e9, **axes):
    """A round for each time, each far enough from the next to be paired with its own neighbour alone."""
    case = make_case(name, workload=workload, meters=("latency", "flops"), protocol={"samples": 1}, **axes)
    return [
        make_record(case, Measurement.of(metrics.LATENCY, [time]), Measurement.of(metrics.FLOPS, [flops]),
                    round=round, sequence=100 * round + start)
        for round, time in enumerate(times)
    ]  # fmt: skip


def rows(records):
    (table,) = tables(records, "inputs")
    return {row.labels: [cell.text() for cell in row.cells] for row in table.rows}, table


def test_rounds_are_compared_by_pairs():
    noise, real = [1.0, 2.0, 4.0], [1.21, 2.0, 4.4]
    found, table = rows([*rounds(NOISE, noise), *rounds(SPEECH, real, start=1)])
    logs = [math.log(b / a) for a, b in zip(noise, real, strict=True)]
    half = T_975_WITH_2 * stdev(logs) / math.sqrt(3)
    ratio = table.rows[0].cells[2].estimate
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx(
        tuple(math.exp(fmean(logs) + side * half) for side in (0, -1, 1))
    )
    assert found["m · cpu · 1 s × 1", "a.wav", "latency"][3] == "CANNOT TELL (3 pairs)"
    assert found["m · cpu · 1 s × 1", "a.wav", "FLOPs"][2:] == ["1.00", "SAME (counted)"]
    assert any("95 % interval" in note for note in table.notes)


def test_one_round_has_a_ratio_and_says_so():
    found, table = rows([*rounds(NOISE, [2.0]), *rounds(SPEECH, [3.0], start=1, flops=2e9)])
    assert found["m · cpu · 1 s × 1", "a.wav", "latency"] == ["2.00 s", "3.00 s", "1.50", "one round"]
    assert found["m · cpu · 1 s × 1", "a.wav", "FLOPs"][2:] == ["2.00", "MORE (counted)"]
    assert not any("interval over rounds" in note for note in table.notes)
    assert "one round: the ratio has no interval; measure more rounds." in table.notes


def test_rounds_far_apart_in_time_are_not_paired():
    found, _ = rows([*rounds(NOISE, [1.0, 1.1]), *rounds(SPEECH, [1.0, 1.1], start=50)])
    assert found["m · cpu · 1 s × 1", "a.wav", "latency"][3].endswith("(2 rounds)")


def test_only_cases_that_differ_in_the_input_alone_are_compared():
    records = [
        *rounds(NOISE, [1.0], seconds=1.0),
        *rounds(SPEECH, [1.0], seconds=2.0, start=1),
        *rounds(SPEECH, [1.0], seconds=1.0, name="other", start=2),
        *rounds(SPEECH, [2.0], seconds=1.0, start=3),
    ]
    found, _ = rows(records)
    assert {labels[:2] for labels in found} == {("m · cpu · 1 s × 1", "a.wav")}


def test_a_side_that_failed_has_no_ratio():
    (measured,) = rounds(SPEECH, [1.0])
    failed = replace(measured, status="oom", reason="needs 30 GiB", measurements=())
    found, _ = rows([*rounds(NOISE, [1.0]), failed])
    assert found["m · cpu · 1 s × 1", "a.wav", "latency"] == ["1.00 s", "oom", "–", "FAILED"]


def test_without_both_inputs_the_command_says_what_to_measure():
    found, table = rows(rounds(NOISE, [1.0]))
    assert found == {}
    assert table.notes[0].startswith("no case of this run was measured on noise and on real audio; measure both")


def test_the_same_case_on_noise_and_on_real_audio_are_neighbours_in_the_plan():
    plan = {"models": ["log-mel", "tera"], "audio": ["noise", "sample"], "seconds": [1, 2]}
    cases = study_from_python(plan).cells.cases
    of_one = [(c.axes["seconds"], c.workload.name) for c in cases if c.subject.name == "log-mel"]
    assert of_one == [(1, "noise"), (1, "sample"), (2, "noise"), (2, "sample")]
    assert len({case.id for case in cases}) == len(cases) == 8
