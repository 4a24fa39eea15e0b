import pytest
from conftest import make_case
from simulated_cluster import SimulatedCluster, node

from speechmeter.core.errors import DeviceError
from speechmeter.core.types import Limits
from speechmeter.launch.lanes import cells_by_machine, lanes_of
from speechmeter.launch.muster import Wishes, muster


def lanes(cluster, wishes):
    crew = muster(cluster, wishes)
    return [lane for member in crew.members for lane in lanes_of(member, wishes, 0)]


@pytest.mark.parametrize(
    ("case", "wishes", "reason"),
    [
        (make_case(device="cuda"), {}, "a: has no GPU"),
        (make_case(cores=64), {}, "a: cores: 64 asked, 2 there"),
        (make_case(), {"limits": Limits(memory_gib=100)}, r"a: limits.memory_gib: 100 asked, 8.0 GiB there"),
        (make_case(), {"kinds": {"cpu": "jetson"}}, "a: is not of kind 'jetson'"),
    ],
)
def test_what_fits_no_machine_is_refused_at_once_with_the_reason_of_each(case, wishes, reason):
    cluster = SimulatedCluster(node("a"), node("b", kinds=["rack"]))
    with pytest.raises(DeviceError, match=reason) as caught:
        muster(cluster, Wishes(cases=[case], **wishes))
    assert "; b: " in str(caught.value)
    assert cluster.begun == []


def test_a_file_that_no_machine_has_is_a_refusal():
    case = make_case()
    cluster = SimulatedCluster(node("a"), refused={"a": {case.id: "there is no file x.flac"}})
    with pytest.raises(DeviceError, match=r"a: there is no file x\.flac"):
        muster(cluster, Wishes(cases=[case]))


def test_a_model_that_no_machine_has_is_left_out_and_the_rest_is_measured():
    here, absent = make_case("A"), make_case("B")
    cluster = SimulatedCluster(node("a"), absent={"a": {absent.id: "no torch"}})
    crew = muster(cluster, Wishes(cases=[here, absent]))
    assert [(skip.case.id, skip.reason) for skip in crew.absent] == [(absent.id, "no torch")]


def test_a_model_that_one_machine_has_is_measured_there():
    case = make_case("A")
    wishes = Wishes(cases=[case])
    cluster = SimulatedCluster(node("a"), node("b"), absent={"a": {case.id: "no torch"}})
    assert muster(cluster, wishes).absent == ()
    assert [lane.name for lane in lanes(cluster, wishes)] == ["b"]


def test_cases_of_one_cell_that_fit_different_machines_are_taken_apart():
    cases = (make_case("A"), make_case("B"), make_case("C"))
    wishes = Wishes(cases=cases)
    cluster = SimulatedCluster(node("a"), node("b"), absent={"a": {cases[1].id: "no torch"}})
    parted = cells_by_machine([cases], muster(cluster, wishes).members, wishes)
    assert [[case.subject.name for case in cell] for cell in parted] == [["A", "C"], ["B"]]


def test_nothing_that_any_machine_has_is_an_error():
    case = make_case()
    with pytest.raises(DeviceError, match="no torch"):
        muster(SimulatedCluster(node("a"), absent={"a": {case.id: "no torch"}}), Wishes(cases=[case]))


def test_another_version_on_a_machine_is_refused():
    cluster = SimulatedCluster(node("a"), node("old"), versions={"old": "0.0.1"})
    with pytest.raises(DeviceError, match=r"old cannot measure: it has Speechmeter 0\.0\.1"):
        muster(cluster, Wishes(cases=[make_case()]))


def test_two_machines_of_one_name_are_refused():
    with pytest.raises(DeviceError, match=r"2 machines .* called 'same'.*SPEECHMETER_HOST"):
        muster(SimulatedCluster(node("same"), node("same")), Wishes(cases=[make_case()]))


def test_a_machine_without_cores_only_drives():
    wishes = Wishes(cases=[make_case()])
    assert [lane.name for lane in lanes(SimulatedCluster(node("laptop", cpus=0), node("b")), wishes)] == ["b"]
    with pytest.raises(DeviceError, match="no machine of this cluster has cores"):
        muster(SimulatedCluster(node("laptop", cpus=0)), wishes)


def test_a_cpu_case_reserves_all_cores_of_its_machine_and_its_memory():
    wishes = Wishes(cases=[make_case()], limits=Limits(memory_gib=2))
    (lane,) = lanes(SimulatedCluster(node("a", cpus=16)), wishes)
    assert (lane.cpus, lane.cores, lane.gpus, lane.memory_bytes) == (16, tuple(range(16)), 0, 2 * 2**30)


@pytest.mark.parametrize(("cores", "expected"), [(1, 4), (4, 4), (5, 3), (16, 1)])
def test_as_many_gpus_work_side_by_side_as_there_are_cores_for(cores, expected):
    wishes = Wishes(cases=[make_case(device="cuda", cores=cores)], limits=Limits(memory_gib=2))
    found = lanes(SimulatedCluster(node("g", cpus=16, gpus=4)), wishes)
    used = [core for lane in found for core in lane.cores]
    assert len(found) == expected
    assert len(used) == len(set(used)) == sum(lane.cpus for lane in found) <= 16
    assert all(len(lane.cores) >= cores and lane.gpus == 1 and lane.memory_bytes == 0 for lane in found)


def test_kinds_hold_by_device():
    cases = [make_case(), make_case(device="cuda")]
    wishes = Wishes(cases=cases, kinds={"cpu": "laptop", "cuda": "A100"})
    nodes = [node("l", kinds=["laptop"]), node("g", cpus=8, gpus=1, kinds=["A100"]), node("t", gpus=1, kinds=["T4"])]
    assert [(lane.name, lane.gpus) for lane in lanes(SimulatedCluster(*nodes), wishes)] == [("l", 0), ("g", 1)]


def test_offline_holds_on_every_machine(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    assert Wishes(cases=[]).setting()["environ"] == {}
    assert Wishes(cases=[], offline=True).setting()["environ"]["HF_HUB_OFFLINE"] == "1"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert Wishes(cases=[]).setting()["environ"] == {"HF_HUB_OFFLINE": "1"}
