"""Whatever a system answers, metrics keep their promises: nothing is dropped, clamped or changed by the order."""

from dataclasses import replace

import pytest
from conftest import make_case, make_record
from hypothesis import given
from hypothesis import strategies as st
from live_talks import conditions, talk

from speechmeter.analysis.live import measurements
from speechmeter.analysis.live.measure import READERS
from speechmeter.analysis.live.words import length_adaptive_lagging
from speechmeter.core import metrics
from speechmeter.core.live import Event, Exchange
from speechmeter.core.metrics import find
from speechmeter.core.types import Measurement
from speechmeter.store.schema import check_record

MOMENTS = st.integers(-8, 64).map(lambda eighths: eighths / 8)
TEXTS = st.one_of(
    st.lists(st.sampled_from(["one", "two", "three", "uh", "Ünïcödé", "四", "‍", "."])).map(" ".join),
    st.text(max_size=8),
)
EVENTS = st.lists(
    st.builds(
        Event,
        kind=st.sampled_from(["opened", "partial", "final", "endpoint", "closed"]),
        moment_s=MOMENTS,
        text=TEXTS,
        segment=st.integers(0, 2),
        end_s=st.one_of(st.none(), MOMENTS),
    ),
    max_size=12,
).map(lambda events: tuple(sorted(events, key=lambda event: event.moment_s)))
TALKS = st.builds(
    lambda events, reference, error: replace(talk(), events=events, reference=reference, error=error),
    EVENTS, st.one_of(st.none(), TEXTS), st.sampled_from(["", "reset"]),
)  # fmt: skip


def by_name(exchanges: list[Exchange], **more: object) -> dict[str, Measurement]:
    return {one.metric: one for one in measurements(exchanges, conditions(**more))}


@given(st.lists(TALKS, min_size=1, max_size=3))
def test_every_conversation_is_accounted_for(exchanges: list[Exchange]):
    """Each has values, an answer that is missing, or a reason."""
    for metric in READERS:
        found = by_name(exchanges)[metric.id]
        of, missing = set(found.notes.get("of", ())), set(found.notes.get("missing", ()))
        withheld = sum(int(text.rpartition("(")[2].split()[0]) for text in found.notes.get("withheld", ()))
        assert len(of) + len(missing) + withheld == len(exchanges)
        assert not of & missing
        assert bool(found.values) is not bool(found.unavailable)


@given(st.lists(TALKS, min_size=1, max_size=2))
def test_measurements_can_be_stored(exchanges: list[Exchange]):
    found = measurements(exchanges, conditions(endpoints=True))
    check_record(make_record(make_case(), *found).to_json())


@given(TALKS, MOMENTS.filter(lambda moment: moment >= 0))
def test_a_system_that_is_later_by_some_time_has_all_delays_later_by_it(exchange: Exchange, later: float):
    delayed = replace(
        exchange, events=tuple(replace(event, moment_s=event.moment_s + later) for event in exchange.events)
    )
    before, after = by_name([exchange]), by_name([delayed])
    for metric in (
        metrics.FIRST_PARTIAL_FROM_SEND, metrics.FINAL_DELAY, metrics.FINALIZE_DELAY, metrics.WORD_LAG,
        metrics.WORD_LAG_FIRST, metrics.ENDPOINT_DELAY, metrics.TTFT_VLLM,
    ):  # fmt: skip
        assert after[metric.id].values == tuple(value + later for value in before[metric.id].values)
    for metric in (metrics.PARTIAL_CHURN, metrics.PARTIAL_GAP, metrics.LIVE_WER, metrics.TAIL_LOSS):
        assert after[metric.id].values == before[metric.id].values


@given(TALKS)
def test_a_word_is_stable_no_earlier_than_it_came_first(exchange: Exchange):
    found = by_name([exchange])
    stable, first = found[metrics.WORD_LAG.id], found[metrics.WORD_LAG_FIRST.id]
    assert stable.notes.get("word") == first.notes.get("word")
    assert all(late >= early for late, early in zip(stable.values, first.values, strict=True))


@given(TALKS)
def test_the_lenient_churn_is_at_most_the_strict_one(exchange: Exchange):
    found = by_name([exchange])
    pairs = zip(found[metrics.PARTIAL_CHURN_LENIENT.id].values, found[metrics.PARTIAL_CHURN.id].values, strict=True)
    assert all(lenient <= strict for lenient, strict in pairs)


@pytest.mark.parametrize("metric", READERS, ids=lambda metric: metric.name)
def test_every_live_metric_is_registered_and_is_a_figure_over_conversations(metric):
    assert find(metric.id) is metric
    assert metric.combined in ("conversations", "pooled")


@given(st.lists(st.integers(0, 400), min_size=1, max_size=8), st.integers(1, 300), st.integers(1, 9))
def test_lagging_is_that_of_omnisteval(steps: list[int], audio: int, reference_words: int):
    scoring = pytest.importorskip("omnisteval.scoring", reason="OmniSTEval is not installed")
    data = pytest.importorskip("omnisteval.data")
    moments = [float(sum(steps[: place + 1])) for place in range(len(steps))]
    theirs = data.Instance(reference=" ".join(["w"] * reference_words), source_length=float(audio), emission_ca=moments)
    expected = scoring.LAALScorer(computation_aware=True).compute(theirs)
    assert length_adaptive_lagging(moments, float(audio), reference_words) == pytest.approx(expected, rel=1e-12)
