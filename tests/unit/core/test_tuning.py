"""What `keep` says, and which values of an axis are tried."""

import pytest

from speechmeter.core import metrics
from speechmeter.core.axes import BATCH, BEAM, CORE_AXES, MAX_NEW_TOKENS, QUANTIZE
from speechmeter.core.errors import InputError
from speechmeter.core.tuning import GOALS, keep_of, meters_for, tuning_of, values_to_try

AXES = {axis.name: axis for axis in (*CORE_AXES, BATCH, BEAM, QUANTIZE, MAX_NEW_TOKENS)}


@pytest.mark.parametrize(
    ("text", "kind", "metric", "limit", "statistic"),
    [
        ("wer<=+0.3", "score", metrics.WER, 0.3, ""),
        ("bleu >= -0.5", "score", metrics.BLEU, 0.5, ""),
        ("memory<=4GiB", "limit", metrics.MEMORY_CPU_TOTAL, 4 * 2**30, ""),
        ("memory<=500 MB", "limit", metrics.MEMORY_CPU_TOTAL, 5e8, ""),
        ("latency_p95<=200ms", "limit", metrics.LATENCY, 0.2, "p95"),
        ("latency<=1.5", "limit", metrics.LATENCY, 1.5, ""),
        ("rtf<=0.1", "limit", metrics.RTF, 0.1, ""),
        ("outputs<=2%", "outputs", None, 0.02, ""),
    ],
)
def test_a_bound_is_read_in_the_unit_of_its_metric(text, kind, metric, limit, statistic):
    found = keep_of(text)
    assert (found.kind, found.metric, found.statistic) == (kind, metric, statistic)
    assert found.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    "text",
    ["wer", "wer<=0.3", "wer>=+0.3", "bleu<=-1", "wer<=+x", "wer<=+nan", "memory<=4", "speed<=3", "latency_p42<=1s",
     "memory_p95<=1GiB", "latency<=-1", ""],
)  # fmt: skip
def test_a_bound_that_cannot_be_is_refused_with_an_example(text):
    with pytest.raises(InputError) as raised:
        keep_of(text)
    assert raised.value.fix


@pytest.mark.parametrize(
    ("name", "on_cuda", "values"),
    [
        ("dtype", False, ("float32", "bfloat16")),
        ("dtype", True, ("float32", "float16", "bfloat16")),
        ("threads", False, (8, 4, 1)),
        ("threads", True, (8,)),
        ("compile", True, (False, True)),
        ("batch", False, (1, 2, 4, 8)),
        ("batch", True, (1, 2, 4, 8, 16, 32)),
        ("beam", False, (1, 2, 5)),
        ("quantize", False, ("none", "int8-dynamic")),
        ("max_new_tokens", False, (None,)),
    ],
)
def test_the_default_is_the_first_value_and_a_device_leaves_out_what_makes_no_sense(name, on_cuda, values):
    assert values_to_try(AXES[name], on_cuda=on_cuda, cores=8) == values


def test_the_meters_are_those_that_goal_and_bounds_need():
    assert meters_for(GOALS["rtfx"], []) == ("latency", "outputs")
    keeps = [keep_of("wer<=+1"), keep_of("memory<=1GiB")]
    assert meters_for(GOALS["rtfx"], keeps) == ("latency", "outputs", "quality", "memory")


def test_a_plan_without_the_key_is_no_tuning():
    assert tuning_of({"models": []}) is None and tuning_of({"tune": {"goal": "joy"}}) is None
