"""Synthetic samples of known truth: the matching warning fires, and nowhere else."""

import numpy as np
import pytest
from conftest import make_case, make_record
from hypothesis import given, settings
from hypothesis import strategies as st

from speechmeter.analysis.warnings import case_warnings, findings
from speechmeter.core import metrics
from speechmeter.core.types import BATCHES, Measurement

N = 100
SERIES = 200


def independent(g):
    return g.normal(0, 0.05, N)


def drift(g):
    return np.linspace(0, 0.2, N) + g.normal(0, 0.03, N)


def slow_start(g):
    return 0.4 * np.exp(-np.arange(N) / 6) + 0.3 * (np.arange(N) < 10) + g.normal(0, 0.03, N)


def autocorrelation(g):
    values = np.zeros(N)
    noise = g.normal(0, 0.05, N)
    for i in range(1, N):
        values[i] = 0.7 * values[i - 1] + noise[i]
    return values


def bimodal(g):
    return 0.3 * (g.random(N) < 0.4) + g.normal(0, 0.03, N)


def outliers(g):
    values = g.normal(0, 0.03, N)
    values[g.choice(N, 2, replace=False)] += 1.1
    return values


def spread(g):
    return g.normal(0, 0.3, N)


TRUTHS = {
    "slow start": slow_start,
    "drift": drift,
    "bimodal": bimodal,
    "autocorrelation": autocorrelation,
    "outliers": outliers,
    "spread": spread,
}


def shares(make, seed=0):
    generator = np.random.default_rng(seed)
    found = [kind.kind for _ in range(SERIES) for kind in findings(list(np.exp(make(generator))))]
    return {kind: found.count(kind) / SERIES for kind in TRUTHS}


@pytest.mark.parametrize("kind", TRUTHS)
def test_the_matching_warning_fires_and_no_other(kind):
    found = shares(TRUTHS[kind])
    assert found[kind] >= 0.93
    assert sum(share for other, share in found.items() if other != kind) <= 0.07


@pytest.mark.parametrize("seed", range(3))
def test_independent_samples_give_no_warning(seed):
    assert sum(shares(independent, seed).values()) <= 0.02


@settings(max_examples=50)
@given(st.lists(st.floats(1e-9, 1e9), max_size=60), st.floats(1e-3, 1e3))
def test_any_series_is_judged_and_its_unit_does_not_matter(values, factor):
    kinds = [finding.kind for finding in findings(values)]
    assert len(kinds) <= 1
    assert len([finding.kind for finding in findings([v * factor for v in values])]) == len(kinds)


def test_a_warning_names_cause_and_fix():
    (finding,) = findings(list(np.exp(drift(np.random.default_rng(1)))))
    assert "clock rate or the temperature" in finding.text
    assert "measure more rounds" in finding.text


def records(*rounds):
    return [
        make_record(make_case(), Measurement.of(metrics.LATENCY, values), round=n) for n, values in enumerate(rounds)
    ]


def test_a_trend_that_short_rounds_share_is_seen():
    generator = np.random.default_rng(3)
    slow = [np.exp(np.array([0.5, 0.3, 0.2] + [0] * 7) + generator.normal(0, 0.02, 10)) for _ in range(8)]
    assert any("slow start" in text for text in case_warnings(records(*map(list, slow))))
    flat = [np.exp(generator.normal(0, 0.02, 10)) for _ in range(8)]
    assert case_warnings(records(*map(list, flat))) == []


def test_two_states_between_processes_do_not_look_like_a_trend_within_them():
    generator = np.random.default_rng(4)
    rounds = [np.exp(0.3 * (n % 2) + generator.normal(0, 0.02, 10)) for n in range(8)]
    assert case_warnings(records(*map(list, rounds))) == []


def of_batches(logs, seconds):
    """One round of several batches by turns, each as long as its seconds, with the noise of `logs`."""
    values = np.resize(seconds, len(logs)) * np.exp(logs)
    measured = Measurement.of(metrics.LATENCY, list(values), notes={BATCHES: len(seconds)})
    return [make_record(make_case(), measured)]


@pytest.mark.parametrize("seconds", [[1, 1.1, 5], list(range(1, 21))])
def test_batches_of_different_lengths_are_no_states_of_the_machine(seconds):
    noise = np.random.default_rng(5).normal(0, 0.005, 6 * len(seconds) + 60)
    assert case_warnings(of_batches(noise, seconds)) == []


@pytest.mark.parametrize("kind", ["drift", "bimodal", "outliers", "spread"])
def test_a_fault_of_the_machine_is_seen_through_batches_of_different_lengths(kind):
    (text,) = case_warnings(of_batches(TRUTHS[kind](np.random.default_rng(6)), [1, 1.1, 5]))
    assert f"({kind})" in text


@pytest.mark.parametrize("passes", [2, 3])
def test_few_passes_over_many_batches_give_no_warning(passes):
    generator = np.random.default_rng(7)
    found = [case_warnings(of_batches(generator.normal(0, 0.05, 30 * passes), range(1, 31))) for _ in range(SERIES)]
    assert sum(map(bool, found)) <= 0.02 * SERIES


def test_a_single_sample_of_each_batch_says_nothing_of_the_machine():
    assert case_warnings(of_batches(np.zeros(59), range(1, 31))) == []
