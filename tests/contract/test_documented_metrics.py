"""Every metric has its row in the documentation, with the unit and the direction that it has in the code."""

import re
from pathlib import Path

from speechmeter.core import metrics

PAGE = Path(__file__).parents[2] / "docs" / "metrics" / "index.md"
DIRECTIONS = {"lower": "lower", "higher": "higher", "neither": "–"}


def documented():
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text().splitlines() if "`" in line]
    return {
        name: (row[1], row[2]) for row in rows if len(row) == 4 for name in re.findall(r"`([a-z0-9_]+\.v\d+)`", row[0])
    }


def test_every_metric_has_a_row_that_agrees():
    own = [value for value in vars(metrics).values() if isinstance(value, metrics.Metric)]
    own += metrics.ENERGY_PER_AUDIO_HOUR.values()
    assert documented() == {m.id: (m.unit, DIRECTIONS[m.direction]) for m in own}
