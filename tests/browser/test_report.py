"""The report in a real browser: nothing is fetched, everything is there, readable and within reach."""

from pathlib import Path

import pytest
import report_runs

from speechmeter.report.page.build import build_page
from speechmeter.report.sources import read_sources
from speechmeter.report.views import CHARTS

LOOKS = (Path(__file__).parent / "looks.js").read_text()
DESK = "#desk--summary"
OF_PAGE = ["machines", "environments", "definitions"]
STUDIES = ["desk", "cluster", "accuracy", "losses", "training", "search", "live", "speech"]


def column(page, title):
    heads = page.locator(f"{DESK} thead th").all_inner_texts()
    return next(place for place, head in enumerate(heads) if head.rstrip(" ▲▼") == title)


def cells(page, title):
    """Those of the summary of the study `desk`, which is folded until it is filtered or sorted."""
    return page.locator(f"{DESK} tbody td:nth-child({column(page, title) + 1})").all_inner_texts()


def test_nothing_is_said_on_the_console_and_no_request_leaves_the_file(opened, report):
    one = opened()
    assert one.said == []
    assert [url for url in one.asked if not url.startswith(("data:", "blob:"))] == [report.as_uri()]


def test_every_study_is_there_with_its_answer_and_its_sections(opened):
    page = opened().page
    assert [one.get_attribute("id") for one in page.query_selector_all("article.study")] == STUDIES
    for study in ("desk", "accuracy", "losses", "training", "search", "live", "speech"):
        assert page.locator(f"#{study} .headline").inner_text().endswith(".")
        assert page.locator(f"#{study} .finding .value").count() >= 1
        assert page.locator(f"#{study} .compared svg text").count() > 3, study
        assert page.locator(f"#{study}--summary table").count() == 1
    kinds = page.evaluate("[...document.querySelectorAll('section[id*=\"--\"]')].map((one) => one.id.split('--')[1])")
    beside = page.evaluate("[...document.querySelectorAll('.evidence a')].map((one) => one.textContent)")
    assert all(name in kinds or name in OF_PAGE or chart.title in beside for name, chart in CHARTS.items())
    assert "cannot be drawn" not in page.inner_text("main")


def test_the_links_of_the_contents_and_of_the_answers_lead_somewhere(opened):
    page = opened().page
    lost = """[...document.querySelectorAll('#contents a, .evidence a')].map((one) => one.hash.slice(1))
      .filter((id) => !document.getElementById(id))"""
    assert page.evaluate(lost) == []
    assert page.locator("#contents .name").all_inner_texts() == STUDIES


def test_an_address_with_a_study_shows_that_one_and_all_studies_the_others_again(open_file, report):
    page = open_file(report).page
    page.click("#contents a:text-is('losses')")
    page.wait_for_selector("body[data-ready=yes]")
    assert page.locator("article.study:visible").count() == 1 and page.locator("#losses").is_visible()
    page.click("#contents a:text-is('Transducer losses')")
    assert page.locator("#losses--losses").is_visible() and "#losses--losses" in page.url
    page.reload()
    page.wait_for_selector("body[data-ready=yes]")
    assert page.locator("article.study:visible").count() == 1
    assert page.locator("#losses .compared svg text").count() > 3
    page.click("#contents a:text-is('All studies')")
    page.wait_for_selector("body[data-ready=yes]")
    assert page.locator("article.study:visible").count() == len(STUDIES)
    assert page.locator("#desk .compared svg text").count() > 3  # drawn when it is shown first


def test_the_contents_stay_in_view(opened):
    for width, there in ((1280, "#contents"), (400, "#menu")):
        page = opened(width).page
        page.evaluate("window.scrollTo(0, 4000)")
        assert page.evaluate(f"document.querySelector('{there}').getBoundingClientRect().top") < 100
        page.evaluate("window.scrollTo(0, 0)")


def test_a_phone_opens_the_contents_with_a_button(opened):
    page = opened(400).page
    assert not page.locator("#contents").is_visible()
    page.click("#menu")
    assert page.locator("#contents").is_visible() and page.get_attribute("#menu", "aria-expanded") == "true"
    page.keyboard.press("Escape")
    assert not page.locator("#contents").is_visible()


def test_a_long_table_is_folded_by_model_and_opens(opened):
    page = opened().page
    groups = page.locator(f"{DESK} tr.group")
    assert groups.count() == 5 and page.locator(f"{DESK} tr.inside").count() == 0
    groups.first.locator("button").click()
    assert page.locator(f"{DESK} tr.inside").count() == 4
    groups.first.locator("button").click()


@pytest.mark.parametrize("width", [400, 1280, 1920])
def test_no_summary_is_wider_than_the_page(opened, width):
    page = opened(width).page
    wide = """[...document.querySelectorAll('.summary .scroll')]
      .filter((one) => one.scrollWidth > one.clientWidth + 1 && one.querySelectorAll('thead th.figure').length > 1)
      .map((one) => one.getAttribute('aria-label'))"""
    assert page.evaluate(wide) == []


