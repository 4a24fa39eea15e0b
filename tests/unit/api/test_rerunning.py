"""What `rerun` chooses, and refuses before anything is measured."""

import hashlib

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.family import alone
from speechmeter.api import rerunning
from speechmeter.api.comparing import Comparison, select
from speechmeter.api.rerunning import Again, Rerun, rerun
from speechmeter.core import metrics
from speechmeter.core.errors import DeviceError, InputError
from speechmeter.core.protocol import SearchProtocol
from speechmeter.core.types import Limits, Measurement, Spec
from speechmeter.launch import preflight
from speechmeter.store.run_dir import RunWriter


def write(path, *records):
    with RunWriter(path) as store:
        store.begin("models: [log-mel]\n")
        for record in records:
            store.append(record)
    return select(str(path))


def fed(source, sha256):
    workload = Spec(
        plugin="data", name="x.tsv", source=str(source), options={"manifest": str(source), "sha256": sha256}
    )
    subject = Spec(plugin="log-mel", name="log-mel")
    return make_record(make_case(subject=subject, workload=workload), Measurement.of(metrics.LATENCY, [1.0]))


def test_an_input_that_changed_is_no_repetition(tmp_path):
    data = tmp_path / "x.tsv"
    data.write_text("old")
    digest = hashlib.sha256(b"old").hexdigest()[:16]
    base = write(tmp_path / "run", fed(data, digest))
    wanted = base.groups[0][0].case.id
    data.write_text("new")
    with pytest.raises(InputError, match="its content changed"):
        rerun(base, wanted, Again(output=tmp_path / "again"))
    data.unlink()
    with pytest.raises(InputError, match="the input is missing"):
        rerun(base, wanted, Again(output=tmp_path / "again"))
    assert not (tmp_path / "again").exists()


