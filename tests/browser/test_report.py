"""The report in a real browser: nothing is fetched, everything is there, readable and within reach."""

from pathlib import Path

import pytest
import report_runs

from speechmeter.report.page.build import build_page
from speechmeter.report.sources import read_sources
from speechmeter.report.views import CHARTS

LOOKS = (Path(__file__).parent / "looks.js").read_text()
SECTIONS = ["summary", *CHARTS, "samples", "warnings", "environments", "definitions"]


def column(page, title):
    heads = page.locator("#summary thead th").all_inner_texts()
    return next(place for place, head in enumerate(heads) if head.rstrip(" ▲▼") == title)


def cells(page, title):
    return page.locator(f"#summary tbody td:nth-child({column(page, title) + 1})").all_inner_texts()


def test_nothing_is_said_on_the_console_and_no_request_leaves_the_file(opened, report):
    one = opened()
    assert one.said == []
    assert [url for url in one.asked if not url.startswith(("data:", "blob:"))] == [report.as_uri()]


def test_every_section_is_there_with_a_drawing_or_a_table(opened):
    page = opened().page
    assert [section.get_attribute("id") for section in page.query_selector_all("section")] == SECTIONS
    for name in (*CHARTS, "samples"):
        assert page.locator(f"#{name} svg text").count() > 3, name
    assert page.locator("#contents a").count() == len(SECTIONS)
    assert "cannot be drawn" not in page.inner_text("main")


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_itself_never_scrolls_sideways(opened, width):
    assert opened(width).page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("width", [400, 1280])
def test_no_two_texts_of_a_chart_lie_on_each_other(opened, width):
    page = opened(width).page
    page.evaluate(LOOKS)
    assert page.evaluate("overlaps()") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(opened, scheme):
    page = opened(1280, scheme).page
    page.evaluate(LOOKS)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.evaluate("weakTexts()") == []


def test_a_click_on_a_heading_sorts_numbers_as_numbers(opened):
    page = opened().page
    place = column(page, "seconds")
    page.click(f"[data-column='{place}']")
    upwards = [float(text) for text in cells(page, "seconds")]
    page.click(f"[data-column='{place}']")
    downwards = [float(text) for text in cells(page, "seconds")]
    assert upwards == sorted(upwards) and downwards == sorted(upwards, reverse=True) and upwards[0] < upwards[-1]


def test_sorting_by_a_figure_goes_by_its_value_and_puts_missing_ones_last(opened):
    page = opened().page
    page.click(f"[data-column='{column(page, 'latency')}']")
    models = cells(page, "model")
    assert models[0] == "alpha" and cells(page, "device")[0] == "cuda"
    assert set(cells(page, "latency")[-6:]) <= {"oom", "skipped", "unavailable", "–"}


def test_filtering_keeps_the_rows_with_all_words(opened):
    page = opened().page
    page.fill("#filter", "alpha cuda")
    assert set(cells(page, "model")) == {"alpha"} and set(cells(page, "device")) == {"cuda"}
    assert page.inner_text("#count") == "4 of 47 cases"
    page.fill("#filter", "nowhere")
    assert cells(page, "model") == []
    page.fill("#filter", "")
    page.select_option("#outcome", "oom")
    assert set(cells(page, "outcome")) == {"oom"}
    page.select_option("#outcome", "")


def test_a_figure_opens_protocol_environment_samples_and_command(opened):
    page = opened().page
    page.fill("#filter", "beta")
    page.locator(f"#summary tbody tr:first-child td:nth-child({column(page, 'latency') + 1}) button").click()
    text = page.inner_text("dialog")
    for wanted in ("perf_counter_ns", "Some CPU 3000", "95 % interval", "values in order", "speechmeter run"):
        assert wanted in text
    assert "--batch 1" in page.inner_text("#command")
    page.wait_for_selector("dialog svg")
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    page.fill("#filter", "")


def test_a_missing_figure_opens_its_reason(opened):
    page = opened().page
    page.fill("#filter", "alpha oom cpu")
    page.locator(f"#summary tbody tr:first-child td:nth-child({column(page, 'latency') + 1}) button").click()
    assert "needs 30 GiB" in page.inner_text("dialog")
    page.keyboard.press("Escape")
    page.fill("#filter", "")


def test_the_keyboard_reaches_a_figure_and_opens_it(opened):
    page = opened().page
    page.locator("#summary tbody td.figure button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.tagName") == "BUTTON"


def test_hostile_names_are_text(opened):
    page = opened().page
    names = cells(page, "model")
    for name in report_runs.HOSTILE:
        assert name in names
    assert page.evaluate("document.querySelectorAll('script').length") == 3
    assert page.locator("td img, td script, svg script").count() == 0


def test_the_theme_button_changes_colours_at_once(opened):
    page = opened(1280, "light").page
    before = page.evaluate("getComputedStyle(document.querySelector('#scaling svg text')).fill")
    page.click("#theme")
    after = page.evaluate("getComputedStyle(document.querySelector('#scaling svg text')).fill")
    page.click("#theme")
    assert before != after
    assert page.evaluate("getComputedStyle(document.querySelector('#scaling svg text')).fill") == before


def test_a_chart_gives_its_values_as_a_table(opened):
    page = opened().page
    page.click("#machines summary")
    text = page.inner_text("#machines table")
    assert "NVIDIA H200" in text and "0.05 [" in text and "FASTER" in text


def test_choosing_a_case_draws_its_samples(opened):
    page = opened().page
    page.select_option("#case", index=1)
    page.wait_for_timeout(300)
    assert page.locator("#samples svg .mark-symbol path").count() >= 9


def test_printing_uses_ink_on_white(opened):
    page = opened(1280, "dark").page
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('#scaling svg text')).fill") == "rgb(0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")


def test_one_round_and_random_weights_are_said_where_the_figures_are(open_file, tmp_path):
    run = report_runs.write(tmp_path / "run", report_runs.once(report_runs.grid("alpha")), report_runs.CPU)
    path = tmp_path / "once.html"
    path.write_text(build_page(read_sources([str(run)]), "0"), encoding="utf-8")
    page = open_file(path).page
    assert report_runs.RANDOM in page.inner_text("#main > p.note >> nth=1")
    assert "Figures without intervals, because there was one round." in page.inner_text("#summary")
    caption = page.inner_text("#grid figcaption >> nth=0")
    assert "One round: no interval." in caption and "random weights" in caption
    page.click("#summary tbody tr:has-text('ok') td.figure button >> nth=0")
    detail = page.inner_text("#detail")
    assert f"Note: {report_runs.RANDOM}" in detail and "one round: no interval; 1 round" in detail
