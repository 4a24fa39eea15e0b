"""Peak memory against allocations of known size, through the command and its fresh processes."""

import json
import platform

import pytest

from speechmeter.meters.resident import HighWaterMark

pytest.importorskip("torch", reason="the allocations are tensors")
if not HighWaterMark().usable():
    pytest.skip("the kernel's high-water mark cannot be reset here", allow_module_level=True)

MIB = 2**20
SLACK = 2 * MIB


@pytest.fixture
def measured(cli, workshop):
    """`measured(factory, …)`: the records of a run of that subject, readings by metric and scope."""

    def run(factory, *args, meters="memory", **environ):
        model = f"python:memory_fakes.py:{factory}"
        done = cli("run", "--model", model, "--quick", "--meters", meters, "-o", "run", *args, "--force", **environ)
        assert done.returncode == 0, done.stderr
        records = [json.loads(line) for line in (workshop / "run/records.jsonl").read_text().splitlines()]
        assert [record["status"] for record in records] == ["ok"] * len(records), records[0]["reason"]
        return records

    return run


def readings(record, metric="memory_cpu_peak.v1", scope="total"):
    (found,) = (m for m in record["measurements"] if (m["metric"], m["scope"]) == (metric, scope))
    return found["values"]


def near(values, truth_mib):
    return all(abs(value - truth_mib * MIB) < SLACK for value in values)


@pytest.mark.parametrize(("factory", "truth_mib"), [("gibibyte", 1024), ("ten", 40)])
def test_a_known_allocation_is_read_within_two_mebibytes(measured, factory, truth_mib):
    (record,) = measured(factory, "--set", "budget_s=600")  # a busy machine would end it after one reading
    values = readings(record)
    assert len(values) == 3
    assert near(values, truth_mib), values
    whole, loaded = (readings(record, f"memory_cpu_{name}.v1") for name in ("total", "load"))
    assert min(whole) > max(*loaded, truth_mib * MIB)


def test_a_short_spike_is_read_and_the_same_case_twice_agrees(measured):
    first, second = (readings(measured("spike")[0]) for _ in range(2))
    assert near(first, 64), first
    assert max(*first, *second) - min(*first, *second) < SLACK


def test_a_small_case_after_a_larger_one_reads_its_own_size(measured):
    cells = {r["case"]["axes"]["batch"]: readings(r) for r in measured("by_batch", "--batch", "4,1")}
    assert near(cells[4], 4 * 48), cells
    assert near(cells[1], 48), cells


def test_calls_that_alternate_in_one_process_each_read_their_own_size(measured):
    small, large, small_again = readings(measured("alternating")[0])
    assert near([small, small_again], 16), (small, small_again)
    assert near([large], 128), large


def test_stages_and_weights_are_read_apart(measured):
    (record,) = measured("two_stages")
    assert near(readings(record), 96)
    assert near(readings(record, scope="stage:wide"), 96)
    assert near(readings(record, scope="stage:narrow"), 8)
    assert readings(record, "memory_weights.v1") == [5 * MIB]
    assert readings(record, "memory_weights.v1", "stage:wide") == [4 * MIB]
    assert readings(record, "memory_weights.v1", "stage:narrow") == [1 * MIB]


@pytest.mark.parametrize("factory", ["child", "orphan"])
def test_what_a_process_of_the_model_holds_and_takes_is_read_and_told_apart(measured, factory):
    (record,) = measured(factory)
    assert near(readings(record), 64)
    whole, loaded, inside = (readings(record, f"memory_cpu_{name}.v1") for name in ("total", "load", "started"))
    assert all(264 * MIB < one < 290 * MIB for one in inside), inside
    assert min(whole) > max(inside) + 10 * MIB  # and the measuring process itself
    assert loaded[0] > 200 * MIB
    (found,) = (m for m in record["measurements"] if m["metric"] == "memory_cpu_total.v1")
    assert found["source"] == "VmHWM, Pss of started processes"
    assert "processes that the model started" in " ".join(found["notes"]["notes"])
    assert not [line for line in record["warnings"] if "left running" in line]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="asks glibc what it does")
@pytest.mark.parametrize("shell", [{}, {"MALLOC_MMAP_THRESHOLD_": "4096", "MALLOC_TRIM_THRESHOLD_": "4096"}])
def test_only_the_memory_process_has_the_thresholds(measured, workshop, shell):
    measured("witness", meters="latency,memory", **shell)
    main, memory = map(json.loads, (workshop / "seen.jsonl").read_text().splitlines())
    assert main == {"variables": {}, "maps_100_kib": False}
    assert memory == {
        "variables": {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"},
        "maps_100_kib": True,
    }
