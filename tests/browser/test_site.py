"""A site from a static file server: each study answers on its first screen, and nothing comes from elsewhere."""

import functools
import http.server
import json
import threading
from pathlib import Path

import pytest
import report_runs

from speechmeter.api.pages import check_site, write_site
from speechmeter.core.errors import InputError

LOOKS = (Path(__file__).parent / "looks.js").read_text()
EXAMPLES = sorted(path for path in (Path(__file__).parents[2] / "examples" / "runs").iterdir() if path.is_dir())
SCREENS = [(1280, 800), (1920, 1080), (400, 800)]
FIGURES = """() => [...document.querySelectorAll('.finding')].filter((one) => {
  const parts = ['.value', '.interval'].map((name) => one.querySelector(name).getBoundingClientRect());
  return parts.every((box) => box.height > 0 && box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth);
}).map((one) => [one.querySelector('.value').innerText, one.querySelector('.interval').innerText])"""
CUT = """[...document.querySelectorAll('.role-axis-label text')].map((one) => one.textContent)
  .filter((text) => text.endsWith('…'))"""
EXAMPLE_IDS = {study_id for path in EXAMPLES for study_id in (path.name, f"{path.name}-h200")}
SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """(address, folder) of a site of all example runs and of runs of every kind, with hostile names."""
    folder = tmp_path_factory.mktemp("site")
    runs = [*EXAMPLES, *report_runs.full(folder / "runs")]
    assert write_site([str(run) for run in runs], folder / "site") >= len(runs)
    handler = functools.partial(Quiet, directory=str(folder / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", folder / "site"
        server.shutdown()
        thread.join()


def listed(folder):
    return json.loads((folder / "index.json").read_text())["studies"]


@pytest.mark.parametrize("width", [1280, pytest.param(400, marks=pytest.mark.campaign)])
def test_every_study_answers_on_the_first_screen_and_no_texts_of_a_chart_overlap(site, open_at, width):
    address, folder = site
    wrong = {}
    for study in listed(folder):
        one = open_at(f"{address}/{study['page']}", width, "light", 800)
        one.page.evaluate(LOOKS)
        problems = [f"overlap: {pair}" for pair in one.page.evaluate("overlaps()")]
        problems += [f"cut short: {text}" for text in one.page.evaluate(CUT) if study["id"] in EXAMPLE_IDS]
        problems += [f"said: {text}" for text in one.said]
        problems += [f"asked: {url}" for url in one.asked if not url.startswith((address, "data:", "blob:"))]
        for size in [screen for screen in SCREENS if (screen[0] < 1000) is (width < 1000)]:
            one.page.set_viewport_size({"width": size[0], "height": size[1]})
            found = one.page.evaluate(FIGURES)
            if not any(value.strip() and ("interval" in why or "one round" in why) for value, why in found):
                problems.append(f"no figure on {size}: {found}")
            problems += [f"scrolls sideways at {size}"] if one.page.evaluate(SIDEWAYS) else []
        one.page.context.close()
        if problems:
            wrong[study["id"]] = problems
    assert wrong == {}


def test_every_text_of_a_study_stands_out_in_light_and_dark(site, open_at):
    address, _ = site
    for scheme in ("light", "dark"):
        for page in ("index.html", "studies/h200-losses.html"):
            one = open_at(f"{address}/{page}", 1280, scheme)
            one.page.evaluate(LOOKS)
            assert one.page.evaluate("weakTexts()") == [], (page, scheme)
            one.page.context.close()


def test_the_list_leads_to_every_study_and_back(site, open_at):
    address, folder = site
    one = open_at(f"{address}/index.html")
    links = one.page.evaluate("[...document.querySelectorAll('main a')].map((link) => link.href)")
    pages = {link.partition("#")[0] for link in links if link.endswith(".html") or "#" in link}
    assert {f"{address}/{study['page']}" for study in listed(folder)} == pages
    for link in sorted({link.partition("#")[0] for link in links}):
        assert one.page.request.get(link).status == 200
    one.page.click("main h3 a >> nth=0")
    one.page.wait_for_selector("body[data-ready=yes]")
    one.page.click("#contents a:text-is('All runs')")
    one.page.wait_for_selector("#count")
    assert one.said == [] and all(url.startswith((address, "data:", "blob:")) for url in one.asked)


def test_a_link_to_the_evidence_opens_the_study_at_its_chart(site, open_at):
    address, _ = site
    page = open_at(f"{address}/index.html").page
    page.click("text=Accuracy against cost >> nth=0")
    page.wait_for_selector("body[data-ready=yes]")
    assert page.url.endswith("studies/accuracy-vs-cost.html#accuracy-vs-cost--compared-1")
    assert page.locator("#accuracy-vs-cost--compared-1 svg text").count() > 3


def test_the_list_is_found_by_words_device_and_model(site, open_at):
    address, folder = site
    page = open_at(f"{address}/index.html").page
    every = len(listed(folder))
    assert page.inner_text("#count") == f"{every} runs"
    page.fill("#filter", "h200-losses")
    assert page.locator(".card:visible").count() == 1 and page.inner_text("#count") == f"1 of {every} runs"
    page.fill("#filter", "")
    page.select_option("#model", "moonshine-voice")
    assert page.locator(".card:visible h3").all_inner_texts() == ["accuracy-vs-cost"]
    page.select_option("#model", "")
    page.select_option("#device", "Some CPU 3000")
    shown = set(page.locator(".card:visible h3").all_inner_texts())
    assert shown == {study["name"] for study in listed(folder) if "Some CPU 3000" in study["devices"]}
    assert {"desk", "accuracy", "training"} <= shown and not shown & {"cluster", "losses", "search"}


def test_the_json_of_a_study_has_its_answers_and_a_row_a_figure(site):
    _, folder = site
    data = json.loads((folder / "studies" / "accuracy-vs-cost.json").read_text())
    assert data["findings"][0]["name"] == "moonshine-voice" and data["findings"][0]["interval"].startswith("95 %")
    (wer,) = [row for row in data["figures"] if row["metric"] == "wer" and row["model"] == "moonshine-voice"]
    assert wer["low"] < wer["value"] < wer["high"] and wer["unit"] == "%"


def test_a_folder_that_holds_something_is_not_written_into(site, tmp_path):
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(InputError, match="not empty"):
        check_site(tmp_path, force=False)
    check_site(tmp_path, force=True)
    write_site([str(EXAMPLES[0])], tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "kept" and (tmp_path / "index.html").exists()
