"""10,000 damaged inputs: our own errors come out and no others, nothing is run, nothing is written elsewhere."""

import pytest
from fuzz_targets import TARGETS, largest_lines
from fuzz_watching import fuzz

pytestmark = pytest.mark.campaign


def test_there_are_ten_thousand_of_them():
    assert sum(count for _, count in TARGETS.values()) == 10_000


@pytest.mark.parametrize("kind", TARGETS)
def test_damaged_inputs_are_read_or_refused(kind, tmp_path, capsys):
    target, count = TARGETS[kind]
    tally = fuzz(target, kind, range(count), tmp_path)
    assert tally.surprises == []
    assert tally.done == []
    assert tally.read > 0
    assert tally.refused > 0
    with capsys.disabled():
        print(f"\n{kind}: {count} inputs, {tally.read} read, {tally.refused} refused, nothing else")


def test_lines_of_a_hundred_megabytes_are_skipped_and_reported(tmp_path):
    tally = fuzz(largest_lines, "largest", range(4), tmp_path)
    assert tally.surprises == []
    assert tally.done == []
    assert (tally.read, tally.refused) == (4, 0)
