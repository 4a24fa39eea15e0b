"""Energy on a machine without a sensor: every format says unavailable and why, and none has a zero instead."""

import csv
import io
import json

import pytest
from conftest import make_case

from speechmeter.meters.energy.meter import EnergyMeter

REASON = EnergyMeter().unavailable(make_case())
if REASON is None:
    pytest.skip("this machine has an energy sensor", allow_module_level=True)

PLAN = "models: [python:fakes.py:nothing]\nseconds: 1\nrounds: 1\nmeters: [latency, energy]\n"


@pytest.fixture
def shown(cli, workshop):
    """`shown("csv")` prints the tables of a run of latency and energy in that format."""
    (workshop / "plan.yaml").write_text(PLAN)
    done = cli("run", "plan.yaml", "--trust", "-o", "run")
    assert done.returncode == 0, done.stderr

    def show(format, *more):
        done = cli("show", "run", "--format", format, *more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return show


def rows_after(text, title, mark):
    """The rows of figures below a title, cut at a mark; the first of them is the heading."""
    rows = [line for line in text.partition(title)[2].splitlines() if line.strip().startswith(mark)]
    return [[cell.strip(" │┃|") for cell in row.strip(" │┃|").split(mark)] for row in rows]


def test_every_format_says_unavailable_and_why(shown, workshop):
    (record,) = map(json.loads, (workshop / "run/records.jsonl").read_text().splitlines())
    energies = [m for m in record["measurements"] if m["metric"].startswith(("energy", "power"))]
    assert [(m["values"], m["unavailable"]) for m in energies] == [([], REASON)]

    (table,) = [t for t in json.loads(shown("json")) if t["title"].startswith("energy")]
    assert "energy" in table["columns"]
    (row,) = table["rows"]
    assert row["cells"] == [{"text": "unavailable", "reason": REASON}] * len(table["columns"])
    columns = table["columns"]

    cells = [cell for cell in csv.DictReader(io.StringIO(shown("csv"))) if cell["table"].startswith("energy")]
    assert [cell["column"] for cell in cells] == columns
    for cell in cells:
        assert (cell["text"], cell["reason"]) == ("unavailable", REASON)
        assert [cell[key] for key in ("value", "low", "high")] == ["", "", ""]

    nowhere = ["unavailable"] * len(columns)
    text = shown("markdown")
    assert rows_after(text, "### energy", "|")[-1][1:] == nowhere
    assert REASON in text

    text = shown("table")
    assert rows_after(text, "energy, processor", "│")[-1][1:] == nowhere
    assert REASON in " ".join(text.split())

    text = shown("latex")
    (line,) = [line for line in text.partition(r"\caption{energy")[2].splitlines() if line.startswith("fakes:nothing")]
    assert [cell.strip(" \\") for cell in line.split("&")][1:] == nowhere
    assert REASON in text


def test_rates_that_are_stated_make_no_figure_of_nothing(shown):
    (table,) = json.loads(shown("json", "--metric", "energy", "--assume", "co2_g_per_kwh=400"))
    (row,) = table["rows"]
    assert "CO2 per audio hour" in table["columns"]
    assert not [cell for cell in row["cells"] if "value" in cell]
    assert row["cells"][-1] == {"text": "unavailable", "reason": REASON}
