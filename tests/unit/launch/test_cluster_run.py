import pytest
from conftest import make_case, make_record
from simulated_cluster import SimulatedCluster, node

from speechmeter.analysis.stopping import Rounds
from speechmeter.core.errors import InterruptedRun
from speechmeter.launch.cluster import Requirements, find_machines
from speechmeter.launch.cluster_run import run_on_cluster
from speechmeter.launch.schedule import Sweep
from speechmeter.store.run_dir import RunWriter


def cases_of(names, seconds, **axes):
    return [make_case(name, seconds=float(s), **axes) for name in names for s in seconds]


def measured(tmp_path, cluster, cases, rounds=Rounds(least=1, most=1), before=(), requirements=None):
    machines = find_machines(cluster, requirements or Requirements(cases=cases))
    with RunWriter(tmp_path / "run") as store:
        store.begin("")
        for record in before:
            store.append(record)
        try:
            run_on_cluster(Sweep(cases=cases, rounds=rounds), machines, store, patience_s=0.0)
        finally:
            assert cluster.held == {}, "every device is given back"
        return store.records()


def by_host(records):
    hosts = {}
    for record in records:
        hosts.setdefault(record.host, []).append(record)
    return hosts


def test_every_case_is_measured_once_and_both_machines_work(tmp_path):
    cluster = SimulatedCluster(node("a"), node("b"))
    records = measured(tmp_path, cluster, cases_of("A", range(1, 11)))
    assert sorted(record.case.axes["seconds"] for record in records) == list(range(1, 11))
    assert {host: len(found) for host, found in by_host(records).items()} == {"a": 5, "b": 5}


def test_all_rounds_and_neighbours_of_a_cell_stay_on_one_machine(tmp_path):
    cluster = SimulatedCluster(node("a"), node("b"))
    records = measured(tmp_path, cluster, cases_of("AB", range(1, 6)), Rounds(least=3, most=3))
    assert len(records) == 5 * 2 * 3
    hosts = {}
    for record in records:
        hosts.setdefault(record.case.axes["seconds"], set()).add(record.host)
    assert all(len(found) == 1 for found in hosts.values())
    assert set().union(*hosts.values()) == {"a", "b"}


def test_each_machine_runs_its_own_cells_forth_and_back(tmp_path):
    cluster = SimulatedCluster(node("a"), node("b"))
    measured(tmp_path, cluster, cases_of("AB", (1, 2, 3, 4)), Rounds(least=2, most=2))
    asked = [f"{name}{seconds:g}" for host, name, seconds in cluster.begun if host == "a"]
    assert asked == ["A1", "B1", "A3", "B3", "B3", "A3", "B1", "A1"]


def test_each_device_has_a_lane_of_its_own_and_counts_within_it(tmp_path):
    records = measured(
        tmp_path, SimulatedCluster(node("a"), node("b")), cases_of("AB", (1, 2)), Rounds(least=2, most=2)
    )
    numbers = {host: [record.sequence for record in found] for host, found in by_host(records).items()}
    assert numbers == {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3]}
    assert {record.lane for record in records if record.host == "a"}.isdisjoint(
        record.lane for record in records if record.host == "b"
    )
    assert len({record.lane for record in records}) == 2


def test_adaptive_rounds_go_on_where_the_spread_is(tmp_path):
    cluster = SimulatedCluster(node("a"), values={"N": [1.0, 3.0], "Q": [1.0]})
    cases = [make_case("Q", seconds=1.0), make_case("N", seconds=2.0)]
    records = measured(tmp_path, cluster, cases, Rounds(least=5, most=8, precision=0.05))
    counts = {name: sum(record.case.subject.name == name for record in records) for name in "QN"}
    assert counts == {"Q": 6, "N": 8}
    pilots = {(r.case.subject.name, r.round): r.pilot for r in records}
    assert all((pilot is not None) is (round_ >= 5) for (_, round_), pilot in pilots.items())


def test_a_lost_process_is_tried_again_on_the_same_machine_and_the_record_says_so(tmp_path):
    cluster = SimulatedCluster(node("a"), node("b"), losses={"a": ["worker"]})
    records = measured(tmp_path, cluster, cases_of("A", (1, 2)))
    again = next(record for record in records if record.host == "a")
    assert [record.status for record in records] == ["ok", "ok"]
    assert again.warnings == ("measured again, because the first attempt was lost: a: the worker died",)


