"""Cascades by their parts: times and FLOPs add, memory is the largest, and what follows from tokens and sound."""

import random
from dataclasses import replace
from statistics import median

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.derived import round_value, why_absent
from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.readings import part_names
from speechmeter.core import metrics
from speechmeter.core.types import BATCHES, Measurement

MIB = 2**20


def of(metric, *values, scope="total", **notes):
    return Measurement.of(metric, list(values), scope=scope, notes=notes)


CASCADE = make_record(
    make_case(),
    of(metrics.AUDIO_SECONDS, 4.0),
    of(metrics.LATENCY, 0.6, 0.7),
    of(metrics.LATENCY, 0.1, 0.1, scope="stage:asr.features", clocked=True),
    of(metrics.LATENCY, 9.0, 9.0, scope="stage:asr.copy", clocked=False),
    of(metrics.LATENCY, 0.2, 0.3, scope="stage:asr.model", clocked=True),
    of(metrics.LATENCY, 5.0, 5.0, scope="stage:asr→tts", clocked=False),
    of(metrics.LATENCY, 0.3, 0.3, scope="stage:tts.model", clocked=True),
    of(metrics.FLOPS, 10.0, scope="stage:asr.model"),
    of(metrics.FLOPS, 1.0, scope="stage:asr.features"),
    of(metrics.FLOPS, 7.0, scope="stage:tts.model"),
    of(metrics.MEMORY_CPU_PEAK, 50 * MIB, scope="stage:asr.features"),
    of(metrics.MEMORY_CPU_PEAK, 30 * MIB, scope="stage:asr.model"),
    of(metrics.MEMORY_CPU_PEAK, 90 * MIB, scope="stage:tts.model"),
    of(metrics.MEMORY_CPU_PEAK, 95 * MIB),
    of(metrics.MEMORY_WEIGHTS, 100 * MIB, scope="stage:asr.model"),
    of(metrics.MEMORY_WEIGHTS, 20 * MIB, scope="stage:tts.model"),
    of(metrics.MEMORY_WEIGHTS, 120 * MIB),
    of(metrics.TOKENS, 20.0, scope="stage:asr.model"),
    of(metrics.TOKENS, 20.0),
    of(metrics.AUDIO_MADE, 2.0, scope="stage:tts.model"),
    of(metrics.AUDIO_MADE, 2.0),
)


def value(metric, scope="total", record=CASCADE):
    found = round_value(record, metric, scope)
    return None if found is None else found[0]


def test_parts_are_found_in_the_order_of_the_chain():
    assert part_names([CASCADE]) == ["asr", "tts"]


def test_times_and_flops_of_a_part_add_over_its_clocked_stages():
    assert value(metrics.LATENCY, "part:asr") == pytest.approx(0.35)
    assert value(metrics.FLOPS, "part:asr") == 11.0
    assert value(metrics.LATENCY, "part:tts") == pytest.approx(0.3)


def test_memory_is_weights_and_growth_of_the_part_that_needs_most():
    assert value(metrics.MEMORY_NEEDED, "part:asr") == 150 * MIB
    assert value(metrics.MEMORY_NEEDED, "part:tts") == 110 * MIB
    assert value(metrics.MEMORY_NEEDED) == 150 * MIB


def noisy_round(number, calls, batches):
    """A cascade on a busy machine: each model is slow by turns, now and then by ten times."""
    draw = random.Random(number)

    def times(usual_s):
        return [usual_s * draw.lognormvariate(0, 0.5) * draw.choice([1, 1, 1, 10]) for _ in range(calls)]

    parts = {"s2u.model": times(79.2), "vocoder.model": times(7.6), "vocoder.decode": times(0.01)}
    total = [sum(call) for call in zip(*parts.values(), strict=True)]
    turns = {BATCHES: batches} if batches > 1 else {}
    rows = [of(metrics.LATENCY, *row, scope=f"stage:{name}", clocked=True, **turns) for name, row in parts.items()]
    return make_record(make_case(), of(metrics.LATENCY, *total, **turns), *rows, round=number)


