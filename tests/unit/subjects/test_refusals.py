import pytest
from conftest import make_case

from speechmeter.subjects.refusals import cpu_engine


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
