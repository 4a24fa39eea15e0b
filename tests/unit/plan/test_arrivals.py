"""`rate`, `arrivals` and `ramp` of a plan: what cases they make, and what is refused."""

import pytest

from speechmeter.core.errors import PlanError
from speechmeter.core.protocol import protocol_from_json
from speechmeter.plan.study import study_from_file, study_from_python

PLAN = {"models": ["known:live"], "audio": "sample", "seconds": 3, "pace": "fast"}


def cases(**keys):
    return study_from_python({**PLAN, **keys}).cells.cases


def test_each_rate_is_a_case_and_says_how_conversations_arrive():
    low, high = cases(rate=[0.5, 2], arrivals="gamma:0.50", ramp="5s")
    assert (low.axes.rate, high.axes.rate) == (0.5, 2.0)
    assert low.live.arrivals == "gamma:0.5" and low.live.ramp_s == 5.0
    assert "gamma:0.5 2/s" in high.label
    assert low.id != high.id
    assert cases(rate=1)[0].live.arrivals == "poisson"


def test_cases_without_arrivals_are_as_they_were():
    (case,) = cases()
    assert "rate" not in case.axes and case.axes.streams == 1
    assert not {"arrivals", "offsets_s", "ramp_s"} & case.protocol.to_json().keys()
    assert protocol_from_json(case.protocol.to_json()) == case.protocol


def test_a_protocol_with_arrivals_is_read_back(tmp_path):
    trace = tmp_path / "trace.txt"
    trace.write_text("# of a day\n100.5\n\n101\n104.25\n")
    (case,) = cases(arrivals=f"trace:{trace}")
    assert case.live.offsets_s == (0.0, 0.5, 3.75)
    again = protocol_from_json(case.protocol.to_json())
    assert again == case.protocol and again.to_json() == case.protocol.to_json()


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"arrivals": "poisson"}, "applies only if conversations arrive at a rate"),
        ({"ramp": "3s"}, "applies only if conversations arrive at a rate"),
        ({"rate": 2, "arrivals": "bursts"}, "unknown kind of arrivals"),
        ({"rate": 2, "arrivals": "gamma"}, "unknown kind of arrivals"),
        ({"rate": 2, "arrivals": "gamma:-1"}, "unknown kind of arrivals"),
        ({"rate": 2, "streams": [1, 2]}, "cannot be set"),
        ({"rate": 2, "arrivals": "trace:x"}, "cannot be set"),
        ({"rate": 0}, "greater than 0"),
        ({"arrivals": "trace:/no/such/file"}, "cannot be read"),
    ],
)
def test_what_cannot_be_is_refused(keys, says):
    with pytest.raises(PlanError, match=says):
        cases(**keys)


@pytest.mark.parametrize(("text", "says"), [("2\n1\n", "ascending"), ("1\nx\n", "trace.txt:2"), ("", "1 to"),
                                            ("nan\n", "finite")])  # fmt: skip
def test_traces_that_cannot_be_used(text, says, tmp_path):
    trace = tmp_path / "trace.txt"
    trace.write_text(text)
    with pytest.raises(PlanError, match=says):
        cases(arrivals=f"trace:{trace}")


def test_start_times_may_be_listed_in_the_plan():
    (case,) = cases(arrivals=[5, 5.5, 5.5], ramp="1s")
    assert (case.live.arrivals, case.live.offsets_s, case.live.ramp_s) == ("trace", (0.0, 0.5, 0.5), 1.0)


@pytest.mark.parametrize("listed", [[], [1, 0], ["soon"], [0, True], [float("nan")], [[0, 1]]])
def test_listed_start_times_that_cannot_be_used(listed):
    with pytest.raises(PlanError, match="start times"):
        cases(arrivals=listed)


@pytest.mark.parametrize("arrivals", [3, True, {"rate": 1}])
def test_arrivals_that_are_neither_a_word_nor_a_list(arrivals):
    with pytest.raises(PlanError, match="unknown kind of arrivals"):
        cases(rate=2, arrivals=arrivals)


def test_a_trace_of_a_plan_file_starts_from_its_folder(tmp_path, monkeypatch):
    (tmp_path / "trace.txt").write_text("0\n2\n")
    plan = tmp_path / "plan.yaml"
    plan.write_text("models: [known:live]\naudio: sample\nseconds: 3\npace: fast\narrivals: trace:trace.txt\n")
    monkeypatch.chdir("/")
    assert study_from_file(plan).cells.cases[0].live.offsets_s == (0.0, 2.0)


def test_one_model_may_have_a_rate_of_its_own():
    rated, other = cases(models=[{"name": "a", "load": "known:live", "axes": {"pace": "fast", "rate": 3}},
                                 {"name": "b", "load": "known:live"}])  # fmt: skip
    assert (rated.axes.rate, rated.live.arrivals) == (3.0, "poisson")
    assert (other.axes.rate, other.live.arrivals) == (None, "")
