"""What a smallest effect may be written as, and which records are held against each other."""

import pytest
from conftest import make_case, make_record

from speechmeter.api.comparing import compare, select, share
from speechmeter.api.runs import load
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Environment, Measurement, Spec
from speechmeter.report import choose
from speechmeter.store.run_dir import RunWriter


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), ("0.05", 0.05), (0.2, 0.2), ("150%", 1.5)])
def test_a_share_is_a_percentage_or_a_number_below_one(text, value):
    assert share(text, "--min-effect") == pytest.approx(value)


@pytest.mark.parametrize("text", ["5", 5, "1", "1.5"])
def test_a_bare_number_from_one_on_is_refused_with_the_way_out(text):
    with pytest.raises(InputError, match=f"write {text}%"):
        share(text, "--min-effect")


@pytest.mark.parametrize("text", ["much", "0", "-5%", "inf", "nan"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(InputError, match="not a share above 0"):
        share(text, "--min-effect")


def run_of_two_machines(path):
    with RunWriter(path) as store:
        store.begin("models: [log-mel]\n")
        for sequence, (host, round_) in enumerate((host, n) for n in range(4) for host in ("pi", "orin")):
            latency_s = {"pi": 2.0, "orin": 1.0}[host] * (1 + round_ / 1000)
            environment = Environment(facts={"host": host})
            latency = Measurement.of(metrics.LATENCY, [latency_s])
            place = {"host": host, "environment": environment.fingerprint}
            store.append(make_record(make_case(), latency, round=round_, sequence=sequence, **place), environment)
    return path


def test_machines_of_one_run_are_compared_by_host_and_never_by_pairs(tmp_path):
    run = run_of_two_machines(tmp_path / "run")
    base, new = select(f"{run}@host=pi"), select(f"{run}@host=orin")
    with pytest.raises(InputError, match="host: 'pi' in BASE, 'orin' in NEW"):
        compare(base, new, {"latency": 0.05})
    (found,) = compare(base, new, {"latency": 0.05}, allow_different=True).verdicts
    assert (found.word, found.paired, round(found.ratio, 6)) == ("FASTER", False, 0.5)


def test_a_run_of_several_machines_is_not_held_against_one(tmp_path):
    run = run_of_two_machines(tmp_path / "run")
    with pytest.raises(InputError, match=r"2 machines: orin, pi; choose one: .*@host=orin"):
        compare(select(str(run)), select(f"{run}@host=pi"), {"latency": 0.05})
    both = compare(select(str(run)), select(str(run)), {"latency": 0.05})
    assert [v.word for v in both.verdicts] == ["SAME", "SAME"]


def test_tables_tell_machines_apart(tmp_path):
    made = load(run_of_two_machines(tmp_path / "run"))
    titles = [table.title for table in choose.tables(made.records, "latency")]
    assert [("host pi" in title, "host orin" in title) for title in titles] == [(True, False), (False, True)]
    assert [round(figure.value, 2) for _, figure in made.estimates("latency")] == [2.0, 1.0]


def run_over(path, **latencies_s):
    """A run of one model over recordings of these names."""
    with RunWriter(path) as store:
        store.begin("models: [log-mel]\n")
        for name, latency_s in latencies_s.items():
            workload = Spec(plugin="audio", name=name, source=name, options={"sha256": name})
            for round_ in range(3):
                latency = Measurement.of(metrics.LATENCY, [latency_s * (1 + round_ / 1000)])
                store.append(make_record(make_case(workload=workload), latency, round=round_))
    return select(str(path))


def test_each_input_is_held_against_the_same_input(tmp_path):
    base, new = (run_over(tmp_path / side, a=1.0, b=2.0) for side in ("base", "new"))
    found = compare(base, new, {"latency": 0.05})
    assert [(v.word, round(v.ratio, 6)) for v in found.verdicts] == [("SAME", 1.0), ("SAME", 1.0)]
    assert found.notes == ()


def test_an_input_that_only_one_side_has_is_left_alone(tmp_path):
    base, new = run_over(tmp_path / "base", a=1.0), run_over(tmp_path / "new", a=1.0, b=2.0)
    found = compare(base, new, {"latency": 0.05})
    assert len(found.verdicts) == 1
    assert found.notes == (f"only in NEW: {new.groups[1][0].case.label}",)


def test_the_only_other_input_is_held_against_it_where_that_is_allowed(tmp_path):
    base, new = run_over(tmp_path / "base", a=1.0), run_over(tmp_path / "new", b=2.0)
    with pytest.raises(InputError, match="not measured alike: workload"):
        compare(base, new, {"latency": 0.05})
    (found,) = compare(base, new, {"latency": 0.05}, allow_different=True).verdicts
    assert found.ratio == pytest.approx(2.0)


@pytest.mark.parametrize("hosts", [("pi",), ("pi", "orin")])
def test_what_a_driver_left_out_does_not_keep_a_run_from_an_earlier_one(tmp_path, hosts):
    for path, driver in ((tmp_path / "old", None), (tmp_path / "new", "laptop")):
        with RunWriter(path) as store:
            store.begin("")
            for number, host in enumerate(hosts):
                case = make_case(seconds=number + 1.0)
                store.append(make_record(case, Measurement.of(metrics.LATENCY, [1.0]), host=host, sequence=number))
            if driver is not None:
                store.append(make_record(make_case("B"), status="unavailable", host=driver, sequence=9))
    found = compare(select(str(tmp_path / "old")), select(str(tmp_path / "new")), {"latency": 0.05})
    assert len(found.verdicts) == len(hosts)
    assert [note.partition(":")[0] for note in found.notes] == ["only in NEW"]
