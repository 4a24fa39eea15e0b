"""What a selection says that fits nothing."""

import pytest
from conftest import make_case, make_record

from speechmeter.analysis.selecting import fits, nothing_fits, parse
from speechmeter.core.errors import InputError

RECORDS = [
    *(make_record(make_case("alpha", seconds=seconds), host="pi") for seconds in (8.0, 10.0, 0.5, 8.0)),
    make_record(make_case("beta", compile=True), host="orin"),
    make_record(make_case("beta", max_frames=7)),
]


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ("seconds=99", "no record has seconds 99; the run has only 0.5, 1, 8, 10"),
        ("batch=2", "no record has batch 2; the run has only 1"),
        ("model=gamma", "no record has model gamma; the run has only alpha, beta"),
        ("host=desk", "no record has host desk; the run has only orin, pi, unknown"),
        ("compile=yes please", "no record has compile yes please; the run has only False, True"),
        ("batch=[1", "no record has batch [1; the run has only 1"),
        ("second=1", "the records have no key 'second'; did you mean 'seconds'?"),
        ("batch=2,second=1", "the records have no key 'second'; did you mean 'seconds'?"),
        ("model=beta,batch=1,seconds=8", "no record of model beta and batch 1 has seconds 8; the run has only 1"),
        (
            "model=alpha,max_frames=7",
            "no record of model alpha has max_frames 7; remove max_frames from the selection: these records do not "
            "have it",
        ),
    ],
)
def test_a_selection_that_fits_nothing_says_what_there_is(filters, words):
    text = f"no/run@{filters}"
    assert str(nothing_fits(text, parse(text)[1], RECORDS)) == f"{text}: {words}"


def test_what_has_no_records_is_called_so():
    assert isinstance(nothing_fits("no/run", {}, []), InputError)
    assert str(nothing_fits("no/run", {}, [])) == "no/run: there are no records; choose a run that was measured"


def test_records_that_name_no_machine_can_be_chosen():
    assert [fits(record, {"host": "unknown"}) for record in RECORDS] == [False] * 5 + [True]
