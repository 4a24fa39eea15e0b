"""Live cases from a plan to records: metrics in every round, exchanges kept, limits without the time of speech."""

from dataclasses import replace

import pytest

from speechmeter.api.runs import run_study
from speechmeter.api.starting import Options, check_study
from speechmeter.core import metrics, plugins
from speechmeter.core.errors import InputError, PlanError, SubjectError
from speechmeter.core.live import Live
from speechmeter.core.outputs import Keep
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Limits
from speechmeter.launch.forecast import History, forecast
from speechmeter.launch.live import measure_live_case, speech_s
from speechmeter.launch.schedule import Left
from speechmeter.plan.study import study_from_python
from speechmeter.store.exchanges import read_exchanges
from speechmeter.subjects.known_live import KnownSubject

KNOWN = {"name": "known", "load": "known:live", "clock": "virtual", "final_s": 0.25}
PLAN = {"models": [KNOWN], "audio": "sample", "seconds": 3, "pace": "realtime", "silence": "1s", "rounds": 1}


def study(**keys):
    return study_from_python({**PLAN, **keys})


def measured(subject=None, keep=None, **keys):
    case = study(**keys).cells.cases[0]
    return measure_live_case(
        case,
        subject or plugins.subject("known"),
        plugins.workload("audio"),
        [plugins.meter(name) for name in case.meters],
        keep=keep or Keep(),
    )


def test_a_round_has_the_metrics_of_conversations_and_those_of_the_client(tmp_path):
    outcome = measured(turns=3, keep=Keep(folder=tmp_path))
    assert (outcome.status, outcome.reason) == ("ok", "")
    found = {m.metric: m for m in outcome.measurements}
    assert found[metrics.LIVE_ANSWERED.id].values == (1.0,) * 3
    assert found[metrics.FINALIZE_DELAY.id].values == pytest.approx((0.25,) * 3)
    assert found[metrics.CLIENT_SLIP_MAX.id].values == pytest.approx((0.0,), abs=1e-9)
    assert found[metrics.MEMORY_LIVE.id].values[0] > 2**20
    phases = found[metrics.PHASE.id]
    assert phases.notes["phases"] == ["data", "load", "conversations"]
    assert any("no warm-up" in warning for warning in outcome.warnings)
    (file,) = tmp_path.rglob("exchanges-0.jsonl.gz")
    assert [one.turn for one in read_exchanges(file).exchanges] == [0, 1, 2]


def test_every_round_has_its_own_file_and_its_own_starts(tmp_path):
    run = run_study(study(rounds=2, streams=2, turns=1), Options(output=tmp_path / "run", launcher="inline"))
    assert [record.status for record in run.records] == ["ok", "ok"]
    logs = [read_exchanges(file) for file in sorted((tmp_path / "run").rglob("exchanges-*.jsonl.gz"))]
    assert len(logs) == 2
    starts = [[one.started_s for one in log.exchanges] for log in logs]
    assert starts[0] != starts[1]


def test_a_system_that_is_too_slow_is_measured_and_one_that_fails_is_an_error():
    slow = measured(models=[{**KNOWN, "final_s": 100.0}])
    assert slow.status == "ok"
    broken = measured(models=[{**KNOWN, "fail": 1.0}])
    assert broken.status == "error"
    assert "every conversation failed; the first: asked to fail" in broken.reason
    assert any(m.metric == metrics.LIVE_COMPLETENESS.id for m in broken.measurements)


class Prepares(KnownSubject):
    def __init__(self, prepared):
        self._prepared = prepared

    def prepare(self, case, device):
        if isinstance(self._prepared, Exception):
            raise self._prepared
        return self._prepared


def fails(clock):
    raise RuntimeError("no stream left")


@pytest.mark.parametrize(
    "prepared, reason",
    [
        (RuntimeError("no weights"), "no weights"),
        (Prepared(), "cannot be measured live"),
        (Prepared(live=Live(converse=fails)), "no stream left"),
    ],
)
def test_a_subject_that_breaks_is_a_record(prepared, reason):
    outcome = measured(Prepares(prepared))
    assert outcome.status == "error"
    assert reason in outcome.reason


def test_an_oracle_on_data_without_anchors_says_what_to_do():
    outcome = measured(turn_end="oracle", audio="noise")
    assert outcome.status == "error"
    assert "needs the true end of speech" in outcome.reason


def test_the_fed_seconds_are_known_beforehand():
    (case,) = study(turns=4, streams=2, phase="aligned").cells.cases
    assert speech_s(case) == 4 * (3 + 1)
    (spread,) = study(turns=4, streams=2).cells.cases
    assert speech_s(spread) == 5 * (3 + 1)  # the last stream may start one utterance later
    (timed,) = study(duration="60s").cells.cases
    assert speech_s(timed) == 60 + 4
    (fast,) = study(pace="fast").cells.cases
    assert speech_s(fast) == 0
    found = forecast(Left(certain=[(case, "all"), (case, "repeat")]), History(limits=Limits(time_s=10)))
    assert (found.unknown, found.limit_s) == (2, 10 + 16)
    assert found.unknown_s > 2 * 16


def test_preflight_refuses_models_and_input_that_cannot_be_live():
    with pytest.raises(SubjectError, match="log-mel takes whole recordings and cannot be measured live"):
        check_study(study(models=["log-mel"]), Options())
    offline = study_from_python({"models": ["known:live"], "audio": "sample"})
    with pytest.raises(PlanError, match=r"known:live can only be measured live: add `pace: realtime`"):
        check_study(offline, Options())
    text = {key: value for key, value in PLAN.items() if key not in ("audio", "seconds")}
    with pytest.raises(InputError, match="needs sound as input"):
        check_study(study_from_python({**text, "text": {"vocabulary": 10}}), Options())


@pytest.mark.campaign
def test_time_spent_on_speech_does_not_count_against_the_limit(tmp_path):
    real = {**KNOWN, "clock": "real"}
    run = run_study(
        study(models=[real], turns=3, limits={"time_s": 8}), Options(output=tmp_path / "run")
    )  # fed for 12 s
    assert [record.status for record in run.records] == ["ok"]


def test_meters_that_cannot_watch_say_so():
    case = replace(study().cells.cases[0], meters=("parameters", "memory"))
    outcome = measure_live_case(
        case, plugins.subject("known"), plugins.workload("audio"),
        [plugins.meter(name) for name in case.meters], keep=None,
    )  # fmt: skip
    absent = {m.metric: m.unavailable for m in outcome.measurements if m.unavailable}
    assert "cannot measure a live case" in absent[metrics.PARAMETERS.id]
