"""What the tiles of the page say is what the tables and charts they lead to show, in every example run."""

from pathlib import Path

import pytest

pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'speechmeter[report]'")

from speechmeter.core import metrics
from speechmeter.report.losses import losses
from speechmeter.report.page.build import page_data
from speechmeter.report.sources import read_sources

RUNS = sorted(path for path in (Path(__file__).parents[4] / "examples" / "runs").iterdir() if path.is_dir())
WITHOUT_CHART = ("streams",)
"""Units of figures that no chart and no column has."""


@pytest.fixture(scope="module")
def studies():
    return [study for run in RUNS for study in page_data(read_sources([str(run)]), "0")["studies"]]


def told(studies):
    return [(study, one) for study in studies for one in study["findings"]]


def bare(text):
    return text.split(" ±")[0].split(" [")[0]


def digits(finding):
    """The figure as tables and charts write it: they have the real-time factor in place of times real time."""
    return f"{finding['value']} {finding['unit'].split(' ')[0]}".replace(" items", "").replace(" frames", "").strip()


def test_every_tile_leads_to_its_own_figure(studies):
    assert len(studies) >= len(RUNS) and all(study["findings"] for study in studies)
    for study, finding in told(studies):
        if finding["unit"] in WITHOUT_CHART:
            continue
        if finding["section"] == "summary":
            place = [column["id"] for column in study["table"]["columns"]].index(finding["metric"])
            assert bare(study["table"]["rows"][finding["case"]][1][place][0]) == digits(finding), study["name"]
            continue
        figures = {one["id"]: [one] for one in study["compared"]}
        figures |= {one["id"]: one["figures"] for one in study["sections"]}
        rows = [row for figure in figures[finding["section"]] for row in figure["spec"]["data"]["values"]]
        if finding["unit"] == "× real time":
            factors = [1 / row["value"] for row in rows if isinstance(row.get("value"), float)]
            value = float(finding["value"].replace(",", ""))
            assert any(abs(one / value - 1) < 0.006 for one in factors), (study["name"], finding["label"])
            continue
        shown = {bare(str(value)) for row in rows for name, value in row.items() if name.endswith("text")}
        titles = " ".join(figure["title"] for figure in figures[finding["section"]])
        assert digits(finding) in shown or digits(finding) in titles, (study["name"], finding["label"])


def test_a_figure_without_an_interval_is_marked_in_the_sentence(studies):
    for study in studies:
        bare_ones = [one["interval"] for one in study["findings"] if "95 % interval" not in one["interval"]]
        for words in ("one round", "utterance"):
            assert (words in study["headline"]) == any(words in one for one in bare_ones), study["headline"]


def test_cases_are_said_to_be_the_measured_ones_and_losses_the_exact_ones(studies):
    for study in studies:
        assert "cases are" not in study["headline"] or "measured cases" in study["headline"]
        for finding in study["findings"]:
            assert "losses," not in finding["label"] or "exact losses" in finding["label"]


def test_the_leanest_exact_loss_is_that_of_the_table(studies):
    """The table lists all losses with their deviations: the least memory of those below 0.001 is the tile's."""
    name = "h200-losses"
    (source,) = read_sources([str(next(run for run in RUNS if run.name == name))])
    table = next(one for one in losses(source.records) if one.title == "whole step")
    memory = table.columns.index(metrics.MEMORY_CUDA_ALLOCATED.title)
    deviation = table.columns.index(metrics.LOSS_DEVIATION.title)
    known = [row for row in table.rows if row.cells[memory].estimate and row.cells[deviation].estimate]
    exact = [row for row in known if row.cells[deviation].estimate.value < 1e-3]
    assert 1 < len(exact) < len(known)
    least = min(exact, key=lambda row: row.cells[memory].estimate.value)
    (tile,) = (one for one in next(s for s in studies if s["name"] == name)["findings"] if "allocated" in one["label"])
    assert (tile["name"], digits(tile)) == (least.labels[0], bare(least.cells[memory].text()))
    assert f"of {len(exact)} exact losses" in tile["label"]