def test_scores_from_a_file_that_changed_are_no_repetition(tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("old")
    protocol = {"quality": {"import": str(scores), "sha256": hashlib.sha256(b"old").hexdigest()[:16]}}
    case = make_case(subject=Spec(plugin="log-mel", name="log-mel"), protocol=protocol)
    base = write(tmp_path / "run", make_record(case, Measurement.of(metrics.LATENCY, [1.0])))
    scores.write_text("new")
    with pytest.raises(InputError, match="its content changed"):
        rerun(base, case.id, Again(output=tmp_path / "again"))


SEARCH = SearchProtocol(find="max-batch", memory_gib=2.0)


@pytest.mark.parametrize(
    ("plan", "protocol", "found"),
    [
        ("limits: {time_s: 3600, memory_gib: 8}", {}, Limits(time_s=3600, memory_gib=8)),
        (
            "limits: {time_s: 3600, memory_gib: 8}",
            SearchProtocol(find="max-batch", memory_gib=2.0),
            Limits(time_s=3600, memory_gib=2),
        ),
        ("limits: {time_s: null}", {}, Limits()),
        ("models: log-mel", {}, Limits(time_s=600)),
        ("limits: [1", {}, Limits(time_s=600)),
        (None, {}, Limits(time_s=600)),
    ],
)
def test_limits_are_those_of_the_run(tmp_path, plan, protocol, found):
    if plan is not None:
        (tmp_path / "plan.yaml").write_text(plan)
    assert rerunning._limits(make_case(protocol=protocol), tmp_path) == found


def test_two_repetitions_in_one_second_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = rerunning.new_run("rerun-0123ab")
    first.mkdir(parents=True)
    assert rerunning.new_run("rerun-0123ab") != first


def test_a_beginning_that_several_cases_share_is_refused_with_their_ids(tmp_path):
    records = [make_record(make_case(seconds=float(n)), Measurement.of(metrics.LATENCY, [1.0])) for n in range(1, 40)]
    base = write(tmp_path / "run", *records)
    first = {record.case.id[0] for record in records}
    shared = next(digit for digit in first if sum(r.case.id.startswith(digit) for r in records) > 1)
    with pytest.raises(InputError, match=f"case ids begin with '{shared}'"):
        rerun(base, shared, Again(trust=True))


@pytest.mark.parametrize(("count", "end"), [(4, ""), (5, ", …")])
def test_a_list_of_cases_says_whether_there_are_more(count, end, tmp_path):
    records = [
        make_record(make_case(seconds=float(n)), Measurement.of(metrics.LATENCY, [1.0]), host=host)
        for n in range(1, count + 1)
        for host in ("pi", "orin")
    ]
    base = write(tmp_path / "run", *records)
    with pytest.raises(InputError) as caught:
        rerun(base, "zzz", Again())
    listed = ", ".join(f"{make_case(seconds=float(n)).id} (fake · cpu · {n} s × 1)" for n in range(1, 5))
    assert caught.value.fix == f"choose one: {listed}{end}"


def test_a_case_of_several_machines_is_chosen_by_host(tmp_path):
    latency = Measurement.of(metrics.LATENCY, [1.0])
    write(tmp_path / "run", *(make_record(make_case(), latency, host=host) for host in ("pi (2)", "pi (1)")))
    with pytest.raises(InputError) as caught:
        rerun(select(f"{tmp_path}/run@batch=1"), make_case().id[:6], Again())
    assert caught.value.reason == f"{make_case().id} was measured on 2 machines: pi (1), pi (2)"
    assert caught.value.fix == f"choose one: '{tmp_path}/run@batch=1,host=pi (1)'"


@pytest.mark.parametrize("axes", [{"device": "cuda"}, {"cores": 100_000}])
def test_a_record_of_another_machine_is_repeated_only_on_such_a_one(axes, tmp_path, monkeypatch):
    monkeypatch.setattr(preflight, "cuda_devices", lambda: 0)
    case = make_case(**axes)
    base = write(tmp_path / "run", make_record(case, Measurement.of(metrics.LATENCY, [1.0])))
    with pytest.raises(DeviceError, match="; run this command on a machine that has the required device"):
        rerun(base, case.id, Again(trust=True, output=tmp_path / "again"))
    assert not (tmp_path / "again").exists()


def test_what_can_be_installed_here_is_advised(tmp_path, monkeypatch):
    monkeypatch.setattr(preflight, "cuda_devices", lambda: 1)
    monkeypatch.setattr(preflight, "version", lambda name: "2.9.0+cpu")
    case = make_case(device="cuda")
    base = write(tmp_path / "run", make_record(case, Measurement.of(metrics.LATENCY, [1.0])))
    with pytest.raises(InputError, match="built without CUDA; install a CUDA build of torch"):
        rerun(base, case.id, Again(trust=True, output=tmp_path / "again"))


def test_a_case_that_the_plan_left_out_is_called_so(tmp_path):
    left_out = make_record(make_case(seconds=9.0), status="skipped", reason="outside the triangle")
    base = write(tmp_path / "run", make_record(make_case(), Measurement.of(metrics.LATENCY, [1.0])), left_out)
    with pytest.raises(InputError, match="left out of this run: outside the triangle"):
        rerun(base, left_out.case.id[:10], Again(trust=True))


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("latancy", "there is no metric 'latancy'; did you mean 'latency'"),
        ("flops", "log-mel · cpu · 1 s × 1 has no flops; choose from: latency"),
        ("modules", "has no modules; choose from: latency"),
    ],
)
def test_a_metric_that_the_case_has_not_is_refused_before_anything_is_measured(metric, words, tmp_path):
    case = make_case(subject=Spec(plugin="log-mel", name="log-mel"))
    base = write(tmp_path / "run", make_record(case, Measurement.of(metrics.LATENCY, [1.0])))
    with pytest.raises(InputError, match=words):
        rerun(base, case.id, Again(metrics=["latency", metric], output=tmp_path / "again"))
    assert not (tmp_path / "again").exists()


def test_a_case_with_other_figures_only_says_which(tmp_path):
    base = write(tmp_path / "run", make_record(make_case(), Measurement.of(metrics.LATENCY_LOAD, [1.0])))
    with pytest.raises(InputError, match=r"has none of the metrics latency, .*; choose from: latency_load"):
        rerun(base, make_case().id, Again(trust=True))


@pytest.mark.parametrize("asked", [(), ("parameters",)])
def test_a_case_that_was_never_measured_can_be_held_against_nothing(asked, tmp_path):
    failed = make_record(make_case(), Measurement.of(metrics.PARAMETERS, [7.0]), status="oom")
    base = write(tmp_path / "run", failed)
    with pytest.raises(InputError, match=r"no round of fake.* was measured: oom; choose a case that was measured"):
        rerun(base, make_case().id, Again(metrics=asked))


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        (("SAME", "SAME"), "reproduced"),
        (("SAME", "CANNOT TELL"), "cannot tell"),
        (("CANNOT TELL", "FASTER"), "not reproduced"),
        (("SAME", "FAILED"), "not reproduced"),
    ],
)
def test_one_word_for_all_metrics(words, outcome, tmp_path):
    class Judged:
        def __init__(self, word):
            self.word = word

    found = Comparison(family=alone(list(map(Judged, words))), notes=())
    assert Rerun(path=tmp_path, case=make_case(), comparison=found, differences=()).outcome == outcome