def test_after_two_more_losses_the_case_is_recorded_and_the_run_goes_on(tmp_path):
    cluster = SimulatedCluster(node("a"), losses={"a": ["worker"] * 3})
    records = measured(tmp_path, cluster, cases_of("A", (1, 2)))
    assert [record.status for record in records] == ["crashed", "ok"]
    assert "lost 3 times" in records[0].reason and "the worker died" in records[0].reason
    assert [seconds for *_, seconds in cluster.begun] == [1.0, 1.0, 1.0, 2.0]


def test_cells_of_a_lost_machine_go_to_another_of_its_kind(tmp_path):
    nodes = [node("a", kinds=["x"]), node("b", kinds=["x"]), node("c", kinds=["y"])]
    cluster = SimulatedCluster(*nodes, losses={"a": ["", "node"]})
    records = measured(tmp_path, cluster, cases_of("A", range(1, 10)), Rounds(least=2, most=2))
    assert len({record.key for record in records}) == len(records) == 18
    on_a = [record.case.id for record in records if record.host == "a"]
    assert len(on_a) == 1
    hosts = {record.host for record in records if record.case.id in on_a}
    assert hosts == {"a", "b"}


def test_without_another_of_its_kind_the_rest_is_left_for_resume_and_the_others_go_on(tmp_path):
    cluster = SimulatedCluster(node("a", kinds=["x"]), node("c", kinds=["y"]), losses={"a": ["node"]})
    cases = cases_of("A", range(1, 7))
    with pytest.raises(InterruptedRun) as stopped:
        measured(tmp_path, cluster, cases)
    left = "no machine is left that can measure A · cpu · 1 s × 1; add one, then use `resume` to continue"
    assert str(stopped.value) == f"{left}; 5 of 6 measured and saved"
    with RunWriter(tmp_path / "run") as store:
        assert {record.host for record in store.records()} == {"c"}
        assert [record.case.axes["seconds"] for record in store.records()] == [2, 3, 4, 5, 6]


def test_a_machine_that_comes_in_mid_run_takes_part(tmp_path):
    cluster = SimulatedCluster(node("a"))
    cluster.coming = [node("late")]
    records = measured(tmp_path, cluster, cases_of("A", range(1, 10)))
    assert {record.host for record in records} == {"a", "late"}
    assert len({record.key for record in records}) == 9


def test_a_resumed_cell_goes_back_to_the_machine_of_its_records(tmp_path):
    cases = cases_of("A", (1, 2))
    before = [make_record(case, round=0, host="b", environment="e", sequence=i) for i, case in enumerate(cases)]
    cluster = SimulatedCluster(node("a"), node("b"))
    records = measured(tmp_path, cluster, cases, Rounds(least=2, most=2), before=before)
    assert [record.host for record in records] == ["b"] * 4
    assert len({record.key for record in records}) == 4


def test_a_resumed_cell_of_a_machine_that_is_gone_goes_on_elsewhere(tmp_path):
    cases = cases_of("A", (1,))
    before = [make_record(cases[0], round=0, host="gone", environment="e")]
    records = measured(tmp_path, SimulatedCluster(node("a")), cases, Rounds(least=2, most=2), before=before)
    assert [(record.round, record.host) for record in records] == [(0, "gone"), (1, "a")]


def test_gpus_of_one_machine_work_side_by_side_and_a_cpu_has_the_machine_to_itself(tmp_path):
    both = [*cases_of("A", range(1, 5), device="cuda"), *cases_of("A", (1, 2))]
    cluster = SimulatedCluster(node("g", cpus=8, gpus=2))
    records = measured(tmp_path, cluster, both)
    assert len(records) == 6
    assert cluster.most_held == 3


def test_files_of_a_measurement_end_in_the_run(tmp_path):
    measured(tmp_path, SimulatedCluster(node("a")), cases_of("A", (1,)))
    assert (tmp_path / "run/artifacts/A.txt").read_bytes() == b"made there"