@pytest.mark.parametrize("width", [400, 1280])
def test_every_summary_shows_a_figure_within_its_frame(opened, width):
    page = opened(width).page
    first = """[...document.querySelectorAll('.summary .scroll')].filter((one) => one.querySelector('td.figure'))
      .map((one) => [one.getAttribute('aria-label'), one.getBoundingClientRect().right,
        one.querySelector('tbody td.figure').getBoundingClientRect().right])"""
    assert len(page.evaluate(first)) >= 5
    assert [name for name, frame, figure in page.evaluate(first) if figure > frame] == []


def test_cases_are_in_the_order_of_their_sizes_whatever_was_tried_first(open_file, tmp_path):
    run = report_runs.write(tmp_path / "run", reversed(report_runs.grid("alpha")), report_runs.CPU)
    path = tmp_path / "reversed.html"
    path.write_text(build_page(read_sources([str(run)]), "0"), encoding="utf-8")
    rows = open_file(path).page.locator("#run--summary tbody tr").all_inner_texts()
    assert [row.split("\t")[1:3] for row in rows] == [["1", "1"], ["1", "4"], ["5", "1"], ["5", "4"]]


def test_figures_that_do_not_fit_are_shown_when_asked_for(opened):
    page = opened(400).page
    before = page.locator("#accuracy--summary thead th.figure").count()
    page.click("#accuracy--summary .wider")
    assert page.locator("#accuracy--summary thead th.figure").count() > before >= 1
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    page.click("#accuracy--summary .wider")


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


def test_a_click_on_a_heading_sorts_numbers_as_numbers(open_file, report):
    page = open_file(report).page
    place = column(page, "seconds")
    page.click(f"{DESK} [data-column='{place}']")
    upwards = [float(text) for text in cells(page, "seconds")]
    page.click(f"{DESK} [data-column='{place}']")
    downwards = [float(text) for text in cells(page, "seconds")]
    assert upwards == sorted(upwards) and downwards == sorted(upwards, reverse=True) and upwards[0] < upwards[-1]
    page.click(f"{DESK} [data-column='{column(page, 'latency')}']")
    assert cells(page, "model")[0] == "alpha"
    assert set(cells(page, "latency")[-5:]) <= {"oom", "skipped", "unavailable", "–"}


def test_filtering_keeps_the_rows_with_all_words(opened):
    page = opened().page
    page.fill(f"{DESK} .filter", "alpha ok")
    assert set(cells(page, "model")) == {"alpha"}
    assert page.inner_text(f"{DESK} .count") == "3 of 20 cases"
    page.fill(f"{DESK} .filter", "nowhere")
    assert page.inner_text(f"{DESK} tbody") == "No case has all of these words."
    # what all cases have in common, units, and a name with its value: as typed, not as parts of numbers
    page.fill(f"{DESK} .filter", "cpu")
    assert page.inner_text(f"{DESK} .count") == "20 cases"
    page.fill(f"{DESK} .filter", "batch 4")
    assert set(cells(page, "batch")) == {"4"}
    page.fill(f"{DESK} .filter", "5 s × 1")
    assert (set(cells(page, "seconds")), set(cells(page, "batch"))) == ({"5"}, {"1"})
    page.fill(f"{DESK} .filter", "")
    page.select_option(f"{DESK} select.outcome", "oom")
    assert set(cells(page, "outcome")) == {"oom"}
    page.select_option(f"{DESK} select.outcome", "")


def test_a_figure_opens_protocol_environment_samples_and_command(opened):
    page = opened().page
    page.fill(f"{DESK} .filter", "beta")
    page.locator(f"{DESK} tbody tr:first-child td:nth-child({column(page, 'latency') + 1}) button").click()
    text = page.inner_text("dialog")
    for wanted in ("perf_counter_ns", "Some CPU 3000", "95 % interval", "values in order", "speechmeter run"):
        assert wanted in text
    assert "--batch 1" in page.inner_text("#command")
    page.wait_for_selector("dialog svg")
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    page.fill(f"{DESK} .filter", "")


def test_a_large_figure_opens_the_case_behind_it(opened):
    page = opened().page
    value = page.locator("#desk .finding button.value").first
    assert "× real time" in value.inner_text()
    value.click()
    assert "alpha" in page.inner_text("#detail-title") and "speechmeter run" in page.inner_text("dialog")
    page.keyboard.press("Escape")


def test_a_missing_figure_opens_its_reason(opened):
    page = opened().page
    page.fill(f"{DESK} .filter", "alpha oom")
    page.locator(f"{DESK} tbody tr:first-child td:nth-child({column(page, 'latency') + 1}) button").click()
    assert "needs 30 GiB" in page.inner_text("dialog")
    page.keyboard.press("Escape")
    page.fill(f"{DESK} .filter", "")


