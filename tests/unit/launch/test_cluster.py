import pytest
from conftest import make_case
from simulated_cluster import SimulatedCluster, node

from speechmeter.core.errors import DeviceError
from speechmeter.core.types import Limits
from speechmeter.launch.cluster import Requirements, find_machines
from speechmeter.launch.cluster_run import cells_by_machine, lanes_of


def lanes(cluster, requirements):
    found = find_machines(cluster, requirements)
    return [lane for machine in found.machines for lane in lanes_of(machine, requirements, 0)]


@pytest.mark.parametrize(
    ("case", "requirements", "reason"),
    [
        (make_case(device="cuda"), {}, "a: has no GPU"),
        (make_case(cores=64), {}, "a: has 2 cores, and the case needs 64"),
        (make_case(), {"limits": Limits(memory_gib=100)}, r"a: limits.memory_gib is 100, and the machine has 8\.0 GiB"),
        (make_case(), {"kinds": {"cpu": "jetson"}}, "a: is not of kind 'jetson'"),
    ],
)
def test_what_fits_no_machine_is_refused_at_once_with_the_reason_of_each(case, requirements, reason):
    cluster = SimulatedCluster(node("a"), node("b", kinds=["rack"]))
    with pytest.raises(DeviceError, match=reason) as caught:
        find_machines(cluster, Requirements(cases=[case], **requirements))
    assert "; b: " in str(caught.value)
    assert cluster.begun == []


def test_a_file_that_no_machine_has_is_a_refusal():
    case = make_case()
    cluster = SimulatedCluster(node("a"), refused={"a": {case.id: "there is no file x.flac"}})
    with pytest.raises(DeviceError, match=r"a: there is no file x\.flac"):
        find_machines(cluster, Requirements(cases=[case]))


def test_a_model_that_no_machine_has_is_left_out_and_the_rest_is_measured():
    here, absent = make_case("A"), make_case("B")
    cluster = SimulatedCluster(node("a"), absent={"a": {absent.id: "no torch"}})
    found = find_machines(cluster, Requirements(cases=[here, absent]))
    assert [(skip.case.id, skip.reason) for skip in found.absent] == [(absent.id, "no torch")]


def test_a_model_that_one_machine_has_is_measured_there():
    case = make_case("A")
    requirements = Requirements(cases=[case])
    cluster = SimulatedCluster(node("a"), node("b"), absent={"a": {case.id: "no torch"}})
    assert find_machines(cluster, requirements).absent == ()
    assert [lane.machine.host for lane in lanes(cluster, requirements)] == ["b"]


def test_cases_of_one_cell_that_fit_different_machines_are_taken_apart():
    cases = (make_case("A"), make_case("B"), make_case("C"))
    requirements = Requirements(cases=cases)
    cluster = SimulatedCluster(node("a"), node("b"), absent={"a": {cases[1].id: "no torch"}})
    parted = cells_by_machine([cases], find_machines(cluster, requirements).machines, requirements)
    assert [[case.subject.name for case in cell] for cell in parted] == [["A", "C"], ["B"]]


def test_nothing_that_any_machine_has_is_an_error():
    case = make_case()
    with pytest.raises(DeviceError, match="no torch"):
        find_machines(SimulatedCluster(node("a"), absent={"a": {case.id: "no torch"}}), Requirements(cases=[case]))


def test_another_version_on_a_machine_is_refused():
    cluster = SimulatedCluster(node("a"), node("old"), versions={"old": "0.0.1"})
    with pytest.raises(DeviceError, match=r"old cannot measure: it has Speechmeter 0\.0\.1"):
        find_machines(cluster, Requirements(cases=[make_case()]))


def test_two_machines_of_one_name_are_refused():
    with pytest.raises(DeviceError, match=r"2 machines .* named 'same'.*SPEECHMETER_HOST"):
        find_machines(SimulatedCluster(node("same"), node("same")), Requirements(cases=[make_case()]))


def test_a_machine_without_cores_only_drives():
    requirements = Requirements(cases=[make_case()])
    assert [lane.machine.host for lane in lanes(SimulatedCluster(node("laptop", cpus=0), node("b")), requirements)] == [
        "b"
    ]
    with pytest.raises(DeviceError, match="no machine of this cluster offers CPU cores"):
        find_machines(SimulatedCluster(node("laptop", cpus=0)), requirements)


def test_a_cpu_case_reserves_all_cores_of_its_machine_and_its_memory():
    requirements = Requirements(cases=[make_case()], limits=Limits(memory_gib=2))
    (lane,) = lanes(SimulatedCluster(node("a", cpus=16)), requirements)
    assert (lane.cpus, lane.cores, lane.gpus, lane.memory_bytes) == (16, tuple(range(16)), 0, 2 * 2**30)


@pytest.mark.parametrize(("cores", "expected"), [(1, 4), (4, 4), (5, 3), (16, 1)])
def test_as_many_gpus_work_side_by_side_as_there_are_cores_for(cores, expected):
    requirements = Requirements(cases=[make_case(device="cuda", cores=cores)], limits=Limits(memory_gib=2))
    found = lanes(SimulatedCluster(node("g", cpus=16, gpus=4)), requirements)
    used = [core for lane in found for core in lane.cores]
    assert len(found) == expected
    assert len(used) == len(set(used)) == sum(lane.cpus for lane in found) <= 16
    assert all(len(lane.cores) >= cores and lane.gpus == 1 and lane.memory_bytes == 0 for lane in found)


def test_kinds_hold_by_device():
    cases = [make_case(), make_case(device="cuda")]
    requirements = Requirements(cases=cases, kinds={"cpu": "laptop", "cuda": "A100"})
    nodes = [node("l", kinds=["laptop"]), node("g", cpus=8, gpus=1, kinds=["A100"]), node("t", gpus=1, kinds=["T4"])]
    assert [(lane.machine.host, lane.gpus) for lane in lanes(SimulatedCluster(*nodes), requirements)] == [
        ("l", 0),
        ("g", 1),
    ]


def test_offline_holds_on_every_machine(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    assert Requirements(cases=[]).setting()["environ"] == {}
    assert Requirements(cases=[], offline=True).setting()["environ"]["HF_HUB_OFFLINE"] == "1"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert Requirements(cases=[]).setting()["environ"] == {"HF_HUB_OFFLINE": "1"}
