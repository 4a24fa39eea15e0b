"""`report` and `plot` as a user runs them: what is written, what is refused, and that nothing is lost."""

import pytest
import report_runs

pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'speechmeter[report]'")


@pytest.fixture
def run(workshop):
    return report_runs.write(workshop / "run", report_runs.grid("alpha"), report_runs.CPU)


def test_a_report_is_written_and_not_overwritten_without_being_told(cli, run, workshop):
    first = cli("report", "run", "-o", "page.html")
    assert (first.returncode, first.stdout) == (0, "written: page.html\n")
    page = (workshop / "page.html").read_text()
    assert page.startswith("<!doctype html>") and "alpha" in page
    again = cli("report", "run", "-o", "page.html")
    assert again.returncode == 2 and "already exists" in again.stderr
    assert (workshop / "page.html").read_text() == page
    assert cli("report", "run", "-o", "page.html", "--force").returncode == 0
    assert not list(workshop.glob(".page*"))


def test_a_missing_run_leaves_nothing_behind(cli, workshop):
    found = cli("report", "nowhere", "-o", "page.html")
    assert found.returncode == 2 and "nowhere: there is no such directory" in found.stderr
    assert not (workshop / "page.html").exists()


def test_a_broken_record_is_skipped_and_named_by_file_and_line(cli, run, workshop):
    with (run / "records.jsonl").open("a") as file:
        file.write('{"schema": 1}\n')
    found = cli("report", "run", "-o", "page.html")
    assert found.returncode == 0
    assert "records.jsonl: 1 of 13 lines cannot be read and was skipped (line 13:" in found.stderr
    assert "1 of 13 lines cannot be read" in (workshop / "page.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kind", "grids", "-o", "f.png"], "did you mean 'grid'"),
        (["--kind", "grid", "-o", "f.jpeg"], "end the name in .png, .svg, .pdf"),
        (["--kind", "front", "-o", "f.png"], "this kind needs a score (meter quality)"),
        (["--kind", "grid", "-o", "no/where/f.png"], "there is no directory"),
    ],
)
def test_a_plot_that_cannot_be_made_says_why(cli, run, workshop, words, said):
    found = cli("plot", "run", *words)
    assert found.returncode == 2 and said in found.stderr
    assert not list(workshop.glob("f.*"))


def test_a_plot_of_a_part_of_a_run(cli, run, workshop):
    assert cli("plot", "run@batch=1", "--kind", "scaling", "-o", "f.svg", "--width", "127mm").returncode == 0
    svg = (workshop / "f.svg").read_text()
    assert "against length of audio" in svg and "against batch" not in svg


def test_without_the_extra_the_way_to_it_is_named(cli, run, workshop):
    (workshop / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'altair' else real(name, *rest)\n"
    )
    found = cli("report", "run", PYTHONPATH=str(workshop))
    assert found.returncode == 2 and "charts need altair; pip install 'speechmeter[report]'" in found.stderr


def test_the_tour_ends_with_its_page(cli, workshop):
    small = ["--seconds", "1", "--batch", "1", "--meters", "parameters", "-o", "made"]
    found = cli("run", *small)
    assert found.returncode == 0, found.stderr
    assert found.stdout.rstrip().splitlines()[-1] == "written: made/report.html"
    assert "wav2vec2-tiny" in (workshop / "made" / "report.html").read_text()


def test_a_site_is_written_and_not_overwritten_without_being_told(cli, run, workshop):
    first = cli("report", "run", "--site", "site")
    assert (first.returncode, first.stdout) == (0, "written: site/index.html, with 1 study\n")
    assert {path.name for path in (workshop / "site" / "studies").iterdir()} == {"run.html", "run.json"}
    again = cli("report", "run", "--site", "site")
    assert again.returncode == 2 and "not empty" in again.stderr and "--force" in again.stderr
    both = cli("report", "run", "--site", "other", "-o", "page.html")
    assert both.returncode == 2 and not (workshop / "other").exists()


def test_a_badge_is_written_and_its_words_are_printed(cli, run, workshop):
    found = cli("badge", "run", "--metric", "rtfx", "-o", "speed.svg")
    assert found.returncode == 0 and "× real time, 95 % interval" in found.stdout
    assert (workshop / "speed.svg").read_text().startswith("<svg")
