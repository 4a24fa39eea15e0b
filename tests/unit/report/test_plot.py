"""Figures as files: every kind in every format, the right size, and a clear word where there is nothing."""

import re
import struct
from dataclasses import replace

import pytest
import report_runs

pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'speechmeter[report]'")

from speechmeter.core.errors import InputError
from speechmeter.report.plot import COLUMN_IN, encoded, figures_of, specification
from speechmeter.report.sources import read_sources
from speechmeter.report.views import CHARTS

RUN_OF = {"front": 2, "losses": 3, "modules": 4, "memory": 4, "frontier": 5}


def plot(found, kind, suffix, width_in=COLUMN_IN):
    return encoded(figures_of(found, kind), suffix, width_in)


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
    width, _ = struct.unpack(">II", plot(found, "cold-start", ".png", 3.3)[16:24])
    assert width == pytest.approx(3.3 * 300, abs=2)
    svg = plot(found, "cold-start", ".svg", 5.0).decode()
    assert float(re.search(r'width="([\d.]+)"', svg).group(1)) == pytest.approx(5.0 * 96, abs=1)
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+)", plot(found, "cold-start", ".pdf", 3.3))
    assert float(box.group(1)) == pytest.approx(3.3 * 72, abs=1)


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
        InputError, match=r"run: nothing to draw of the kind grid \(it holds no records\); this kind needs"
    ):
        plot(read_sources([str(run)]), "grid", ".png")


def test_a_single_record_gives_a_picture_or_says_what_is_needed(tmp_path):
    run = report_runs.write(tmp_path / "run", report_runs.grid("alpha")[:1], report_runs.CPU)
    found = read_sources([str(run)])
    for kind in ("grid", "cold-start", "energy", "stages"):
        assert plot(found, kind, ".svg")
    for kind in ("scaling", "machines", "front", "losses", "modules", "memory"):
        with pytest.raises(InputError, match="this kind needs"):
            plot(found, kind, ".svg")


def test_an_unknown_kind_is_answered_with_the_nearest(runs):
    with pytest.raises(InputError, match="did you mean 'scaling'"):
        plot(sources(runs, "grid"), "scalling", ".png")


def test_a_word_behind_a_kind_keeps_the_figures_of_that_metric(runs):
    found = read_sources(runs[:1])
    assert {figure.definitions[0].name for figure in figures_of(found, "grid:rtf")} == {"rtf"}
    assert all("memory" in figure.title for figure in figures_of(found, "grid:memory"))
    with pytest.raises(InputError, match=r"there is no figure of latncy; choose from: rtf, rtfx, memory_"):
        figures_of(found, "grid:latncy")


def test_a_plot_of_scaling_fits_a_page(runs):
    _, height = struct.unpack(">II", plot(sources(runs, "scaling"), "scaling", ".png", 3.3)[16:24])
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
    assert caption.startswith("latency against seconds of audio") and "95 % intervals over 3 rounds" in caption


@pytest.mark.parametrize(("names", "columns"), [(["a", "bb"], None), (["a", "mockingjay on the small board"], 1)])
def test_names_that_do_not_fit_beside_each_other_are_below_each_other(runs, names, columns):
    made = figures_of(sources(runs, "scaling"), "scaling")[0]
    rows = [{**made.rows[0], "line": name} for name in names]
    config = specification(replace(made, spec={**made.spec, "data": {"values": rows}}), 3.3)["config"]
    assert config["legend"].get("columns", 2) == (columns or 2)
