"""Which hosts of a run are machines: a driver that only left cases out is none."""

from conftest import make_case, make_record

from speechmeter.core.hosts import HOST, hosts_apart

LEFT_OUT = [
    make_record(make_case("A"), status="skipped", host="laptop"),
    make_record(make_case("B"), status="unavailable", host="laptop"),
]


def measured(*hosts):
    return [make_record(make_case("C", seconds=float(n + 1)), host=host) for n, host in enumerate(hosts)]


def test_what_a_driver_left_out_is_of_the_one_machine():
    found = hosts_apart([*LEFT_OUT, *measured("pi")])
    assert [record.host for record in found] == ["pi"] * 3
    assert not any(HOST in record.case.axes for record in found)


def test_a_driver_beside_several_machines_is_none_of_them():
    found = hosts_apart([*LEFT_OUT, *measured("pi", "orin")])
    assert [record.case.axes.get(HOST) for record in found] == [None, None, "pi", "orin"]


def test_a_machine_that_could_measure_nothing_stays_apart_from_one_that_could():
    records = [make_record(make_case(), status="unavailable", host="pi"), make_record(make_case(), host="orin")]
    assert [record.case.axes[HOST] for record in hosts_apart(records)] == ["pi", "orin"]


def test_machines_that_measured_nothing_at_all_keep_their_names():
    records = [make_record(make_case(name), status="unavailable", host=name) for name in ("pi", "orin")]
    assert [record.case.axes[HOST] for record in hosts_apart(records)] == ["pi", "orin"]
