"""Live runs compared and measured again: what is compared by default, and which smallest effects fit."""

import pytest

from speechmeter.api.comparing import compare, select, smallest_effect, thresholds_of, usual_metrics
from speechmeter.api.rerunning import Again, rerun
from speechmeter.api.runs import run_study
from speechmeter.api.starting import Options
from speechmeter.core.errors import InputError
from speechmeter.plan.study import study_from_python

MODELS = [
    {"name": name, "load": "known:live", "clock": "virtual", "final_s": final_s, "endpoint_s": 0.2}
    for name, final_s in (("swift", 0.1), ("late", 0.3))
]
PLAN = {"models": MODELS, "audio": "sample", "seconds": 3, "pace": "realtime", "silence": "1s", "rounds": 2}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "live"
    run_study(study_from_python(PLAN), Options(output=path, launcher="inline"))
    return path


def test_live_cases_are_compared_by_what_a_speaker_feels(run):
    swift, late = select(f"{run}@model=swift"), select(f"{run}@model=late")
    assert usual_metrics(swift, late) == ["live"]
    assert usual_metrics(select("examples/runs/cpu-grid")) == ["latency"]
    found = compare(swift, late, thresholds_of(["live"], "30ms"))
    by_name = {v.metric.name: v for v in found.verdicts}
    assert by_name["final_delay"].change.value == pytest.approx(0.2)
    # one utterance is too few for a verdict, and that is said
    assert by_name["final_delay"].word == "CANNOT TELL"
    assert "utterances" in by_name["final_delay"].reason
    assert found.min_effect == "30.0 ms"
    assert "NEW − BASE" in found.table()


def test_a_time_is_an_effect_for_delays_alone(run):
    swift, late = f"{run}@model=swift", f"{run}@model=late"
    assert smallest_effect("30ms", key="min_effect") == 0.03
    with pytest.raises(InputError, match="partial_churn is not a live delay"):
        compare(swift, late, "partial_churn", min_effect="30ms")
    with pytest.raises(InputError, match="0ms"):
        smallest_effect("0ms", key="min_effect")


def test_a_live_case_is_measured_again(run, tmp_path):
    base = select(f"{run}@model=swift")
    again = rerun(base, base.groups[0][0].case.id, Again(rounds=2, output=tmp_path / "again"))
    changes = {v.metric.name: v.change.value for v in again.comparison.verdicts if v.change is not None}
    assert changes["final_delay"] == pytest.approx(0.0, abs=1e-9)
    assert {"final_delay", "live_completeness"} <= set(changes)
