"""What a smallest effect may be written as."""

import pytest

from speechmeter.api.comparing import share
from speechmeter.core.errors import InputError


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), ("0.05", 0.05), (0.2, 0.2), ("150%", 1.5)])
def test_a_share_is_a_percentage_or_a_number_below_one(text, value):
    assert share(text, "--min-effect") == pytest.approx(value)


@pytest.mark.parametrize("text", ["5", 5, "1", "1.5"])
def test_a_bare_number_from_one_on_is_refused_with_the_way_out(text):
    with pytest.raises(InputError, match=f"write {text}%"):
        share(text, "--min-effect")


@pytest.mark.parametrize("text", ["much", "0", "-5%", "inf", "nan"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(InputError, match="not a share above 0"):
        share(text, "--min-effect")
