"""Which metric a word means: one answer for every command and every function that takes a metric's name."""

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.metric_names import METHODS, TABLES, find_metric, metric_named, metric_names
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.types import Measurement
from speechmeter.report import choose


def held(*found, **axes):
    return [make_record(make_case(**axes), *(Measurement.of(metric, [1.0]) for metric in found))]


@pytest.mark.parametrize(
    ("name", "records", "metric"),
    [
        ("latency", (), metrics.LATENCY),
        ("latency.v1", (), metrics.LATENCY),
        ("memory", (), metrics.MEMORY_CPU_TOTAL),
        ("memory", held(metrics.MEMORY_CPU_TOTAL, metrics.MEMORY_CPU_PEAK), metrics.MEMORY_CPU_TOTAL),
        ("memory", held(metrics.MEMORY_CPU_PEAK), metrics.MEMORY_CPU_PEAK),
        ("memory", held(metrics.LATENCY, device="cuda:1"), metrics.MEMORY_CUDA_ALLOCATED),
        ("energy", held(metrics.LATENCY, device="cuda"), metrics.ENERGY_GPU),
        ("energy", held(metrics.ENERGY_CPU), metrics.ENERGY_CPU),
        ("energy", held(metrics.ENERGY_SYSTEM), metrics.ENERGY_SYSTEM),
        ("quality", (), metrics.WER),
    ],
)
def test_a_word_means_the_metric_that_suits_the_records(name, records, metric):
    assert metric_named(name, records) == metric


def test_quality_is_the_score_that_the_records_have():
    counts = (metrics.CHARACTER_ERRORS, metrics.REFERENCE_CHARACTERS)
    record = make_record(make_case(), *(Measurement.of(count, [1.0, 2.0]) for count in counts))
    assert metric_named("quality", [record]) == metrics.CER


def test_a_metric_of_a_plug_in_that_is_not_installed_is_found_in_any_record():
    deep = make_record(make_case(), Measurement(metric="depth.v2", unit="m", values=(3.0,)))
    assert (metric_named("depth", [deep]).id, metric_named("depth", (), among=[deep]).unit) == ("depth.v2", "m")
    assert find_metric("depth") is None


def test_a_word_that_means_no_metric_is_refused_with_the_nearest_that_the_records_have():
    with pytest.raises(InputError, match=r"^`metric`: there is no metric 'latancy'; did you mean 'latency'\?$"):
        metric_named("latancy", held(metrics.LATENCY), key="metric")
    with pytest.raises(InputError, match=r"there is no metric 'xyz'; choose from: items, latency, rows, throughput$"):
        metric_named("xyz", [make_record(make_case(), *(
            Measurement.of(metric, [1.0]) for metric in (metrics.LATENCY, metrics.ITEMS)
        ))], also=["rows"])  # fmt: skip


@pytest.mark.parametrize("word", [*TABLES, METHODS])
def test_a_table_is_called_one(word):
    what = "text about a run" if word == METHODS else "a table of several metrics"
    with pytest.raises(InputError, match=f"^{word} is {what}, not one metric; .*--metric {word}"):
        metric_named(word, held(metrics.LATENCY))


def test_every_word_of_show_is_a_metric_or_a_table():
    assert {word for word in choose.WORDS if find_metric(word) is None} == set(TABLES)


def test_names_are_those_that_records_hold_or_that_follow_from_them():
    found = metric_names([make_record(make_case(), *(
        Measurement.of(metric, [1.0]) for metric in (metrics.LATENCY, metrics.AUDIO_SECONDS, metrics.MEMORY_CPU_PEAK)
    ))])  # fmt: skip
    assert {"latency", "rtf", "rtfx", "memory", "memory_cpu_peak"} <= set(found)
    assert not {"flops", "energy", "quality", "phase"} & set(found)
    assert {"memory", "energy", "quality", "flops"} <= set(metric_names())
