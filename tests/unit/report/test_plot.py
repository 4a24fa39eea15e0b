"""Figures as files: every kind in every format, the right size, and a clear word where there is nothing."""

import json
import re
import struct
from dataclasses import replace

import pytest
import report_runs

pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'speechmeter[report]'")

from speechmeter.core.errors import InputError
from speechmeter.report.plot import COLUMN_MM, check_runs, encoded, figures_of, read_width, specification
from speechmeter.report.sources import read_sources
from speechmeter.report.views import CHARTS

RUN_OF = {"live": 6, "speech": 7, "models": 0, "front": 2, "losses": 3, "modules": 4, "memory": 4, "frontier": 5}


def plot(found, kind, suffix, width_mm=COLUMN_MM):
    return encoded(figures_of(found, kind), suffix, width_mm)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return [str(path) for path in report_runs.full(tmp_path_factory.mktemp("runs"))]


def sources(runs, kind):
    return read_sources(runs[:2] if kind == "machines" else [runs[RUN_OF.get(kind, 1)]])


@pytest.mark.parametrize("kind", CHARTS)
def test_every_kind_gives_png_svg_and_pdf(runs, kind):
    found = sources(runs, kind)
    assert plot(found, kind, ".png").startswith(b"\x89PNG")
    assert plot(found, kind, ".pdf").startswith(b"%PDF")
    assert re.match(rb"<svg[^>]*>", plot(found, kind, ".svg"))


def test_a_figure_is_as_wide_as_the_column(runs):
    found = sources(runs, "cold-start")
    width, _ = struct.unpack(">II", plot(found, "cold-start", ".png", 85)[16:24])
    assert width == pytest.approx(85 / 25.4 * 300, abs=2)
    svg = plot(found, "cold-start", ".svg", 127).decode()
    assert float(re.search(r'width="([\d.]+)mm"', svg).group(1)) == pytest.approx(127, abs=0.1)
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+)", plot(found, "cold-start", ".pdf", 85))
    assert float(box.group(1)) == pytest.approx(85 / 25.4 * 72, abs=1)


def test_texts_have_their_printed_size_at_any_width(runs):
    found = sources(runs, "cold-start")
    for width_mm in (60, 180):
        svg = plot(found, "cold-start", ".svg", width_mm).decode()
        shown_mm = float(re.search(r'width="([\d.]+)mm"', svg).group(1))
        drawn = float(re.search(r'viewBox="0 0 ([\d.]+)', svg).group(1))
        points = 11 * shown_mm / drawn / 25.4 * 72  # the letters of labels have 11 of the drawing's units
        assert points == pytest.approx(8.25, abs=0.01)


@pytest.mark.parametrize(("text", "width_mm"), [("85mm", 85), ("8.5 cm", 85), ("3.3in", 83.82), ("85", 85)])
def test_a_width_is_read_with_its_unit(text, width_mm):
    assert read_width(text) == pytest.approx(width_mm)


@pytest.mark.parametrize("text", ["3.3", "wide", "85px", "9m", "1..2mm", "", "inf", "600mm"])
def test_another_width_is_refused(text):
    with pytest.raises(InputError, match=r"is not a width from 40mm to 500mm; for example 85mm"):
        read_width(text)


def test_names_are_escaped_in_svg(tmp_path):
    run = report_runs.write(tmp_path / "run", report_runs.grid(report_runs.HOSTILE[0]), report_runs.CPU)
    svg = plot(read_sources([str(run)]), "cold-start", ".svg").decode()
    assert "<script" not in svg


def test_ids_of_stacked_figures_do_not_meet(runs):
    ids = re.findall(r'id="([^"]+)"', plot(sources(runs, "grid"), "grid", ".svg").decode())
    assert len(ids) == len(set(ids))


def test_an_empty_run_says_that_it_holds_nothing(tmp_path):
    run = report_runs.write(tmp_path / "run", [], report_runs.CPU)
    with pytest.raises(
        InputError, match=r"run: there is nothing to draw for the kind grid \(it holds no records\); this kind needs"
    ):
        plot(read_sources([str(run)]), "grid", ".png")


def test_a_single_record_gives_a_picture_or_says_what_is_needed(tmp_path):
    run = report_runs.write(tmp_path / "run", report_runs.grid("alpha")[:1], report_runs.CPU)
    found = read_sources([str(run)])
    for kind in ("cold-start", "energy", "stages"):
        assert plot(found, kind, ".svg")
    assert encoded(figures_of(found, "grid", "rtf"), ".svg")
    for kind in ("scaling", "machines", "front", "losses", "modules", "memory"):
        with pytest.raises(InputError, match="this kind needs"):
            plot(found, kind, ".svg")


def test_an_unknown_kind_is_answered_with_the_nearest(runs):
    with pytest.raises(InputError, match="did you mean 'scaling'"):
        plot(sources(runs, "grid"), "scalling", ".png")