def test_a_case_without_any_figure_opens_with_its_reason_and_command(open_file, tmp_path):
    failed = [record for record in report_runs.grid("alpha") if record.status == "oom"]
    run = report_runs.write(tmp_path / "run", failed, report_runs.CPU)
    path = tmp_path / "failed.html"
    path.write_text(build_page(read_sources([str(run)]), "0"), encoding="utf-8")
    page = open_file(path).page
    assert page.inner_text("#run .headline") == "Nothing was measured: 3 oom."
    assert "needs 30 GiB" in page.inner_text("#run .doubt")
    page.click("#run--summary td.bad button")
    assert "needs 30 GiB" in page.inner_text("dialog") and "speechmeter run" in page.inner_text("#command")


def test_the_keyboard_reaches_a_figure_and_opens_it(opened):
    page = opened().page
    page.locator("#accuracy--summary tbody td.figure button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.tagName") == "BUTTON"


def test_hostile_names_are_text(opened):
    page = opened().page
    names = page.locator(f"{DESK} tr.group .clamp").all_inner_texts()
    for name in report_runs.HOSTILE:
        assert name in names
    assert page.evaluate("document.querySelectorAll('script').length") == 3
    assert page.locator("td img, td script, svg script").count() == 0


def test_the_theme_button_changes_colours_at_once(opened):
    page = opened(1280, "light").page
    before = page.evaluate("getComputedStyle(document.querySelector('#desk svg text')).fill")
    page.click("#theme")
    after = page.evaluate("getComputedStyle(document.querySelector('#desk svg text')).fill")
    page.click("#theme")
    assert before != after
    assert page.evaluate("getComputedStyle(document.querySelector('#desk svg text')).fill") == before


def test_a_chart_gives_its_values_as_a_table(opened):
    page = opened().page
    page.click("#machines summary")
    text = page.inner_text("#machines table")
    assert "NVIDIA H200" in text and "0.05 [" in text and "FASTER" in text


def test_choosing_a_case_draws_its_samples(opened):
    page = opened().page
    page.select_option("#desk select.case", index=1)
    page.wait_for_timeout(300)
    assert page.locator("#desk--samples svg .mark-symbol path").count() >= 9
    assert "The band is its 95 % interval" in page.inner_text("#desk--samples figcaption")


def test_printing_uses_ink_on_white(opened):
    page = opened(1280, "dark").page
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('#desk svg text')).fill") == "rgb(0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")


def test_one_round_and_random_weights_are_said_where_the_figures_are(open_file, tmp_path):
    run = report_runs.write(tmp_path / "run", report_runs.once(report_runs.grid("alpha")), report_runs.CPU)
    path = tmp_path / "once.html"
    path.write_text(build_page(read_sources([str(run)]), "0"), encoding="utf-8")
    page = open_file(path).page
    assert report_runs.RANDOM in page.inner_text("#run p.note >> nth=0")
    assert "one round: no interval" in page.inner_text("#run .finding >> nth=0")
    assert "Values without intervals, because there was one round." in page.inner_text("#run--summary")
    caption = page.inner_text("#run--grid figcaption >> nth=0").lower()
    assert "one round: no interval." in caption and "random weights" in caption
    page.click("#run--summary tbody tr:has-text('ok') td.figure button >> nth=0")
    detail = page.inner_text("#detail")
    assert f"Note: {report_runs.RANDOM}" in detail and "one round: no interval; 1 round" in detail


def test_samples_of_speech_play_without_a_network(open_file, tmp_path):
    records = report_runs.speech(tmp_path / "spoken")
    run = report_runs.write(tmp_path / "run", records, report_runs.CPU)
    (tmp_path / "spoken").rename(run / "artifacts")
    sources = read_sources([str(run)])
    page = tmp_path / "page.html"
    page.write_text(build_page(sources, "0", samples=1), encoding="utf-8")
    one = open_file(page)
    assert one.page.locator("#run--samples-of-speech audio").count() == 2
    assert "Sentence number 1." in one.page.inner_text("#run--samples-of-speech")
    played = """async () => {
      const sound = document.querySelector("audio");
      sound.muted = true;
      await sound.play();
      await new Promise((done) => { sound.ontimeupdate = () => sound.currentTime > 0.05 && done(); });
      return [sound.duration, sound.error];
    }"""
    assert one.page.evaluate(played) == [0.5, None]
    assert one.said == []
    assert [url for url in one.asked if not url.startswith(("data:", "blob:"))] == [page.as_uri()]
    page.write_text(build_page(sources, "0"), encoding="utf-8")
    assert "data:audio" not in page.read_text()
