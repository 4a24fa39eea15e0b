"""What is shown side by side adds up, on a noisy machine too: every table of a real run and of random rounds.

The truth is computed here from raw values alone: the mean over all calls of all rounds, a missing row counting 0.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import pytest
from conftest import make_case, make_record
from noisy_profiles import LABELS, noisy_rounds
from scipy import stats

from speechmeter.analysis.compare import verdict
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.metric_names import Figures
from speechmeter.analysis.module_tree import class_lines, row_lines, tree
from speechmeter.analysis.readings import costliest_operators
from speechmeter.core import metrics
from speechmeter.core.types import Measurement
from speechmeter.store.run_dir import RunDir

EXAMPLE = Path(__file__).parents[3] / "examples/runs/h200-conformer-modules"
WAYS = ("forward", "backward", "recompute")
CLOSE = {"rel": 1e-9, "abs": 1e-12}


def cases():
    found = {
        "noisy": noisy_rounds(),
        "noisy, one round": noisy_rounds(1, seed=2),
        "on a CPU": noisy_rounds(3, 7, "cpu"),
    }
    for record in RunDir.existing(EXAMPLE).records():
        found[f"h200, amp {record.case.axes['amp']}"] = [record]
    return found


CASES = cases()
each_case = pytest.mark.parametrize("records", CASES.values(), ids=CASES)
each_time = pytest.mark.parametrize("time", [metrics.TIME_MODULE, metrics.TIME_GPU], ids=lambda metric: metric.name)


def value(records, metric, scope="total"):
    found = estimate(records, metric, scope)
    return 0.0 if found is None else found.value


def stored(records, metric, prefix):
    scopes = dict.fromkeys(m.scope for r in records for m in r.measurements if m.metric == metric.id)
    return [scope for scope in scopes if scope.startswith(prefix)]


@each_case
@each_time
def test_all_rows_add_up_to_the_call(records, time):
    rows = stored(records, time, ("module:", "label:", "stage:", "unattributed"))
    whole = sum(value(records, time, scope) for scope in rows)
    assert value(records, time, "everything") == pytest.approx(whole, **CLOSE)
    assert value(records, time) == pytest.approx(whole, **CLOSE)


@each_case
@each_time
def test_directions_add_up_to_every_row(records, time):
    lines = [line.scope for line in tree(records)]
    scopes = ["everything", *lines, *(scope.replace("within:", "own:") for scope in lines)]
    scopes += [line.scope for line in (*class_lines(records), *row_lines(records))]
    for scope in scopes:
        parts = sum(value(records, time, f"{scope}@{way}") for way in WAYS)
        assert value(records, time, scope) == pytest.approx(parts, **CLOSE), scope


def labels_inside(records, time, pattern):
    """Mean time of labels that were opened in these modules and in none inside them, from the notes."""
    parts = pattern.split(".")
    total = 0.0
    for record in records:
        for m in (m for m in record.measurements if m.metric == time.id):
            for path, apart in m.notes.get("inside", {}).items():
                steps = path.split(".")
                if len(steps) == len(parts) and all(b in ("*", a) for a, b in zip(steps, parts, strict=True)):
                    total += sum(map(sum, apart.values())) / len(m.values)
    return total / len(records)


@each_case
@each_time
def test_a_module_is_its_own_and_what_is_inside_it(records, time):
    lines = [line for line in tree(records) if line.pattern]
    assert lines
    for line in lines:
        inside = [one for one in lines if line.pattern in one.above and one.depth == line.depth + 1]
        parts = [value(records, time, line.scope.replace("within:", "own:"))]
        parts += [value(records, time, one.scope) for one in inside]
        parts.append(labels_inside(records, time, line.pattern))
        assert value(records, time, line.scope) == pytest.approx(sum(parts), **CLOSE), line.pattern


@each_case
def test_a_share_is_the_rows_time_over_that_of_the_call(records):
    on_gpu = bool(stored(records, metrics.TIME_GPU, "module:"))
    time = metrics.TIME_GPU if on_gpu else metrics.TIME_MODULE
    call = value(records, time, "everything")
    scopes = [line.scope for line in (*tree(records), *class_lines(records), *row_lines(records))]
    scopes += [f"{scope}@{way}" for scope in (*scopes, "everything") for way in WAYS if not scope.startswith("row:")]
    for scope in scopes:
        assert value(records, metrics.MODULE_SHARE, scope) == pytest.approx(
            100 * value(records, time, scope) / call, **CLOSE
        ), scope
    classes = sum(value(records, metrics.MODULE_SHARE, line.scope) for line in class_lines(records))
    others = sum(value(records, metrics.MODULE_SHARE, s) for s in stored(records, time, ("label", "stage", "unattr")))
    assert classes + others == pytest.approx(100, **CLOSE)


@each_case
def test_rows_of_a_plan_have_shares_of_their_direction_that_add_up(records):
    every = row_lines(records)
    assert sum(value(records, metrics.MODULE_SHARE, line.scope) for line in every) == pytest.approx(100, **CLOSE)
    lines = [line for line in every if line.scope.startswith("row:")]
    assert lines
    time = metrics.TIME_GPU
    for way in WAYS:
        times = [value(records, time, f"{line.scope}@{way}") for line in lines]
        for line, seconds in zip(lines, times, strict=True):
            if seconds:
                share = value(records, metrics.MODULE_SHARE, f"{line.scope}@{way}")
                assert share == pytest.approx(100 * seconds / sum(times), **CLOSE)


NOISY = {name: records for name, records in CASES.items() if not name.startswith("h200")}
each_noisy = pytest.mark.parametrize("records", NOISY.values(), ids=NOISY)


@each_noisy
def test_operators_and_kinds_add_up_and_so_do_their_shares(records):
    time, share = metrics.TIME_OPERATOR, metrics.OPERATOR_SHARE
    total = value(records, time)
    for prefix in ("op:", "kind:"):
        scopes = stored(records, time, prefix)
        assert sum(value(records, time, scope) for scope in scopes) == pytest.approx(total, **CLOSE)
        assert sum(value(records, share, scope) for scope in scopes) == pytest.approx(1, **CLOSE)
    for scope in (*stored(records, time, ("op:", "kind:")), *costliest_operators(records, 99)):
        assert value(records, share, scope) == pytest.approx(value(records, time, scope) / total, **CLOSE)


@each_noisy
def test_kinds_of_work_add_up_to_the_call_and_the_idle_gpu_is_its_share(records):
    kinds = {
        kind: value(records, metrics.TIME_SPLIT, f"split:{kind}")
        for kind in ("kernel", "memcpy", "runtime", "cpu", "idle")
    }
    waiting = sum(kinds[kind] for kind in ("runtime", "cpu", "idle"))
    assert value(records, metrics.GPU_IDLE) == pytest.approx(waiting / sum(kinds.values()), **CLOSE)
    busy = value(records, metrics.TIME_BUSY, "busy:cpu")
    assert value(records, metrics.RTF_CPU) == pytest.approx(busy / 3.0, **CLOSE)  # 2 s and 4 s in turn


@each_noisy
def test_stages_inside_the_clock_add_up_to_the_latency(records):
    stages = [value(records, metrics.LATENCY, f"stage:{name}") for name in ("features", "model", "decode")]
    assert sum(stages) == pytest.approx(value(records, metrics.LATENCY), **CLOSE)


def test_the_figures_of_a_query_are_those_of_the_tables():
    records = noisy_rounds()
    found = {(figure.metric.id, scope): figure for scope, figure in Figures().of(records)}
    rows = [figure.value for (metric, scope), figure in found.items()
            if metric == "time_gpu.v1" and scope != "total"]  # fmt: skip
    assert sum(rows) == pytest.approx(found["time_gpu.v1", "total"].value, **CLOSE)
    assert found["time_gpu.v1", "total"].statistic == "mean"
    stages = sum(found["latency.v1", f"stage:{name}"].value for name in ("features", "model", "decode"))
    assert stages == pytest.approx(found["latency.v1", "total"].value, **CLOSE)


def test_a_mean_is_over_all_calls_and_a_row_that_a_round_does_not_have_counts_nothing():
    records = noisy_rounds()
    rows = [row for record in records if (row := record.find("time_gpu.v1", "module:net.rare")) is not None]
    calls = [seconds for row in rows for seconds in row.values]
    found = estimate(records, metrics.TIME_GPU, "module:net.rare")
    assert found.rounds == 5
    assert found.value == pytest.approx(sum(calls) / 20)


def test_the_interval_of_a_mean_is_t_over_the_rounds_means():
    records = noisy_rounds()
    means = [fmean(r.find("time_split.v2", "split:cpu").values) for r in records]
    found = estimate(records, metrics.TIME_SPLIT, "split:cpu")
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.95, 4, loc=fmean(means), scale=stats.sem(means)))


def test_the_interval_of_a_share_is_linearised():
    draw = random.Random(3)
    rounds = [(draw.uniform(1, 2), draw.uniform(3, 4)) for _ in range(6)]
    records = [
        make_record(
            make_case(),
            Measurement.of(metrics.TIME_OPERATOR, [above + below], notes={"calls": 1}),
            Measurement.of(metrics.TIME_OPERATOR, [above], scope="op:aten::mm"),
            Measurement.of(metrics.TIME_OPERATOR, [below], scope="op:aten::relu"),
            round=number,
        )
        for number, (above, below) in enumerate(rounds)
    ]
    found = estimate(records, metrics.OPERATOR_SHARE, "op:aten::mm")
    whole = fmean(a + b for a, b in rounds)
    ratio = fmean(a for a, _ in rounds) / whole
    off = [(a - ratio * (a + b)) / whole for a, b in rounds]
    half = stats.t.ppf(0.975, 5) * stdev(off) / 6**0.5
    assert (found.value, found.low, found.high) == pytest.approx((ratio, ratio - half, ratio + half))


def test_rows_that_an_earlier_record_may_have_left_out_are_not_taken_for_nothing():
    def earlier(number, *rows):
        total = Measurement.of(metrics.TIME_OPERATOR, [1.0])
        made = [Measurement.of(metrics.TIME_OPERATOR, [0.5], scope=scope) for scope in rows]
        return make_record(make_case(), total, *made, round=number)

    records = [earlier(0, "op:aten::mm", "op:aten::mm@net"), earlier(1, "op:aten::mm")]
    assert value(records, metrics.TIME_OPERATOR, "op:aten::mm") == 0.5
    assert estimate(records, metrics.TIME_OPERATOR, "op:aten::mm@net") is None


def test_an_operator_in_a_module_is_shown_where_every_round_has_it():
    records = noisy_rounds()
    scopes = costliest_operators(records, 99)
    assert {"op:aten::mm@net.front", "op:aten::relu@net.blocks.0"} <= set(scopes)
    assert not any("aten::sort" in scope for scope in scopes)  # only every other round has it
    assert estimate(records, metrics.TIME_OPERATOR, "op:aten::sort@net.front") is None
    assert estimate(records, metrics.TIME_OPERATOR, "op:aten::sort").rounds == 5


def test_compared_modules_show_the_ratio_of_the_times_beside_it():
    base, new = noisy_rounds(seed=1), noisy_rounds(seed=5)
    for together in (True, False):
        for line in tree(base):
            judged = verdict(base, new, metrics.TIME_GPU, 0.05, together=together, scope=line.scope)
            assert judged.ratio == pytest.approx(judged.new.value / judged.base.value), line.scope
            assert judged.low < judged.ratio < judged.high


def test_one_disturbed_call_does_not_move_the_stages_of_the_others():
    calm = [[0.010, 0.090]] * 9
    stages = [*calm, [0.500, 0.090]]
    made = [
        Measurement.of(metrics.LATENCY, [sum(call) for call in stages]),
        Measurement.of(metrics.LATENCY, [call[0] for call in stages], scope="stage:features"),
        Measurement.of(metrics.LATENCY, [call[1] for call in stages], scope="stage:model"),
    ]
    records = [make_record(make_case(), *made)]
    assert value(records, metrics.LATENCY, "stage:features") == pytest.approx(0.010)
    assert value(records, metrics.LATENCY, "stage:model") == pytest.approx(0.090)


def test_a_stage_outside_the_clock_keeps_its_own_figure():
    records = noisy_rounds(1)
    own = sorted(records[0].find("latency.v1", "stage:copy").values)
    assert value(records, metrics.LATENCY, "stage:copy") == pytest.approx((own[1] + own[2]) / 2)


def test_a_line_of_the_tree_is_there_for_what_only_a_later_round_has():
    records = [noisy_rounds()[1], noisy_rounds()[0]]
    names = [line.pattern or line.scope for line in tree(records)]
    assert "net.rare" in names
    assert set(LABELS) <= set(names)


def test_a_total_of_another_pass_is_not_mixed_with_the_rows():
    one = noisy_rounds(1)[0]
    assert one.find("time_gpu.v1").values[0] == 9.0
    rows = [m for m in one.measurements if m.metric == "time_gpu.v1" and m.scope != "total"]
    assert value([one], metrics.TIME_GPU) == pytest.approx(sum(fmean(m.values) for m in rows))
    alone = replace(one, measurements=tuple(m for m in one.measurements if m.scope == "total"))
    assert value([alone], metrics.TIME_GPU) == 9.0  # without modules it is what the operators' meter read
