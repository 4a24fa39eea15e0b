"""Cases and environments that differ are named, and code that does not differ is noticed."""

from conftest import make_case, make_record

from speechmeter.analysis.conditions import batch_differences, case_differences, environment_differences, same_code
from speechmeter.core import metrics
from speechmeter.core.types import BATCHES, Measurement


def test_code_that_is_compared_with_itself_is_noticed():
    code = {"digest": "a", "versions": {"torch": "2"}, "modules": {"mine": "working folder", "other": "elsewhere"}}
    facts = {"python": "3.11", "code": code}
    assert same_code(facts, facts) == "both load mine from the working folder"
    for changed in (
        {"python": "3.12"},
        {"code": {**code, "digest": "b"}},
        {"code": {**code, "versions": {"torch": "3"}}},
        {"code": None},
    ):
        assert same_code(facts, {**facts, **changed}) == ""


def test_differences_are_named():
    base, new = make_case(threads=1), make_case(threads=2, protocol={"samples": 7})
    assert case_differences(base, new, []) == ["threads: 1 in BASE, 2 in NEW", "samples: 3 in BASE, 7 in NEW"]
    assert case_differences(make_case(threads=1), make_case(threads=2), ["threads"]) == []
    machine, code = environment_differences({"cpu": "x", "git": "1"}, {"cpu": "y", "git": "2"})
    assert (len(machine), len(code)) == (1, 1)
    _, code = environment_differences(
        {"packages": {"torch": "1", "numpy": "2"}}, {"packages": {"torch": "3", "numpy": "2"}}
    )
    assert code == ["packages torch: '1' in BASE, '3' in NEW"]


def test_times_of_other_batches_are_no_times_to_compare():
    """One case id, measured by a version that made whole passes of a schedule and by one that keeps to its steps."""
    case = make_case(protocol={"mode": "schedule", "wait": 10, "warmup": 10, "active": 20, "repeat": 2})
    old, new = (
        [make_record(case, Measurement.of(metrics.LATENCY, [1.0] * count, notes={BATCHES: batches}))]
        for count, batches in ((160, 80), (40, 40))
    )
    assert batch_differences(old, new) == ["measured batches: 80 in BASE, 40 in NEW"]
    assert batch_differences(new, new) == []
    assert batch_differences(new, [make_record(case)]) == []
