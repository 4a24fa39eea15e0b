"""What failed, in lines above the tables: each reason once, with its cases."""

from conftest import make_case, make_record

from speechmeter.report.lines import failure_lines


def failed(name, reason="ValueError: no", status="error", round=0, **axes):
    return make_record(make_case(name, **axes), status=status, reason=reason, round=round)


def test_a_run_without_failures_has_no_lines():
    assert failure_lines([make_record(make_case("a"))]) == []


def test_a_reason_is_said_once_with_its_cases():
    records = [failed("net", seconds=float(n), round=0) for n in range(1, 6)]
    (line,) = failure_lines(records)
    assert line.startswith("failed: ")
    assert "and 2 more" in line
    assert line.endswith("error: ValueError: no")


def test_a_case_some_of_whose_rounds_failed_says_how_many():
    records = [make_record(make_case("net"), round=0), failed("net", round=1), failed("net", round=2)]
    (line,) = failure_lines(records)
    assert "2 of 3 rounds failed" in line


def test_many_reasons_are_counted_not_listed():
    records = [failed("net", f"ValueError: {n}", seconds=float(n)) for n in range(1, 15)]
    lines = failure_lines(records)
    assert len(lines) == 11
    assert lines[-1] == "and 4 more reasons"


def test_out_of_memory_and_timeouts_say_what_helps():
    records = [failed("net", status="oom"), failed("net", status="timeout", seconds=2.0)]
    assert [line.partition(":")[0] for line in failure_lines(records)[2:]] == ["out of memory", "timeout"]
