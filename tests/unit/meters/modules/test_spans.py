from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from speechmeter.meters.recording.events import gaps, merged, shared_out

SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)).map(lambda pair: (pair[0], sum(pair))), max_size=8)


def instants(spans):
    return {instant for start, end in spans for instant in range(start, end)}


@given(SPANS)
def test_merged_spans_are_the_same_instants_and_apart(spans):
    found = merged(spans)
    assert instants(found) == instants(spans)
    assert all(before[1] < after[0] for before, after in pairwise(found))


@given(SPANS)
def test_gaps_are_what_is_left(spans):
    inside = [(start, min(end, 40)) for start, end in spans]
    assert instants(gaps((0, 40), inside)) == set(range(40)) - instants(inside)


@given(SPANS)
def test_shared_instants_are_split_evenly(spans):
    owned = [(start, end, number % 3) for number, (start, end) in enumerate(spans)]
    expected: Counter[int] = Counter()
    for instant in range(45):
        running = [who for start, end, who in owned if start <= instant < end]
        for who in running:
            expected[who] += 1 / len(running)
    found = shared_out(owned)
    assert {who: round(time, 6) for who, time in found.items()} == {w: round(t, 6) for w, t in expected.items()}