@pytest.mark.parametrize(("rounds", "calls", "batches"), [(1, 1, 1), (1, 7, 1), (5, 1, 1), (3, 20, 5), (4, 9, 3)])
def test_times_of_models_add_up_to_the_total_however_noisy_the_calls_are(rounds, calls, batches):
    records = [noisy_round(number, calls, batches) for number in range(rounds)]
    whole = estimate(records, metrics.LATENCY).value
    models = [estimate(records, metrics.LATENCY, f"part:{role}").value for role in ("s2u", "vocoder")]
    stages = [estimate(records, metrics.LATENCY, m.scope).value for m in records[0].measurements if m.scope != "total"]
    assert sum(models) == pytest.approx(whole, rel=1e-12)
    assert sum(stages) == pytest.approx(whole, rel=1e-12)
    if calls > 1:  # medians of rows do not: this is what was printed once
        rows = [median(m.values) for m in records[0].measurements]
        assert abs(sum(rows[1:]) - rows[0]) > 0.01 * rows[0]


def test_a_plain_model_needs_its_weights_and_its_growth():
    plain = make_record(make_case(), of(metrics.MEMORY_WEIGHTS, 10.0), of(metrics.MEMORY_CUDA_GROWTH, 5.0))
    assert value(metrics.MEMORY_NEEDED, record=plain) == 15.0


def test_several_batches_need_what_the_one_that_grows_most_needs():
    growth = of(metrics.MEMORY_CPU_PEAK, 0.1, 0.1, 0.1, 4.0, 0.1, 0.1, 0.1, 4.2, **{BATCHES: 4})
    dataset = make_record(make_case(), of(metrics.MEMORY_WEIGHTS, 0.1), growth)
    assert value(metrics.MEMORY_NEEDED, record=dataset) == pytest.approx(0.1 + 4.1)
    assert value(metrics.MEMORY_CPU_PEAK, record=dataset) == pytest.approx((0.1 * 3 + 4.1) / 4)


def test_memory_without_weights_has_their_reason():
    plain = make_record(
        make_case(),
        Measurement.absent(metrics.MEMORY_WEIGHTS, "the subject names no torch module"),
        of(metrics.MEMORY_CPU_PEAK, 5.0),
    )
    assert value(metrics.MEMORY_NEEDED, record=plain) is None
    assert why_absent(plain, metrics.MEMORY_NEEDED) == "the subject names no torch module"


def test_a_memory_pass_that_never_ended_says_nothing_of_the_weights():
    timed = make_record(
        make_case(),
        of(metrics.LATENCY, 0.5),
        of(metrics.LATENCY, 0.5, scope="stage:asr.model"),
        status="timeout",
        reason="memory pass: over the limit of 60 s",
    )
    assert why_absent(timed, metrics.MEMORY_NEEDED) is None
    weighed = replace(
        timed, measurements=(*timed.measurements, of(metrics.MEMORY_WEIGHTS, 9.0, scope="stage:mt.model"))
    )
    assert (
        why_absent(weighed, metrics.MEMORY_NEEDED)
        == "asr exposes no torch module, so the size of its weights is unknown"
    )


def test_a_synthesiser_is_held_against_the_sound_it_made_and_the_rest_against_what_was_fed():
    assert value(metrics.RTF, "part:tts") == pytest.approx(0.3 / 2)
    assert value(metrics.RTF, "part:asr") == pytest.approx(0.35 / 4)
    assert value(metrics.RTF) == pytest.approx(0.65 / 4)
    alone = make_record(make_case(), of(metrics.LATENCY, 0.5), of(metrics.AUDIO_MADE, 2.0))
    assert value(metrics.RTF, record=alone) == pytest.approx(0.25)


def test_time_per_token():
    assert value(metrics.LATENCY_PER_TOKEN, "part:asr") == pytest.approx(0.35 / 20)


def test_a_figure_of_several_batches_is_the_mean_over_them_of_each_ones_median():
    record = make_record(make_case(), of(metrics.LATENCY, 1.0, 10.0, 1.0, 12.0, 4.0, 11.0, **{BATCHES: 2}))
    assert value(metrics.LATENCY, record=record) == pytest.approx((1.0 + 11.0) / 2)
