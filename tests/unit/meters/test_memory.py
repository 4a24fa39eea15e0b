"""The memory meter on chains: stages apart, weights apart, and what it tells when a better way is missing."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import make_case
from fresh_memory import fresh_pages

from speechmeter.core import metrics
from speechmeter.core.protocol import SearchProtocol
from speechmeter.core.protocols import Prepared
from speechmeter.core.types import Batch, Measurement, Stage
from speechmeter.engine.measure import measure
from speechmeter.meters import memory
from speechmeter.meters.memory import MemoryMeter, batches_to_read
from speechmeter.meters.resident import HighWaterMark, MaxResident, Sampling

MIB = 2**20
LARGE_MIB = 48
real_mark = pytest.mark.skipif(not HighWaterMark().usable(), reason="the kernel's mark cannot be reset here")


def block(mib):
    return fresh_pages(mib) if mib else b""


def resident_bytes():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def readings(*stages, probes=None, modules=None, **changes):
    class Subject:
        def prepare(self, case, device):
            return Prepared(stages=stages, modules=modules or {})

        def batches(self, case):
            yield Batch(data=None, items=1)

    outcome = measure(make_case(**changes), Subject(), Subject(), [MemoryMeter(probes)])
    assert outcome.status == "ok", outcome.reason
    return {(m.metric, m.scope): m for m in outcome.measurements}


def passing(mib, kept):
    """A stage that fills `mib` and hands on a part of it."""

    def fn(state):
        filled = block(mib)
        return block(kept) if filled else None

    return fn


@real_mark
def test_the_total_holds_what_the_first_call_keeps_and_what_a_call_takes():
    kept, resident = [], []

    def call(state):
        if not kept:
            kept.append(block(2 * LARGE_MIB))
        taken = block(LARGE_MIB)
        resident.append(resident_bytes())  # the truth, read while both blocks are there
        del taken

    found = readings(Stage(name="model", fn=call))
    total, growth = (found[f"memory_cpu_{name}.v1", "total"].values for name in ("total", "peak"))
    assert len(total) == len(growth) == 3
    for whole, grown, truth in zip(total, growth, resident[-3:], strict=True):
        assert abs(grown - LARGE_MIB * MIB) < 2 * MIB
        assert abs(whole - truth) < 2 * MIB
    # Other tests ran in this process, and what they left may be freed between loading and the call.
    loaded = found["memory_cpu_load.v1", "total"].values[0]
    assert abs(total[0] - loaded - 3 * LARGE_MIB * MIB) < LARGE_MIB / 2 * MIB


@real_mark
def test_each_stage_is_read_over_what_was_there_before_it():
    found = readings(
        Stage(name="features", fn=passing(4 * LARGE_MIB, kept=2 * LARGE_MIB)),
        Stage(name="model", fn=passing(LARGE_MIB, kept=0)),
    )
    peaks = {scope: m.values for (metric, scope), m in found.items() if metric == "memory_cpu_peak.v1"}
    assert set(peaks) == {"total", "stage:features", "stage:model"}
    for name, truth_mib in (("total", 6), ("stage:features", 6), ("stage:model", 1)):
        assert len(peaks[name]) == 3
        for value in peaks[name]:
            assert abs(value - truth_mib * LARGE_MIB * MIB) < 2 * MIB, name


@real_mark
def test_the_total_and_the_stages_are_read_in_the_same_calls():
    calls = []
    found = readings(Stage(name="features", fn=calls.append), Stage(name="model", fn=lambda state: None))
    assert len(calls) == 1 + 3  # the first call, and those that are read
    assert len(found["memory_cpu_peak.v1", "stage:features"].values) == 3
    assert len(found["memory_cpu_total.v1", "total"].values) == 3


@real_mark
def test_an_iterators_memory_belongs_to_its_stage():
    def stream(state):
        yield block(LARGE_MIB)
        yield block(LARGE_MIB)

    found = readings(Stage(name="model", fn=stream), Stage(name="decode", fn=len))
    assert all(v > 1.9 * LARGE_MIB * MIB for v in found["memory_cpu_peak.v1", "stage:model"].values)
    assert all(v < 2 * MIB for v in found["memory_cpu_peak.v1", "stage:decode"].values)


def test_a_chain_of_one_has_no_stage_rows():
    found = readings(Stage(name="model", fn=lambda batch: None))
    assert [scope for metric, scope in found if metric == "memory_cpu_peak.v1"] == ["total"]


def stable(peak_mib, resident_mib):
    return MaxResident(lambda: peak_mib * MIB, resident=lambda: resident_mib * MIB)


def test_without_the_mark_the_total_comes_from_rusage_and_stages_from_sampling():
    chain = [Stage(name=name, fn=lambda state: None) for name in ("features", "model")]
    found = readings(*chain, probes=[stable(50, 30), Sampling(lambda: 30 * MIB)])
    total = found["memory_cpu_peak.v1", "total"]
    assert (total.source, set(total.values)) == ("ru_maxrss", {20 * MIB})
    assert any(note.startswith("upper bound") for note in total.notes["notes"])
    stage = found["memory_cpu_peak.v1", "stage:model"]
    assert (stage.source, set(stage.values)) == ("sampling", {0})
    assert any(note.startswith("lower bound") for note in stage.notes["notes"])


def test_what_cannot_be_reset_gives_no_stages_and_says_why():
    chain = [Stage(name=name, fn=lambda state: None) for name in ("features", "model")]
    found = readings(*chain, probes=[stable(50, 30)])
    assert "ru_maxrss" in found["memory_cpu_peak.v1", "stage:model"].unavailable


def test_it_is_unavailable_only_where_nothing_can_be_read():
    assert MemoryMeter([]).unavailable(make_case()) is not None
    assert MemoryMeter([]).unavailable(make_case(device="cuda")) is None
    assert MemoryMeter([stable(1, 1)]).unavailable(make_case()) is None


def test_another_allocator_is_named_and_warned_of(monkeypatch):
    monkeypatch.setattr(memory, "allocator_name", lambda: "jemalloc")
    found = readings(Stage(name="model", fn=lambda batch: None))
    told = found["memory_cpu_peak.v1", "total"].notes["notes"]
    assert any("jemalloc" in note and "too low" in note for note in told)


@real_mark
def test_glibc_needs_no_warning(monkeypatch):
    monkeypatch.setattr(memory, "allocator_name", lambda: "glibc")
    found = readings(Stage(name="model", fn=lambda batch: None))
    assert "notes" not in found["memory_cpu_peak.v1", "total"].notes


def test_weights_of_a_subject_without_modules_are_unavailable():
    found = readings(Stage(name="model", fn=lambda batch: None))
    assert "no torch module" in found["memory_weights.v1", "total"].unavailable


def test_a_trial_of_a_search_is_read_in_one_call_and_in_total_alone():
    calls = []
    stages = (Stage(name="features", fn=calls.append), Stage(name="model", fn=lambda state: None))
    found = readings(*stages, probes=[Sampling()], protocol=SearchProtocol(find="max-batch"))
    assert len(calls) == 2  # the first call, and the one that is read
    assert [scope for metric, scope in found if metric == "memory_cpu_peak.v1"] == ["total"]
    assert len(found["memory_cpu_peak.v1", "total"].values) == 1


def shapes(*cells):
    """Batches that say how many cells they fill."""
    return [Batch(data=None, items=1, facts=(Measurement.of(metrics.CELLS_PADDED, [float(n)]),)) for n in cells]


def filled(batches):
    return [batch.facts[0].values[0] for batch in batches]


def test_of_many_batches_of_shapes_a_few_are_read_the_smallest_and_the_largest_among_them():
    session = SimpleNamespace(case=make_case(), batches=shapes(5, 9, 1, 7, 3, 8, 2, 6, 4, 10))
    chosen, notes = batches_to_read(session, 3)
    assert filled(chosen) == [1, 4, 7, 10]
    assert notes["batches"] == 4
    assert notes["notes"] == ["memory was read for 4 of 10 batches, from the smallest to the largest"]


def test_a_few_batches_and_those_of_unknown_size_are_all_read():
    few = SimpleNamespace(case=make_case(), batches=shapes(3, 1, 2))
    assert filled(batches_to_read(few, 3)[0]) == [3, 1, 2]
    unknown = SimpleNamespace(case=make_case(), batches=[*shapes(1, 2, 3, 4, 5), Batch(data=None, items=1)])
    assert batches_to_read(unknown, 3) == (unknown.batches, {"batches": 6})
    one = SimpleNamespace(case=make_case(), batches=shapes(3))
    assert filled(batches_to_read(one, 3)[0]) == [3, 3, 3]
