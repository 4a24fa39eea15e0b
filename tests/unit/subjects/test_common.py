import pytest
from conftest import make_case

from speechmeter.core.axes import BEAM, MAX_LEN_A, MAX_LEN_B, MAX_NEW_TOKENS, MIN_NEW_TOKENS, QUANTIZE
from speechmeter.subjects.common import cpu_engine


def test_a_plain_case_is_not_refused():
    assert cpu_engine(make_case(), "engine") is None


@pytest.mark.parametrize(
    ("axes", "word"),
    [({"device": "cuda:1"}, "cuda:1"), ({"dtype": "bfloat16"}, "bfloat16"), ({"compile": True}, "torch.compile")],
)
def test_each_axis_beyond_the_engine_is_named_in_one_line(axes, word):
    reason = cpu_engine(make_case(**axes), "engine")
    assert reason.startswith("engine ")
    assert word in reason
    assert "\n" not in reason


@pytest.mark.parametrize(
    ("axis", "good", "bad"),
    [
        (BEAM, (1, 5), (0, None, 1.5)),
        (MIN_NEW_TOKENS, (None, 0, 3), (-1, 2.0)),
        (MAX_NEW_TOKENS, (None, 1, 448), (0, "many")),
        (MAX_LEN_A, (None, 0, 1.2), (-0.1, "long")),
        (MAX_LEN_B, (None, 0, 200), (-1, 1.5)),
        (QUANTIZE, ("none", "int8-dynamic"), (None, "int4", True)),
    ],
)
def test_an_axis_takes_what_it_means_and_says_why_it_refuses(axis, good, bad):
    assert axis.check(axis.default) is None
    assert [axis.check(value) for value in good] == [None] * len(good)
    assert all(axis.name in (axis.check(value) or "") for value in bad)
