"""Charts of live systems: what they draw, what they say, and that their texts can be read."""

import json
from pathlib import Path

import pytest
from tests.live_records import case, delays, ratios, record

pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'speechmeter[report]'")

from chart_texts import cut_off, overlaps
from live_talks import conditions, final, talk

from speechmeter.analysis.estimate import estimate
from speechmeter.analysis.live.talk import Talk, splitter
from speechmeter.api.runs import run_study
from speechmeter.api.starting import Options
from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.plan.study import study_from_python
from speechmeter.report.charts import conversations
from speechmeter.report.charts.live import figures
from speechmeter.report.page.build import page_data
from speechmeter.report.plot import COLUMN_MM, chart_figures, encoded, figures_of
from speechmeter.report.sources import Source, read_sources
from speechmeter.report.views import CHARTS

KINDS = CHARTS["live"].axes
MM_PER_PX = 25.4 / 96
USUAL = {"load": "known:live", "clock": "virtual", "delay_s": 0.1, "spread_s": 0.2}
MODELS = [
    {**USUAL, "name": "swift", "final_s": 0.1, "seed": 1},
    {**USUAL, "name": "late and restless", "final_s": 0.4, "unstable_words": 1, "swap_word": 3, "seed": 2},
    {**USUAL, "name": "forgetful", "final_s": 0.1, "lose_final": 0.3, "seed": 3},
    {**USUAL, "name": "<b>语音</b>", "final_s": 0.2, "delay_s": 0.3, "endpoint_s": 0.3, "seed": 4},
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Twelve utterances with times of words, heard by four systems in two rounds."""
    import numpy as np
    import soundfile

    folder = tmp_path_factory.mktemp("live")
    lines = []
    for number in range(12):
        noise = np.random.default_rng(number).standard_normal(32_000).astype("float32") / 10
        soundfile.write(folder / f"u{number}.wav", noise, 16_000)
        words = [[text, 0.3 + 0.4 * place, 0.6 + 0.4 * place] for place, text in enumerate(("one", "two", "three"))]
        lines.append({
            "id": f"u{number}", "audio_filepath": f"u{number}.wav", "duration": 2.0, "text": "one two three",
            "speech_start_s": 0.3, "speech_end_s": 1.5, "words": words,
        })  # fmt: skip
    (folder / "list.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    study = study_from_python({
        "models": MODELS, "data": {"manifest": str(folder / "list.jsonl")}, "pace": "realtime", "rounds": 2,
        "turn_end": "oracle:300ms", "quality": {"normaliser": "basic"}, "warmup_turns": 0,
    })  # fmt: skip
    run_study(study, Options(output=folder / "run", launcher="inline"))
    return folder / "run"


def figure(run, kind):
    (found,) = figures_of(read_sources([str(run)]), f"live:{kind}")
    return found


@pytest.mark.parametrize("width_px", [COLUMN_MM / MM_PER_PX, 400, 620])
def test_texts_can_be_read_at_every_width(run, width_px):
    sources = read_sources([str(run)])
    found = [*chart_figures(CHARTS["live"], sources, page=True), *figures_of(sources, "front")]
    assert len(found) == len(KINDS)  # the front too, but no capacity: the run has no SLO
    for one in found:
        svg = encoded([one], ".svg", width_px * MM_PER_PX).decode()
        assert overlaps(svg) == [], one.title
        assert cut_off(svg) == [], one.title
    assert len({one.title for one in found}) == len(found)


def test_delays_are_the_estimates_with_their_intervals(run):
    made = figure(run, "delays")
    (source,) = read_sources([str(run)])
    for row in made.rows:
        if row["series"] == "final delay p50":
            group = next(own for own in source.cases.values() if own[0].case.subject.name == row["label"])
            found = estimate(group, metrics.FINAL_DELAY)
            assert (row["value"], row["low"]) == (pytest.approx(found.value), pytest.approx(found.low))
    assert {row["series"] for row in made.rows} == {"first text p50", "word lag p50", "final delay p50"}
    assert "95 % intervals over utterances only: fewer than 5 rounds" in made.caption
    assert "swift" in made.title.split(". ")[0]


def test_the_curve_of_a_forgetful_system_ends_below_100_percent(run):
    made = figure(run, "distribution")
    last = {row["line"]: row["value"] for row in made.rows}
    assert last["swift"] == 100
    assert 50 < last["forgetful"] < 100
    assert "did not answer in every conversation" in made.caption
    shares = [row["value"] for row in made.rows if row["line"] == "swift"]
    assert shares == sorted(shares)
    assert all(row["low"] <= row["value"] <= row["high"] for row in made.rows)


def test_churn_is_drawn_against_the_lag_of_words(run):
    rows = {row["label"]: row for row in figure(run, "churn").rows}
    # of three words two are shown as wrong and then corrected, and the last by the final
    assert rows["late and restless"]["value"] == pytest.approx(1.0)
    assert rows["swift"]["value"] == 0


def test_a_fast_system_that_loses_answers_is_not_praised_for_its_delay_alone(tmp_path):
    """Three of twelve conversations of the faster system have no final."""
    names = [f"u{number:02}" for number in range(12)]
    made = []
    for name, delay_s, lost in (("lossy", 0.2, 3), ("whole", 0.5, 0)):
        complete = ratios(
            {one: (float(place >= lost), 1.0) for place, one in enumerate(names)}, metrics.LIVE_COMPLETENESS
        )
        heard = delays({one: [delay_s + place / 1000 if place >= lost else None] for place, one in enumerate(names)})
        made.append(record(case(name), 0, names, heard, complete))
    source = Source(name="run", host="here", records=tuple(made), environments=None)
    (shown,) = figures(source, "delays")
    assert "lossy has the lowest final delay" in shown.title
    assert "with 75.0 % of its conversations complete" in shown.title
    assert "one round: no interval" not in shown.caveats
    assert "95 % intervals over utterances only" in shown.caption


def test_the_backlog_is_that_of_one_utterance_that_all_heard(run):
    made = figure(run, "backlog")
    assert {row["line"] for row in made.rows} == {"swift", "late and restless", "forgetful", "<b>语音</b>"}
    assert (
        "covered speech ends at the last word that no later text changes, or at the end time of a final text"
        in made.caption
    )
    # words of 0.3 s: a word of "late and restless" stays from the partial on that shows the next one
    assert max(row["value"] for row in made.rows) == pytest.approx(0.6)


def test_the_timeline_has_words_texts_and_the_end_of_a_turn(run):
    rows = figure(run, "timeline").rows
    assert [row["text"] for row in rows if row.get("kind") == "word"] == ["one", "two", "three"]
    assert {"ends": 1.5} in rows
    swift = [row for row in rows if row.get("lane") == "swift"]
    assert [row["kind"] for row in swift] == ["partial text"] * 3 + ["final text"]
    assert swift[0]["start"] == pytest.approx(0.7)  # "one" ends at 0.6 s, and is shown 0.1 s later
    assert any(row.get("kind") == "end of turn" and row["lane"] == "<b>语音</b>" for row in rows)


def test_a_thinned_curve_keeps_its_peaks():
    curve = [(float(at), 9.0 if at == 1_001 else at % 7 / 10) for at in range(2_000)]
    thin = conversations._thinned(curve)
    assert len(thin) <= conversations._MOST_POINTS
    assert max(value for _, value in thin) == 9.0
    assert thin == sorted(thin)


def test_only_as_many_backlogs_are_drawn_as_colours_tell_apart():
    heard = [conversations._Heard(name=f"s{at}", model="m", talk=None) for at in range(10)]
    drawn = {one: [(0.0, 0.0), (1.0, float(at * 3 % 10))] for at, one in enumerate(heard)}
    kept, left_out = conversations._furthest_behind(drawn)
    assert [one.name for one in kept] == [f"s{at}" for at in range(10) if at * 3 % 10 > 1]
    assert left_out == "only the 8 that fall behind most are drawn"
    assert conversations._furthest_behind(dict(list(drawn.items())[:8])) == (heard[:8], "")


def test_of_systems_that_are_final_together_none_is_called_first(monkeypatch):
    at, split = {"a": 1.0, "b": 1.0, "c": 2.0}, splitter(conditions().normaliser)
    heard = [
        conversations._Heard(name=name, model=name, talk=Talk(talk(final(moment, "one")), conditions(), split))
        for name, moment in at.items()
    ]
    monkeypatch.setattr(conversations, "_same_utterance", lambda *_, longest: heard)
    (made,) = conversations.timelines(Source(name="s", host="h", records=(), environments={}), {})
    assert made.title.startswith("One utterance")
    monkeypatch.setattr(conversations, "_same_utterance", lambda *_, longest: heard[1:])
    (made,) = conversations.timelines(Source(name="s", host="h", records=(), environments={}), {})
    assert made.title.startswith("b is final first")


def test_the_front_of_live_systems_is_that_of_wer_and_final_delay(run):
    (made,) = figures_of(read_sources([str(run)]), "front")
    assert made.definitions == (metrics.LIVE_WER, metrics.FINAL_DELAY)
    standing = {row["label"]: row["standing"] for row in made.rows}
    assert standing["late and restless"] == "dominated"
    assert standing["swift"] == "on the front"


def test_the_page_has_one_section_for_them(run):
    (study,) = page_data(read_sources([str(run)]), "0")["studies"]
    (section,) = [one for one in study["sections"] if one["id"] == "live"]
    shown = [*section["figures"], *study["compared"]]
    assert sum("final delay" in one["title"] for one in shown) >= 1
    assert len(shown) >= len(KINDS)


def test_a_run_without_live_cases_or_with_lost_exchanges_has_nothing_for_them(run, tmp_path):
    from shutil import copytree

    copy = copytree(run, tmp_path / "run")
    for file in copy.rglob("exchanges-*.jsonl.gz"):
        file.write_bytes(b"damaged")
    assert figure(copy, "delays").rows
    with pytest.raises(InputError, match="nothing to draw for the kind live:timeline"):
        figure(copy, "timeline")
    with pytest.raises(InputError, match="'live:nonsense'; did you mean"):
        figure(copy, "nonsense")


EXAMPLES = Path(__file__).parents[4] / "examples" / "runs"


def example(name):
    return list(chart_figures(CHARTS["live"], read_sources([str(EXAMPLES / name)]), page=True))


def test_paces_are_not_called_faster_than_each_other():
    """The same system is final sooner where its audio comes faster: that is no finding about it."""
    titles = [one.title for one in example("live-paces")]
    assert not any("final first" in title or "lowest final delay" in title for title in titles)


def test_shares_of_one_conversation_a_line_are_left_out():
    assert not any("Share of conversations" in one.title for one in example("live-paces"))


def test_equal_figures_of_all_are_said_in_a_few_words():
    (title,) = (one.title for one in example("live-streams") if "Rewritten" in one.title)
    assert title == "All 4 have the same rewritten words: 0. Rewritten words of partial texts against word lag"


def test_a_single_system_has_its_delay_in_the_title_and_streams_without_final_delays_their_lag():
    (delays_of_one, *_) = example("live-paces@pace=realtime")
    assert delays_of_one.title == "simulated has a final delay of 756 ms. Delays of live systems"
    (delays_of_streams, *_) = example("live-streams")
    assert "1 stream and simulated · 2 streams have the lowest word lag" in delays_of_streams.title


def test_the_end_of_a_turn_is_not_hidden_by_its_final_text():
    (timeline,) = (one for one in example("live-paces") if "as it was heard" in one.title)
    assert "end of turn" in timeline.spec["layer"][-1]["mark"]["yOffset"]["expr"]


def test_what_a_kind_of_live_chart_needs_is_said():
    with pytest.raises(InputError) as raised:
        figures_of(read_sources([str(EXAMPLES / "live-streams")]), "live:capacity")
    assert "`slo`" in str(raised.value)
    assert set(CHARTS["live"].needs_of) < set(CHARTS["live"].axes)


def test_names_have_only_what_differs():
    (delays,) = (one for one in example("live-streams") if one.title.endswith("Delays of live systems"))
    assert {row["label"] for row in delays.rows} == {f"simulated · {n} stream{'s' * (n > 1)}" for n in (1, 2, 4, 8)}
