"""Tables of a run, and of a part of it."""

import pytest
import report_runs

from speechmeter.api.showing import shown
from speechmeter.core.errors import InputError


@pytest.fixture
def run(tmp_path):
    records = [*report_runs.grid("alpha"), *report_runs.grid("beta", 2.5)]
    return report_runs.write(tmp_path / "run", records, report_runs.CPU)


def test_a_part_of_a_run_is_shown_alone(run):
    assert len(shown(run, "rtf").tables) == 2
    (table,) = shown(run.with_name("run@model=beta,batch=1"), "rtf").tables
    assert table.title.startswith("beta") and table.columns == ("1",)


def test_a_part_that_holds_nothing_is_refused_with_what_there_is(run):
    with pytest.raises(InputError, match="the run has only alpha, beta"):
        shown(run.with_name("run@model=gamma"))