def test_a_metric_chooses_the_figures_that_show_it(runs):
    found = read_sources(runs[:1])
    assert {figure.definitions[0].name for figure in figures_of(found, "grid", "rtf")} == {"rtf"}
    assert {figure.definitions[0].name for figure in figures_of(found, "models", "flops")} == {"flops"}
    assert all("memory" in figure.title for figure in figures_of(found, "grid", "memory"))
    with pytest.raises(InputError, match=r"there is no metric 'latncy'; did you mean 'latency'"):
        figures_of(found, "grid", "latncy")
    with pytest.raises(
        InputError, match=r"there is no figure of rtf; choose from: latency_load, latency_first, latency"
    ):
        figures_of(found, "cold-start", "rtf")


def test_a_word_behind_a_kind_is_an_axis_and_nothing_else(runs):
    found = read_sources(runs[:1])
    (figure,) = figures_of(found, "scaling:batch")
    assert "against batch size" in figure.title
    with pytest.raises(InputError, match=r"there is no kind of chart 'grid:rtf'; to choose the metric, use `metric`"):
        figures_of(found, "grid:rtf")


@pytest.mark.parametrize("kind", ["models", "scaling", "cold-start", "energy", "parameters", "stages"])
def test_several_runs_are_in_one_figure(runs, kind):
    both = figures_of(read_sources(runs[:2]), kind)
    assert len(both) == len(figures_of(read_sources(runs[:1]), kind))
    models = {str(row.get("model", row.get("label"))) for row in both[0].rows}
    assert any("desk" in model for model in models) and any("cluster" in model for model in models)


def test_a_model_of_one_run_keeps_its_name_beside_another_run(runs):
    (figure,) = figures_of(read_sources(runs[:2]), "scaling")
    assert {"beta"} < {row["model"] for row in figure.rows}


@pytest.mark.parametrize("kind", ["grid", "modules", "memory"])
def test_a_kind_that_draws_one_run_says_so(kind):
    check_runs(kind, 1)
    with pytest.raises(
        InputError, match=rf"the kind {kind} draws one run, not 2; give one run, or choose from: models, "
    ):
        check_runs(kind, 2)


def test_several_figures_of_one_value_each_are_refused(runs):
    with pytest.raises(
        InputError, match="each of 4 figures of the kind grid has a single value; choose `kind: models`"
    ):
        figures_of(read_sources(runs[2:3]), "grid")


def test_a_plot_of_scaling_fits_a_page(runs):
    _, height = struct.unpack(">II", plot(sources(runs, "scaling"), "scaling", ".png")[16:24])
    assert height < 5 * 300


def test_what_all_figures_of_a_file_have_to_say_is_said_once(runs):
    made = figures_of(sources(runs, "stages"), "stages")
    twice = [replace(made[0], caveats=("random weights",))] * 2
    assert encoded(twice, ".svg").count(b"random weights") == encoded(twice[:1], ".svg").count(b"random weights") > 0


def test_the_command_prints_the_caption(runs, tmp_path, command):
    done = command("plot", runs[1], "--kind", "scaling", "-o", tmp_path / "a.svg")
    assert done.code == 0, done.err
    written, caption = done.out.splitlines()
    assert written == f"written: {tmp_path / 'a.svg'}"
    assert caption.startswith("Latency against length of audio: alpha.")
    assert "95 % intervals over 3 rounds" in caption


@pytest.mark.parametrize("kind", ["models", "scaling", "grid"])
def test_a_plot_of_an_unfinished_run_says_so(tmp_path, command, kind):
    records = [*report_runs.grid("alpha"), *report_runs.grid("beta", 2.5)]
    run = report_runs.write(tmp_path / "run", records, report_runs.CPU)
    cases = sorted({record.case.id for record in records})
    (run / "planned.json").write_text(json.dumps({"rounds": 1, "cases": [*cases, "0" * 16]}))
    words = f"run is unfinished: 1 of {len(cases) + 1} cases has no record"
    for figure in figures_of(read_sources([str(run)]), kind):
        assert figure.caveats[0] == words
    done = command("plot", run, "--kind", kind, "-o", tmp_path / "a.svg")
    assert done.code == 0 and done.out.splitlines()[-1] == words


@pytest.mark.parametrize(("names", "columns"), [(["a", "bb"], 3), (["a", "mockingjay on the board"], 1)])
def test_names_that_do_not_fit_beside_each_other_are_below_each_other(runs, names, columns):
    made = figures_of(sources(runs, "scaling"), "scaling")[0]
    rows = [{**made.rows[0], "line": name} for name in names]
    config = specification(replace(made, spec={**made.spec, "data": {"values": rows}}), 85)["config"]
    assert config["legend"]["columns"] == columns
