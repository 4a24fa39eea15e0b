import pytest

from speechmeter.subjects import generation as shared


@pytest.mark.parametrize(
    ("axis", "good", "bad"),
    [
        (shared.BEAM, (1, 5), (0, None, 1.5)),
        (shared.MIN_NEW_TOKENS, (None, 0, 3), (-1, 2.0)),
        (shared.MAX_NEW_TOKENS, (None, 1, 448), (0, "many")),
        (shared.MAX_LEN_A, (None, 0, 1.2), (-0.1, "long")),
        (shared.MAX_LEN_B, (None, 0, 200), (-1, 1.5)),
        (shared.QUANTIZE, ("none", "int8-dynamic"), (None, "int4", True)),
    ],
)
def test_an_axis_takes_what_it_means_and_says_why_it_refuses(axis, good, bad):
    assert axis.check(axis.default) is None
    assert [axis.check(value) for value in good] == [None] * len(good)
    assert all(axis.name in (axis.check(value) or "") for value in bad)
