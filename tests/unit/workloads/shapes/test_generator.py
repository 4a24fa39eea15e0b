"""The generator against the published figures of LibriSpeech train-clean-100 (three speeds, BPE of 500)."""

import numpy as np
import pytest

from speechmeter.workloads.shapes.generator import ROWS, generate

PERCENTS = (0, 1, 5, 25, 50, 75, 95, 99, 100)
RAW = (128, 252, 425, 1142, 1376, 1533, 1732, 1812, 2725)
T = (31, 62, 105, 284, 343, 382, 432, 452, 680)
U = (2, 12, 22, 57, 71, 83, 98, 109, 151)
RATIO = (2.22, 3.19, 3.53, 4.15, 4.69, 5.33, 6.58, 7.98, 29.5)


@pytest.fixture(scope="module", params=[0, 7])
def drawn(request):
    raw, tokens = generate(ROWS, request.param).rows.T.astype(np.int64)
    return raw, ((raw - 1) // 2 - 1) // 2, tokens


def near(values, published):
    for value, truth in zip(np.percentile(values, PERCENTS), published, strict=True):
        assert abs(value - truth) <= max(1, 0.01 * truth), (value, truth)


def test_every_published_quantile_is_met_within_one_percent_or_one_frame(drawn):
    for values, published in zip(drawn, (RAW, T, U), strict=True):
        near(values, published)


def test_means_and_deviations_are_met_within_one_percent(drawn):
    raw, frames, tokens = drawn
    assert raw.mean() == pytest.approx(1277.51, rel=0.01)
    assert (frames.mean(), frames.std()) == pytest.approx((318.254, 93.998), rel=0.01)
    assert (tokens.mean(), tokens.std()) == pytest.approx((67.846, 22.014), rel=0.01)


def test_frames_and_tokens_belong_together_as_published(drawn):
    _, frames, tokens = drawn
    assert np.corrcoef(frames, tokens)[0, 1] == pytest.approx(0.8241, abs=0.002)
    ratios = np.percentile(frames / tokens, PERCENTS)
    np.testing.assert_allclose(ratios, RATIO, rtol=0.01)
    assert (tokens <= frames).all()


def test_a_seed_gives_the_same_rows_and_another_seed_others():
    generate.cache_clear()
    first = generate(500, 3).rows.copy()
    generate.cache_clear()
    again, other = generate(500, 3).rows, generate(500, 4).rows
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(np.sort(first[:, 0]), np.sort(other[:, 0]))  # seeds change the order alone


@pytest.mark.parametrize("count", [1, 2, 30])
def test_few_rows_lie_inside_the_published_range(count):
    rows = generate(count, 0).rows
    assert rows.shape == (count, 2)
    assert rows.dtype == np.int32
    assert ((rows >= (RAW[0], U[0])) & (rows <= (RAW[-1], U[-1]))).all()
